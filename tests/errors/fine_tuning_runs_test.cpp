// Frozen parameters, groups and adapters in runs of `train`: with micro-batches, in mixed
// precision, as several processes and after a resume they train as in one plain run.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/files/safetensors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::fine_tuning_runs_test {
namespace {

/// The hidden layer has weights a.w, the output layer b.w; AdamW with decay.
constexpr const char* kNetwork = R"(program @net {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %a = param "a.w" {init = "uniform", low = -0.5, high = 0.5} : f32[2, 8]
  %b = param "b.w" {init = "uniform", low = -0.5, high = 0.5} : f32[8, 1]
  %h = matmul(%x, %a) : f32[?, 8]
  %t = tanh(%h) : f32[?, 8]
  %p = matmul(%t, %b) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %s = square(%e) : f32[?, 1]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "adamw", lr = 0.01, weight_decay = 0.1}
  output "loss" = %loss
}
)";

class FineTuningRuns : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("net.fir"), kNetwork);
  }

  /// Runs `train` with two batches of 20 samples an epoch, and returns the saved parameters.
  TensorFile train(const std::string& flags, int64_t ranks = 1) const {
    const std::string launch =
        ranks == 1 ? "" : "launch --nproc " + std::to_string(ranks) + " --log-dir logs -- ";
    const Result result =
        run(launch + "train net.fir --data 'synthetic-linear?n=40&shuffle=1' --epochs 2 --seed 1 " +
            "--save out.safetensors --batch " + std::to_string(20 / ranks) + " " + flags);
    EXPECT_EQ(result.code, 0) << flags << ": " << result.output;
    return read_safetensors(dir_.file("out.safetensors"));
  }

  static void expect_equal(const TensorFile& one, const TensorFile& other, double tolerance,
                           const std::string& what) {
    ASSERT_EQ(one.tensors.size(), other.tensors.size()) << what;
    for (const auto& [name, value] : one.tensors) {
      const Tensor* also = other.find(name);
      ASSERT_NE(also, nullptr) << what << ": " << name;
      for (int64_t i = 0; i < value.numel(); ++i) {
        EXPECT_NEAR(also->at(i), value.at(i), tolerance) << what << ": " << name << " " << i;
      }
    }
  }

  /// Trains with `flags` in each way, and expects that all give the same parameters.
  void expect_same_in_all_runs(const std::string& flags) const {
    const TensorFile plain = train("--dtype f64 " + flags);
    const auto expect_run = [&](const std::string& way, int64_t ranks, double tolerance) {
      expect_equal(plain, train(way + " " + flags, ranks), tolerance, way);
    };
    expect_run("--dtype f64 --micro-batches 4", 1, 1e-12);
    expect_run("--dtype f64", 2, 1e-12);
    expect_run("--dtype f64 --zero 1", 2, 1e-12);
    expect_run("--amp o1 --amp-dtype bf16", 1, 0.02);
    expect_run("--amp o2 --amp-dtype bf16 --micro-batches 2", 1, 0.02);
    train("--dtype f64 --max-steps 3 --checkpoint-dir run " + flags);
    expect_run("--dtype f64 --checkpoint-dir run --resume", 1, 0);
  }
};

TEST_F(FineTuningRuns, OfGroupsAreEqual) {
  const std::string groups = "--freeze a --param 'b.*:lr=3,decay=0.5'";
  expect_same_in_all_runs(groups);
  const TensorFile start = train("--dtype f64 --lr 1e-30"), end = train("--dtype f64 " + groups);
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(end.find("a.w")->at(i), start.find("a.w")->at(i));
  EXPECT_GT(std::abs(end.find("b.w")->at(0) - start.find("b.w")->at(0)), 1e-3);
}

TEST_F(FineTuningRuns, KeepTheDtypeOfMergedWeights) {
  const TensorFile base = train("--dtype f64");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("base.safetensors"));
  const TensorFile adapters =
      train("--dtype f64 --params base.safetensors --lora 'a:rank=1,alpha=1'");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("lora.safetensors"));
  const Result result = run(
      "merge net.fir --params base.safetensors --adapters lora.safetensors --save m.safetensors");
  ASSERT_EQ(result.code, 0) << result.output;
  const TensorFile merged = read_safetensors(dir_.file("m.safetensors"));
  ASSERT_EQ(merged.find("a.w")->dtype(), f64);
  EXPECT_DOUBLE_EQ(merged.find("a.w")->at(0),
                   base.find("a.w")->at(0) +
                       adapters.find("a.w.lora_a")->at(0) * adapters.find("a.w.lora_b")->at(0));
  EXPECT_EQ(merged.find("b.w")->at(0), base.find("b.w")->at(0)) << "not adapted";
}

