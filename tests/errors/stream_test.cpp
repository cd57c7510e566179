// Streams on the command line: pipe:COMMAND?...&stream.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::stream_errors_test {
namespace {

class Streams : public FluidrunTest {
 protected:
  /// Two batches of 30 and of 15 samples: y = x0 - 2 x1.
  void SetUp() override {
    FluidrunTest::SetUp();
    write_samples("0", 30, 0);
    write_samples("1", 15, 30);
  }

  void write_samples(const std::string& name, int64_t samples, int64_t first) const {
    Tensor x(f32, {samples, 2}), y(f32, {samples, 1});
    for (int64_t i = 0; i < samples; ++i) {
      const auto a = static_cast<float>((first + i) % 7 - 3), b = static_cast<float>(i % 5 - 2);
      x.as<float>()[static_cast<size_t>(2 * i)] = a;
      x.as<float>()[static_cast<size_t>(2 * i + 1)] = b;
      y.as<float>()[static_cast<size_t>(i)] = a - 2 * b;
    }
    write_npy(dir_.file("x" + name), x);
    write_npy(dir_.file("y" + name), y);
  }

  static std::string data(const std::string& command, const std::string& options = "&stream") {
    return "'pipe:" + command + "?columns=x,y" + options + "' ";
  }

  Result succeeds(const std::string& arguments) const {
    Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << ": " << result.output;
    return result;
  }
  void expect_has(const std::string& text, const std::string& part) const {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  std::string bytes(const std::string& file) const { return read_file(dir_.file(file)); }

  static inline const std::string kAll = "cat x0 y0 x1 y1";
  static constexpr const char* kEndless = "while true; do cat x0 y0 x1 y1; done";
};

TEST_F(Streams, EqualTheSpooledSamples) {
  for (const bool streams : {true, false}) {
    const std::string spec = data(kAll, streams ? "&stream" : "&shuffle=0");
    const std::string kind = streams ? "streamed" : "spooled";
    const Result trained =
        succeeds("train line.fir --batch 10 --epochs 3 --data " + spec + "--val " + spec +
                 "--ema 0.9 --log-json log.json --save " + kind + ".safetensors");
    expect_has(trained.output, streams ? "a stream, steps of 10" : "45 samples");
    std::filesystem::rename(dir_.file("log.json"), dir_.file(kind + ".json"));
    succeeds("predict line.fir --batch 20 --params " + kind + ".safetensors --output " + kind +
             ".csv --data " + spec);
  }
  EXPECT_EQ(bytes("streamed.safetensors"), bytes("spooled.safetensors"));
  EXPECT_EQ(bytes("streamed.csv"), bytes("spooled.csv"));
  EXPECT_EQ(std::ranges::count(bytes("streamed.csv"), '\n'), 46);
  const std::regex seconds(",\"seconds\":[^}]*");
  EXPECT_EQ(std::regex_replace(log_without_times(dir_.file("streamed.json")), seconds, ""),
            std::regex_replace(log_without_times(dir_.file("spooled.json")), seconds, ""));
}

TEST_F(Streams, AreEvaluated) {
  const std::string params = "--batch 20 --params w.safetensors --data ";
  succeeds("train line.fir --batch 10 --data " + data(kAll) + "--save w.safetensors");
  const std::string loss = succeeds("eval line.fir " + params + data(kAll) + "2>/dev/null").output;
  EXPECT_TRUE(loss.starts_with("loss ")) << loss;
  EXPECT_EQ(loss, succeeds("eval line.fir " + params + data(kAll, "") + "2>/dev/null").output);
  const std::string whole = succeeds("eval line.fir --batch 45 --params w.safetensors --data " +
                                     data(kAll, "") + "2>/dev/null")
                                .output;
  EXPECT_NEAR(std::stod(loss.substr(5)), std::stod(whole.substr(5)), 1e-5)
      << "the last of three batches has 5 samples";
  const Result rows =
      succeeds("predict line.fir " + params + data(kAll, "&stream&limit=3") + "2>/dev/null");
  expect_has(rows.output, "\n2  line ");
  EXPECT_EQ(rows.output.find("\n3  line "), std::string::npos);
}

TEST_F(Streams, AreDescribed) {
  Result result = succeeds("data " + data(kAll) + "--check");
  expect_has(result.output, "a stream of 45 samples");
  expect_has(result.output, "x f32[2]  -3 to 3");
  expect_has(result.output, "sample 1 of 'pipe:cat x0 y0 x1 y1'  [x ");
  expect_has(result.output, "0 of 45 samples cannot be read");
  result = succeeds("data --draw 0 " + data(kEndless));
  expect_has(result.output, "a stream; its first 1000 samples");
  result = succeeds("data --rate --batch 8 " + data(kAll, "&stream&shuffle_buffer=4"));
  expect_has(result.output, "45 samples in ");
  result = run("data " + data("cat x0 y0 x1; exit 4"));
  EXPECT_EQ(result.code, 1);
  expect_has(result.output, "exited with code 4, after 30 samples");
  expect_has(result.output, "1 of 31 samples cannot be read");
}

/// The peak of the resident memory in MiB that the last progress line shows.
double peak_mib(const std::string& output) {
  const size_t at = output.rfind("peak ");
  return at == std::string::npos ? -1 : std::stod(output.substr(at + 5));
}

TEST_F(Streams, WithoutAnEndTakeBoundedMemory) {
  write_samples("big", 50'000, 0);
  const auto peak = [&](int steps) {
    return peak_mib(
        succeeds("train line.fir --batch 10000 --log-every 1 --lr 1e-9 --max-steps " +
                 std::to_string(steps) + " --data " +
                 data("while true; do cat xbig ybig; done", "&stream&shuffle_buffer=20000"))
            .output);
  };
  const double few = peak(30), many = peak(600);  // 72 MB
  EXPECT_GT(few, 0);
  EXPECT_LT(many - few, 30);
}

TEST_F(Streams, ThatFailStopTheRun) {
  const std::string train = "train line.fir --batch 10 --epochs 2 --data ";
  expect_late_error(train + data("cat x0 y0; exit 7"),
                    "command 'cat x0 y0; exit 7' exited with code 7, after 30 samples");
  expect_late_error(train + data("cat x0 y0 x1; kill -9 $$"),
                    "was ended by signal 9, after 30 samples");
  expect_late_error(train + data("cat x0 y0; head -c 99 x1"),
                    "after 30 samples, batch 2, column 'x': the output ends");
  expect_late_error(train + data("test $FLUID_EPOCH = 0 && cat x0 y0"),
                    "exited with code 1, after 0");
}

TEST_F(Streams, ResumeInTheMiddleOfAnEpoch) {
  // Each epoch has its own samples; 5 steps are an epoch.
  write_samples("2", 45, 3);
  const std::string train =
      "train line.fir --batch 10 --epochs 3 --data " +
      data("echo $FLUID_EPOCH >> passes; cat x$FLUID_EPOCH y$FLUID_EPOCH x2 y2 x1 y1",
           "&stream&shuffle_buffer=12");
  write_samples("3", 30, 9);
  succeeds(train + "--save whole.safetensors");
  EXPECT_EQ(bytes("passes"), "0\n1\n2\n");
  const Result cut = succeeds(train + "--checkpoint-dir run --max-steps 12");
  std::filesystem::remove(dir_.file("passes"));
  const Result rest = succeeds(train + "--checkpoint-dir run --resume --save parts.safetensors");
  expect_has(rest.output, "step 12 in epoch 2");
  EXPECT_EQ(rest.output.find("results differ"), std::string::npos) << rest.output;
  EXPECT_EQ(bytes("parts.safetensors"), bytes("whole.safetensors"));
  EXPECT_EQ(bytes("passes"), "0\n1\n2\n") << "epoch 0 shows the columns";
}

TEST_F(Streams, AreSharedByRanks) {
  const std::string train =
      "train line.fir --dtype f64 --epochs 2 --data " + data(kAll) + "--val " + data(kAll);
  succeeds(train + "--batch 20 --log-json one.json");
  const Result two = succeeds("launch --nproc 2 -- " + train + "--batch 10 --log-json two.json");
  expect_has(two.output, "a stream, steps of 10 on each of 2 ranks");
  for (const std::string event : {"", "epoch", "validation"}) {
    const auto expected = logged(dir_.file("one.json"), event);
    const auto seen = logged(dir_.file("two.json"), event);
    ASSERT_EQ(seen.size(), expected.size()) << event;
    ASSERT_FALSE(seen.empty());
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_NEAR(seen[i]["loss"], expected[i]["loss"], 1e-9) << event << i;
    }
  }
  const Result uneven = run("launch --nproc 2 -- train line.fir --batch 10 --data " +
                            data("cat x$FLUID_RANK y$FLUID_RANK"));
  EXPECT_NE(uneven.code, 0);
  expect_has(uneven.output, "number of samples in the batch");
}

TEST_F(Streams, AreSpooledToADirectoryThatCanBeWritten) {
  const std::string train = "train line.fir --batch 10 --data ", missing = dir_.file("none");
  before_ = "TMPDIR=" + missing + " ";
  expect_error(train + data(kAll, ""), "no directory of temporary files '" + missing + "'");
  succeeds(train + data(kAll));
  before_ = "TMPDIR=" + dir_.file("line.fir") + " ";
  expect_error(train + data(kAll, ""),
               "no directory of temporary files '" + dir_.file("line.fir") + "'");
  before_ = "TMPDIR=/proc ";
  expect_error(train + data(kAll, ""), "cannot write the temporary file '/proc/fluid-data-");
}

TEST_F(Streams, LackWhatNeedsAnIndexOrALength) {
  const std::string train = "train line.fir --batch 10 --data ";
  expect_error(train + data(kAll, "&stream&val=0.2"), "option val holds out rows");
  expect_error(train + data(kAll, "&stream&shuffle=1"), "add shuffle_buffer=N");
  expect_error(train + data(kAll) + "--on-bad-record skip",
               "data 'pipe:cat x0 y0 x1 y1' is a stream, which ends at a bad record");
  expect_error("data --on-bad-record skip " + data(kAll),
               "data 'pipe:cat x0 y0 x1 y1' is a stream, which ends at a bad record");
  expect_error(train + data(kAll) + "--schedule cosine",
               "--schedule cosine: the data is a stream, whose number of steps is unknown: give "
               "--schedule-steps or --max-steps");
  succeeds(train + data(kAll) + "--schedule cosine --max-steps 3");
  succeeds(train + data(kAll) + "--schedule cosine --schedule-steps 3");
}

TEST_F(Streams, AreTriedBeforeTraining) {
  const std::string train = "train line.fir --batch 10 --data ";
  expect_has(succeeds(train + data(kAll) + "--find-lr").output, "steps, learning rate");
  expect_has(succeeds(train + data(kAll) + "--overfit 8").output, "learned: 8 samples");
  Result result = succeeds(train + data(kAll) + "--dry-run --val " + data("cat x1 y1"));
  EXPECT_TRUE(std::regex_search(result.output, std::regex("training +10 +\\?"))) << result.output;
  EXPECT_TRUE(std::regex_search(result.output, std::regex("validation +5 +1 "))) << result.output;
  expect_has(result.output, "the number of steps of an epoch is unknown");
  result = succeeds(train + data(kEndless) + "--dry-run --max-steps 500");
  expect_has(result.output, "500 steps take about ");
  expect_has(succeeds("bench line.fir --batch 10 --steps 3 --repeat 2 --data " + data(kAll)).output,
             "ms/step");
}

/// Whether a process runs; a zombie does not.
bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  return !text.empty() && text.substr(text.rfind(')') + 2, 1) != "Z";
}

TEST_F(Streams, OfAKilledRunLeaveNothing) {
  std::filesystem::create_directory(dir_.file("temporary"));
  // Spooling and streaming, by a signal that the run handles and by one that ends it at once.
  for (const std::string options : {"", "&stream"}) {
    for (const int signal : {SIGINT, SIGKILL}) {
      SCOPED_TRACE(options + " " + std::to_string(signal));
      std::filesystem::remove(dir_.file("pid"));
      const std::string command =
          "cd " + dir_.path() + " && TMPDIR=" + dir_.file("temporary") + " exec " + kFluidrun +
          " train line.fir --batch 10 --max-steps 100000000 --data " +
          data("(echo $$ > pid; while true; do cat x0 y0; done)", options) + "> log 2>&1";
      const pid_t child = fork();
      if (child == 0) {
        execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
        _exit(127);
      }
      pid_t pid = 0;
      EXPECT_TRUE(until([&] { return std::ifstream(dir_.file("pid")) >> pid && pid > 0; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_TRUE(runs(pid));
      kill(child, signal);
      waitpid(child, nullptr, 0);
      EXPECT_TRUE(until([&] { return !runs(pid); }));
      EXPECT_TRUE(std::filesystem::is_empty(dir_.file("temporary")));
    }
  }
}

}  // namespace
}  // namespace fluid::stream_errors_test
