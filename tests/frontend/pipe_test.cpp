// The kind of data "pipe": a process that writes batches.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "frontend/files/npy.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/stopwatch.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::pipe_test {
namespace {

class Pipe : public ::testing::Test {
 protected:
  /// Batches of 3 and of 2 samples: x counts from 0, y is 10 times x.
  void SetUp() override {
    write_npy(dir_.file("x0"), Tensor::of<float>({3, 1}, std::vector<float>{0, 1, 2}));
    write_npy(dir_.file("y0"), Tensor::of<int64_t>({3}, std::vector<int64_t>{0, 10, 20}));
    write_npy(dir_.file("x1"), Tensor::of<float>({2, 1}, std::vector<float>{3, 4}));
    write_npy(dir_.file("y1"), Tensor::of<int64_t>({2}, std::vector<int64_t>{30, 40}));
  }
  std::string spec(const std::string& command, const std::string& options = "") const {
    return "pipe:cd " + dir_.path() + "; " + command + "?columns=x,y" + options;
  }
  void expect_error(const std::string& command, const std::string& options,
                    const std::string& message) const {
    expect_user_error([&] { open_data(spec(command, options)); }, message);
  }

  /// A number that the command wrote to a file.
  pid_t pid_in(const std::string& file) const {
    pid_t pid = 0;
    std::ifstream(dir_.file(file)) >> pid;
    return pid;
  }
  std::string text_of(const std::string& file) const {
    std::ifstream in(dir_.file(file));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TempDir dir_;
};

/// Waits up to ten seconds.
template <class F>
bool until(F holds) {
  const Stopwatch watch;
  while (!holds() && watch.ms() < 10'000) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return holds();
}

/// Whether a process runs; a zombie does not.
bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  return !text.empty() && text.substr(text.rfind(')') + 2, 1) != "Z";
}

std::vector<double> values_of(Reader& reader) {
  std::vector<double> values;
  for (const Batch& batch : reader) {
    for (int64_t i = 0; i < batch.size; ++i) {
      values.push_back(batch.find("x")->at(i));
      EXPECT_EQ(batch.find("y")->at(i), 10 * values.back());
    }
  }
  return values;
}

TEST_F(Pipe, SamplesAreReadByIndex) {
  for (const std::string memory : {"", "&memory=0"}) {
    const SampleSourcePtr source = open_data(spec("cat x0 y0 x1 y1", memory)).source;
    ASSERT_EQ(source->samples(), 5);
    Reader reader(source, {.batch = 2, .shuffle_seed = 3});
    double sum = 0;
    for (const Batch& batch : reader) {
      for (int64_t i = 0; i < batch.size; ++i) {
        sum += batch.find("x")->at(i);
        EXPECT_EQ(batch.find("y")->at(i), 10 * batch.find("x")->at(i));
      }
    }
    EXPECT_EQ(sum, 10);
  }
  EXPECT_EQ(open_data(spec("cat x0 y0 x1 y1", "&val=0.4"), "test").source->samples(), 2);
}

TEST_F(Pipe, AnEndlessProcessIsEnded) {
  const std::string command = "echo $$ > pid; while true; do cat x0 y0; done";
  EXPECT_EQ(open_data(spec(command, "&records=7")).source->samples(), 7);
  ASSERT_GT(pid_in("pid"), 0);
  EXPECT_NE(kill(pid_in("pid"), 0), 0) << "the shell still runs";
}

TEST_F(Pipe, AReaderThatEndsDoesNotWaitForTheCommand) {
  const DataSource data = open_data(spec("cat x0 y0; sleep 1000", "&stream"));
  const Stopwatch watch;
  {
    Reader reader = data.reader({.batch = 2});
    ASSERT_NE(reader.next(), nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its thread waits for the command
  }
  EXPECT_LT(watch.ms(), 20'000);
}

TEST_F(Pipe, AllProcessesOfTheCommandAreEnded) {
  const std::string child =
      "sh -c 'trap \"echo late > ended; exit\" TERM; echo $$ > child; "
      "while true; do sleep 0.01; done' > /dev/null & ";
  const Stopwatch watch;
  EXPECT_EQ(open_data(spec(child + "while ! test -s child; do sleep 0.01; done; cat x0 y0"))
                .source->samples(),
            3);
  EXPECT_LT(watch.ms(), 900 + 10'000);
  EXPECT_FALSE(runs(pid_in("child")));
  EXPECT_EQ(text_of("ended"), "late\n") << "SIGKILL came before the process could end";
}

TEST_F(Pipe, NothingRemainsOfAKilledProcess) {
  const std::string temporary = dir_.file("temporary");
  std::filesystem::create_directory(temporary);
  for (const std::string options : {"", "&stream"}) {
    std::filesystem::remove(dir_.file("child"));
    const pid_t reader = fork();
    if (reader == 0) {
      setenv("TMPDIR", temporary.c_str(), 1);
      try {
        const DataSource data = open_data(
            spec("echo $$ > shell; cat x0 y0; sh -c 'echo $$ > child; exec sleep 1000'", options));
        Reader batches = data.reader({.batch = 2});
        while (batches.next() != nullptr) continue;
      } catch (...) {
      }
      _exit(1);
    }
    EXPECT_TRUE(until([&] { return pid_in("child") > 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(runs(pid_in("shell")) && runs(pid_in("child")));
    kill(reader, SIGKILL);
    waitpid(reader, nullptr, 0);
    EXPECT_TRUE(until([&] { return !runs(pid_in("shell")) && !runs(pid_in("child")); })) << options;
    EXPECT_TRUE(std::filesystem::is_empty(temporary)) << options;
  }
}

TEST_F(Pipe, StreamsEachEpoch) {
  const std::string command =
      "echo $FLUID_EPOCH $FLUID_RANK $FLUID_WORLD >> passes; cat x$FLUID_EPOCH y$FLUID_EPOCH";
  const DataSource data =
      open_data(spec(command, "&stream"), "train", {.first_pass = {.rank = 1, .world = 2}});
  EXPECT_EQ(data.source, nullptr);
  EXPECT_EQ(data.data().columns()[0].str(), "x f32[1]");
  Reader reader = data.reader({.batch = 1, .rank = 1, .world = 2});
  EXPECT_EQ(values_of(reader), (std::vector<double>{1}));
  EXPECT_EQ(values_of(reader), (std::vector<double>{4}));
  EXPECT_EQ(text_of("passes"), "0 1 2\n1 1 2\n") << "the run that shows the columns is epoch 0";
  reader.seek({0, 2});
  EXPECT_EQ(values_of(reader), std::vector<double>()) << "one sample, of rank 0";
  EXPECT_EQ(text_of("passes"), "0 1 2\n1 1 2\n0 1 2\n");
}

TEST_F(Pipe, AStreamTakesTheOptionsOfData) {
  const auto values = [&](const std::string& options) {
    const DataSource data = open_data(spec("cat x0 y0 x1 y1", options));
    Reader reader = data.reader({.batch = 4});
    return values_of(reader);
  };
  EXPECT_EQ(values("&stream"), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(values("&stream&limit=4"), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(values("&stream&records=2"), (std::vector<double>{0, 1}));
  EXPECT_EQ(values("&stream=0&records=2").size(), 2u);
  const DataSource renamed =
      open_data(spec("cat x0 y0", "&stream&x=image&shuffle_buffer=3&shuffle&drop_last"));
  EXPECT_EQ(renamed.shuffle_buffer, 3);
  EXPECT_EQ(renamed.shuffle, true);
  EXPECT_EQ(renamed.drop_last, true);
  Reader reader = renamed.reader({.batch = 2, .shuffle_seed = 1, .shuffle_buffer = 3});
  EXPECT_EQ(reader.next()->find("image")->shape(), (std::vector<int64_t>{2, 1}));
}

TEST_F(Pipe, AnEndlessStreamIsEndedWithItsReader) {
  const Stopwatch watch;
  {
    const std::string command = "echo $$ > pid; cat x0 y0; cat x0 y0; exec sleep 1000";
    Reader reader = open_data(spec(command, "&stream")).reader({.batch = 2});
    reader.next();
  }
  EXPECT_FALSE(runs(pid_in("pid")));
  EXPECT_LT(watch.ms(), 10'000) << "waits for the command, which stalls";
}

TEST_F(Pipe, AStreamEndsTheCommandWithTheLastSample) {
  const std::string command = "echo $$ > pid; while true; do cat x0 y0; done";
  const auto expect_ended = [&] {
    ASSERT_GT(pid_in("pid"), 0);
    EXPECT_FALSE(runs(pid_in("pid"))) << "the command waits for a reader";
    std::filesystem::remove(dir_.file("pid"));
  };
  for (const std::string limit : {"&records=4", "&limit=4"}) {
    Reader reader = open_data(spec(command, "&stream" + limit)).reader({.batch = 2});
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(values_of(reader), (std::vector<double>{0, 1, 2, 0}));
      expect_ended();
    }
  }
  Reader reader = open_data(spec(command, "&stream")).reader({.batch = 2});
  EXPECT_EQ(reader.read_first(2, 0).samples(), 2);
  expect_ended();
}

TEST_F(Pipe, MistakesOfAStreamAreNamed) {
  const auto expect_failure = [&](const std::string& command, const std::string& message) {
    Reader reader = open_data(spec(command, "&stream&timeout=1")).reader({.batch = 2});
    expect_user_error([&] { values_of(reader); }, message);
  };
  expect_failure("cat x0 y0; exit 3", "exited with code 3, after 3 samples");
  expect_failure("cat x0 y0; kill -9 $$", "was ended by signal 9, after 3 samples");
  expect_failure("cat x0 y0; sleep 50", "wrote nothing for 1 s, after 3 samples");
  expect_failure("cat x0 y0; exec >&-; sleep 50",
                 "closed its output, but runs on after 1 s, after 3 samples");
  expect_failure("cat x0 y0 x1", "after 3 samples, batch 2, column 'y': the output ends");
  expect_failure("cat x0 y0 y1 x1",
                 "after 3 samples, batch 2, column 'x': x f32[1] becomes x i64[]");
  expect_error("true", "&stream", "holds no sample");
  expect_error("cat x0 y0", "&stream&val=0.5", "option val holds out rows by their index");
  expect_error("cat x0 y0", "&stream&split=test", "option split holds out rows by their index");
  expect_error("cat x0 y0", "&stream&memory=1", "option memory is of data without stream");
  expect_error("cat x0 y0", "&stream&shuffle=1", "add shuffle_buffer=N");
  expect_error("cat x0 y0", "&shuffle_buffer=4", "option shuffle_buffer is of a stream");
  expect_error("cat x0 y0", "&stream&shuffle_buffer=0", "shuffle_buffer=0 must be an integer");
  expect_error("cat x0 y0", "&streams", "'streams' is not option=value");
  expect_user_error([&] { open_data(spec("cat x0 y0", "&stream")).dataset(); },
                    "is a stream, not in memory");
  expect_user_error([&] { open_data("digits?stream"); }, "no option or column 'stream'");
}

TEST_F(Pipe, AStopEndsTheCommand) {
  std::stop_source stop;
  const OpenOptions options{.stop = stop.get_token()};
  const Stopwatch watch;
  std::jthread request([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  for (const std::string command : {"while cat x0 y0; do :; done", "sleep 50"}) {
    expect_user_error([&] { open_data(spec(command, ""), "train", options); }, "is no longer read");
  }
  EXPECT_LT(watch.ms(), 20'000);
}

TEST_F(Pipe, AStalledProcessIsEnded) {
  const Stopwatch watch;
  expect_error("cat x0; trap '' TERM; sleep 50", "&timeout=1", "wrote nothing for 1 s");
  EXPECT_LT(watch.ms(), 20'000);
}

TEST_F(Pipe, MistakesAreNamed) {
  expect_error("cat x0 y0; exit 3", "", "exited with code 3");
  expect_error("cat x0 y0; kill -9 $$", "", "was ended by signal 9");
  expect_error("cat x0; head -c 100 y0; exit 4", "", "exited with code 4");
  expect_error("cat x0; head -c 100 y0", "",
               "batch 1, column 'y': the output ends before the array does");
  expect_error("cat x0 y0 x1", "", "batch 2, column 'y': the output ends before the array does");
  expect_error("echo hello", "", "batch 1, column 'x': not an array in .npy format");
  write_plain(dir_.file("v2"), std::string("\x93NUMPY\x02\x00\x76\x00", 10));
  expect_error("cat v2", "", "batch 1, column 'x': not version 1 of the .npy format");
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (400000000,), }\n";
  write_plain(dir_.file("large"), std::string("\x93NUMPY\x01\x00", 8) +
                                      static_cast<char>(header.size()) + '\0' + header);
  expect_error("cat large", "", "the array takes more than 1 GiB; write smaller batches");
  expect_error("cat x0 y1", "", "column 'y': 2 samples, but the first column has 3");
  expect_error("cat x0 y0 y1 x1", "",
               "after 3 samples, batch 2, column 'x': x f32[1] becomes x i64[]");
  expect_error("true", "", "holds no sample");
  expect_error("true", "&timeout=100000", "option timeout=100000 must be at most 86400 s");
  expect_user_error([] { open_data("pipe:true"); }, "name the columns: columns=x,y");
}

}  // namespace
}  // namespace fluid::pipe_test