TEST_F(FineTuningRuns, OfAdaptersAreEqual) {
  expect_same_in_all_runs("--lora 'a:rank=2,alpha=4' --lora 'b:rank=1'");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("lora.safetensors"));
  EXPECT_EQ(read_safetensors(dir_.file("lora.safetensors")).tensors.size(), 4U);
  train("--lr 1e-30");
  const std::string files = " net.fir --params out.safetensors --adapters lora.safetensors ";
  const Result adapted = run("eval" + files + "--data 'synthetic-linear?n=40'");
  EXPECT_EQ(adapted.code, 0) << adapted.output;
  const std::string checkpoint =
      " net.fir --params out.safetensors --adapters run/last/parameters.safetensors ";
  const Result from_checkpoint = run("eval" + checkpoint + "--data 'synthetic-linear?n=40'");
  ASSERT_EQ(from_checkpoint.code, 0) << from_checkpoint.output;
  EXPECT_EQ(run("merge" + checkpoint + "--save of_checkpoint.safetensors").code, 0);
  const std::string alone = " net.fir --adapters run/last/parameters.safetensors ";
  EXPECT_EQ(run("merge" + alone + "--save alone.safetensors").code, 0);
  expect_equal(read_safetensors(dir_.file("alone.safetensors")),
               read_safetensors(dir_.file("of_checkpoint.safetensors")), 0, "without --params");
  EXPECT_EQ(run("merge" + files + "--save merged.safetensors").code, 0);
  expect_equal(read_safetensors(dir_.file("merged.safetensors")),
               read_safetensors(dir_.file("of_checkpoint.safetensors")), 1e-6, "merged");
  const Result merged =
      run("eval net.fir --params merged.safetensors --data 'synthetic-linear?n=40'");
  const auto loss = [](const Result& r) {
    return std::stod(r.output.substr(r.output.find("loss ") + 5));
  };
  EXPECT_NEAR(loss(merged), loss(adapted), 1e-5 * loss(adapted));
  EXPECT_EQ(read_safetensors(dir_.file("merged.safetensors")).find("a.w")->dtype(), f32);
  EXPECT_NEAR(loss(from_checkpoint), loss(adapted), 1e-5 * loss(adapted));
  const Result replaced =
      run("eval net.fir --params merged.safetensors --adapters run/last/parameters.safetensors "
          "--data 'synthetic-linear?n=40'");
  ASSERT_EQ(replaced.code, 0) << "the checkpoint has the weights, too: " << replaced.output;
  EXPECT_NEAR(loss(replaced), loss(adapted), 1e-5 * loss(adapted));
  EXPECT_TRUE(states(replaced.output, "--params is not read: run/last/parameters.safetensors is"));
  const std::string twice = " net.fir --params merged.safetensors --adapters lora.safetensors ";
  const std::string message =
      "lora.safetensors: the adapters of 'a.w' are merged into the weights already";
  EXPECT_EQ(
      run("train" + files + "--epochs 1 --data 'synthetic-linear?n=40' --save on.safetensors").code,
      0);
  expect_late_error(
      "eval net.fir --params merged.safetensors --adapters on.safetensors "
      "--data 'synthetic-linear?n=40'",
      "on.safetensors: the adapters of 'a.w' are merged into the weights already");
  expect_late_error("eval" + twice + "--data 'synthetic-linear?n=40'", message);
  expect_late_error("train" + twice + "--data 'synthetic-linear?n=40'", message);
  expect_error("merge" + twice + "--save twice.safetensors", message);
  const Result later =
      run("train net.fir --params merged.safetensors --checkpoint-dir more --data "
          "synthetic-linear?n=40");
  ASSERT_EQ(later.code, 0) << later.output;
  expect_error(
      "merge net.fir --params more/last/parameters.safetensors --adapters lora.safetensors "
      "--save twice.safetensors",
      message);
}

TEST_F(FineTuningRuns, OfAdaptersNeedTheWeights) {
  train("--lora 'a:rank=1' --checkpoint-dir run");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("lora.safetensors"));
  const std::string files = " net.fir --params lora.safetensors --adapters lora.safetensors ";
  const std::string message =
      "lora.safetensors: the file holds adapters without 'a.w': give the weights with --params, "
      "and this file with --adapters";
  for (const std::string command : {"eval", "train"}) {
    expect_late_error(command + files + "--data 'synthetic-linear?n=40'", message);
  }
  expect_error("merge" + files + "--save m.safetensors", message);
  expect_error("merge net.fir --adapters lora.safetensors --save m.safetensors",
               "merge needs --params --adapters");
  const Result partial = run("eval" + files + "--params-partial --data 'synthetic-linear?n=40'");
  EXPECT_TRUE(states(partial.output, "2 not in this file of adapters, left as they are: 'a.w'"))
      << partial.output;
  const std::string eval = "eval net.fir --data 'synthetic-linear?n=40' --adapters ";
  const std::string note = "without --params: the frozen weights are untrained";
  EXPECT_TRUE(states(run(eval + "lora.safetensors").output, note));
  const std::string whole = "--adapters run/last/parameters.safetensors ";
  EXPECT_FALSE(states(run(eval.substr(0, eval.rfind("--")) + whole).output, "untrained"));
  const std::string train = "train net.fir --epochs 1 --data 'synthetic-linear?n=40' ";
  EXPECT_TRUE(states(run(train + "--lora a:rank=1").output, note));
  EXPECT_FALSE(states(run(train + whole + "--lora b:rank=1").output, "untrained"));
  for (const std::string file : {"lora.safetensors", "run/last/parameters.safetensors"}) {
    expect_late_error("eval net.fir --data 'synthetic-linear?n=40' --params " + file,
                      file +
                          ": the program lacks the low-rank adapters of the file, such as "
                          "'a.w.lora_a': --adapters or lora_from_file() adds them");
  }
}

TEST_F(FineTuningRuns, OfAdaptersKeepATrainedHead) {
  const std::string base = "--params base.safetensors ";
  train("");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("base.safetensors"));
  const TensorFile first = train(base + "--lora 'a:rank=1' --param 'b.w:train=1'");
  std::filesystem::rename(dir_.file("out.safetensors"), dir_.file("lora.safetensors"));
  const TensorFile second = train(base + "--adapters lora.safetensors");
  ASSERT_EQ(second.tensors.size(), 3U);
  EXPECT_NE(second.find("b.w")->at(0), first.find("b.w")->at(0)) << "trains on";
  const std::string more = base + "--adapters lora.safetensors ";
  const TensorFile frozen = train(more + "--freeze b.w --freeze a.w.lora_a");
  ASSERT_EQ(frozen.tensors.size(), 3U);
  EXPECT_EQ(frozen.find("b.w")->at(0), first.find("b.w")->at(0));
  EXPECT_EQ(frozen.find("a.w.lora_a")->at(0), first.find("a.w.lora_a")->at(0));
  EXPECT_NE(frozen.find("a.w.lora_b")->at(0), first.find("a.w.lora_b")->at(0));
  EXPECT_EQ(train(more + "--lora b:rank=1").tensors.size(), 5U) << "further adapters";
  const std::string sgd = base + "--lora a:rank=1 --optimizer sgd --checkpoint-dir run ";
  train(sgd + "--param b.w:train=1");
  EXPECT_EQ(train(sgd + "--resume").tensors.size(), 3U) << "the checkpoint lists b.w";
}

TEST_F(FineTuningRuns, OfAdaptersResume) {
  const std::string adapters = "--lora a:rank=2,alpha=4 --lora b:rank=1 ";
  const TensorFile plain = train(adapters);
  train(adapters + "--max-steps 3 --checkpoint-dir run");
  const auto expect_resumed = [&](const std::string& flags) {
    std::filesystem::copy(
        dir_.file("run"), dir_.file("more"),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    expect_equal(plain, train("--checkpoint-dir more --resume " + flags), 0, flags);
    std::filesystem::remove_all(dir_.file("more"));
  };
  expect_resumed("--lora b:rank=1 --lora a:rank=2,alpha=4");
  expect_resumed("--adapters run/last/parameters.safetensors");
  const std::string resume =
      "train net.fir --data 'synthetic-linear?n=40&shuffle=1' --batch 20 --checkpoint-dir run "
      "--resume ";
  const Result note = run(resume +
                          "--max-steps 3 --adapters run/last/parameters.safetensors "
                          "--params out.safetensors");
  ASSERT_EQ(note.code, 0) << note.output;
  for (const std::string flag : {"--params", "--adapters"}) {
    EXPECT_TRUE(states(note.output, flag + " is not read: run/step-0000000003 is")) << note.output;
  }
  expect_late_error(
      resume + "--lora a:rank=1 --lora b:rank=1",
      "run/step-0000000003: its adapters differ: the checkpoint has "
      "'a.w:rank=2,alpha=4.0', the program 'a.w:rank=1,alpha=8.0'; resume with --lora, or "
      "with --adapters and the parameters.safetensors of the checkpoint");
  expect_late_error(resume,
                    "only the checkpoint has 'a.w:rank=2,alpha=4.0', 'b.w:rank=1,alpha=8.0'");
  expect_late_error(resume + adapters + "--param b.w:train=1",
                    "parameter 'b.w' is frozen in the checkpoint and trains now");
}

TEST_F(FineTuningRuns, OfAdaptersLeaveOutTiedWeights) {
  std::string text = kNetwork;
  const std::string error = "  %e = sub(%p, %y) : f32[?, 1]\n";
  text.replace(text.find(error), error.size(),
               "  %bt = transpose(%b) : f32[1, 8]\n"
               "  %q = matmul(%p, %bt) : f32[?, 8]\n"
               "  %z = matmul(%q, %b) : f32[?, 1]\n"
               "  %e = sub(%z, %y) : f32[?, 1]\n");
  write_plain(dir_.file("net.fir"), text);
  const std::string reader = "'b.w', which 'transpose' (%bt) reads, too";
  const std::string train = "train net.fir --data 'synthetic-linear?n=40' --batch 20 --lora ";
  const Result left_out = run(train + "'*:rank=1' --save lora.safetensors");
  ASSERT_EQ(left_out.code, 0) << left_out.output;
  EXPECT_TRUE(states(left_out.output, "--lora '*:rank=1': no adapters for " + reader))
      << left_out.output;
  EXPECT_EQ(read_safetensors(dir_.file("lora.safetensors")).tensors.size(), 2U);
  expect_error(train + "b:rank=1", "--lora 'b:rank=1': lora: adapters cannot replace " + reader);
  expect_error(train + "a:rank=1 --param '*:lr=10'",
               "as are all selected parameters; a pattern selects LoRA adapters only if it "
               "contains 'lora_'");
}

TEST_F(FineTuningRuns, OfAdaptersHaveTheirDefaults) {
  std::string text = kNetwork;
  const std::string tanh = "  %t = tanh(%h) : f32[?, 8]\n";
  text.replace(text.find(tanh), tanh.size(),
               "  %c = param \"c.w\" {init = \"uniform\", low = -0.5, high = 0.5} : f32[8, 8]\n"
               "  %i = matmul(%h, %c) : f32[?, 8]\n"
               "  %t = tanh(%i) : f32[?, 8]\n");
  write_plain(dir_.file("net.fir"), text);
  expect_equal(train("--lora c"), train("--lora c:rank=8,alpha=8"), 0, "default");
}

TEST_F(FineTuningRuns, OfAdaptersNameMistakes) {
  const std::string train = "train net.fir --data synthetic-linear ";
  expect_error(train + "--lora :rank=2",
               "--lora ':rank=2': must be PATTERN:rank=N, as in 'attention*:rank=8'");
  expect_error(train + "--lora a:rank=x", "--lora 'a:rank=x': 'rank=x' is neither");
  expect_error(train + "--lora a:rank=2,rank=1", "--lora 'a:rank=2,rank=1': 'rank' is given twice");
  expect_error(train + "--lora '*:rank=9'",
               "--lora '*:rank=9': lora: rank 9 is above min(in, out) = 2 of 'a.w' f32[2, 8]");
  expect_error(train + "--lora c:rank=2",
               "--lora 'c:rank=2': pattern 'c' matches no weight; there are 'a.w', 'b.w'");
  expect_error("merge net.fir --save m.safetensors", "merge needs --params --adapters");
}

}  // namespace
}  // namespace fluid::fine_tuning_runs_test
