// Resumes data-parallel training from a checkpoint.

#include <map>

#include "frontend/fluid.h"
#include "ir/atomic_file.h"
#include "tests/support/parallel_test.h"
#include "tests/support/training_log.h"

namespace fluid::parallel_resume_test {
namespace {

/// A program with all kinds of state that steps carry over. Each rank has statistics of its own
/// samples.
constexpr std::string_view kMoving = R"(program @moving {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %rng = state "rng" : i64[3]
  %w = param "w" {init = "xavier_uniform"} : f32[2, 8]
  %h = matmul(%x, %w) : f32[?, 8]
  %gamma = param "gamma" {init = "constant", value = 1.0} : f32[8]
  %beta = param "beta" {init = "constant", value = 0.0} : f32[8]
  %mean = state "mean" {init = "constant", value = 0.0} : f32[8]
  %var = state "var" {init = "constant", value = 1.0} : f32[8]
  %n, %m, %v = batch_norm(%h, %gamma, %beta, %mean, %var) {eps = 1e-05} : f32[?, 8], f32[8], f32[8]
  %rows = numel {of = f32[?, 1]} : f32[]
  %mean1, %var1 = bn_update(%mean, %var, %m, %v, %rows) {momentum = 0.1} : f32[8], f32[8]
  store "mean" (%mean1)
  store "var" (%var1)
  %d = dropout(%n, %rng) {p = 0.3, stream = 3} : f32[?, 8]
  %u = param "u" {init = "xavier_uniform"} : f32[8, 1]
  %p = matmul(%d, %u) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "adam", lr = 0.01, schedule = "cosine", schedule_steps = 100}
  output "loss" = %loss
}
)";

class ParallelResume : public ParallelTest {
 protected:
  /// The results of a run.
  struct Outcome {
    std::string parameters;                         ///< the file's bytes
    std::string log;                                ///< without times
    std::map<std::string, std::string> checkpoint;  ///< its files' bytes
  };
  Outcome outcome(const std::string& run) const {
    Outcome outcome{read_file(dir_.file(run + ".safetensors")),
                    log_without_times(dir_.file(run + ".json")),
                    {}};
    for (const auto& entry : std::filesystem::directory_iterator(dir_.file(run + "/last"))) {
      outcome.checkpoint[entry.path().filename()] = read_file(entry.path());
    }
    return outcome;
  }

  /// Two ranks train for three epochs of six steps; the last step has 3 samples. Expects that
  /// stopping within the second epoch and resuming gives the results of an uninterrupted run.
  /// Returns the log.
  std::string expect_same_with_stop(const std::string& flags) const {
    const auto train_to = [&](const std::string& name, const std::string& more) {
      const Result result = run(launch(2,
                                       flags + " --batch 10 --epochs 3 --seed 5 --save " + name +
                                           ".safetensors --checkpoint-dir " + name +
                                           " --log-json " + name + ".json " + more,
                                       "moving.fir"));
      EXPECT_EQ(result.code, 0) << result.output;
      return result.output;
    };
    train_to("whole", "");
    train_to("parted", "--max-steps 8");
    const std::string output = train_to("parted", "--resume");
    EXPECT_NE(output.find(": step 8 in epoch 2\n"), std::string::npos) << output;
    EXPECT_EQ(output.find("results differ"), std::string::npos) << output;
    const Outcome whole = outcome("whole"), parted = outcome("parted");
    EXPECT_EQ(std::ranges::count(parted.log, '\n'), 18 + 3) << parted.log;
    EXPECT_EQ(parted.log, whole.log);
    EXPECT_EQ(parted.parameters, whole.parameters);
    EXPECT_EQ(parted.checkpoint.size(), 3U) << "parameters, what else training needs, a manifest";
    EXPECT_EQ(parted.checkpoint, whole.checkpoint);
    return parted.log;
  }

  void SetUp() override {
    ParallelTest::SetUp();
    write_plain(dir_.file("moving.fir"), std::string(kMoving));
  }
};

TEST_F(ParallelResume, IsExact) { expect_same_with_stop(""); }

TEST_F(ParallelResume, IsExactInHalfWithSlicesAndSharedState) {
  const std::string log = expect_same_with_stop(
      "--amp o2 --amp-dtype f16 --loss-scale-interval 4 --zero 1 --micro-batches 2");
  const size_t middle = log.find("\"step\":9,");
  for (const std::string& part : {log.substr(0, middle), log.substr(middle)}) {
    EXPECT_NE(part.find("\"skipped\":true"), std::string::npos) << part;
  }
}

TEST_F(ParallelResume, IsExactWithMeasuredTimesOfKernels) {
  // The product with w1 is large enough to be timed.
  write_plain(dir_.file("moving.fir"), R"(program @wide {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w0 = param "w0" {init = "xavier_uniform"} : f32[2, 512]
  %w1 = param "w1" {init = "xavier_uniform"} : f32[512, 512]
  %w2 = param "w2" {init = "xavier_uniform"} : f32[512, 1]
  %h0 = matmul(%x, %w0) : f32[?, 512]
  %h1 = matmul(%h0, %w1) : f32[?, 512]
  %p = matmul(%h1, %w2) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "adam", lr = 0.001}
  output "loss" = %loss
}
)");
  expect_same_with_stop("--tune --cache-dir kernels");
  const std::string manifest = outcome("parted").checkpoint.at("manifest.json");
  EXPECT_NE(manifest.find("\"kernels "), std::string::npos) << "the checkpoint has no times";
}

/// Writes a classifier of positive values as moving.fir. The statistics of its output "auc" are the
/// rows of the samples, which each rank keeps for its own.
void write_classifier(const std::string& path) {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, 2}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value p = linear(x, {.units = 1});
  const Value loss = mean(mse_loss(p, y));
  net.output("loss", loss);
  const Value label = cast(greater(y, scalar_like(y, 0)), i64);
  net.output("auc", roc_auc(reshape(p, {kBatch}), reshape(label, {kBatch})));
  minimize(loss, SGD{.lr = 1e-4});
  net.save(path);
}

TEST_F(ParallelResume, IsExactWithMetricsOfRows) {
  write_classifier(dir_.file("moving.fir"));
  const std::string log = expect_same_with_stop("");
  EXPECT_NE(log.find("\"auc\""), std::string::npos) << log;
}

TEST_F(ParallelResume, KeepsMetricsOfRowsInAnotherWorld) {
  write_classifier(dir_.file("line.fir"));
  const std::string flags = "--dtype f64 --checkpoint-dir ck --resume --log-json log.json ";
  ASSERT_EQ(run(launch(2, flags + "--batch 6 --max-steps 4")).code, 0);
  ASSERT_EQ(run(launch(3, flags + "--batch 4 --max-steps 6")).code, 0);
  const Result more = run(train(flags + "--batch 12 --epochs 1"));
  ASSERT_EQ(more.code, 0) << more.output;
  ASSERT_EQ(run(train("--dtype f64 --batch 12 --epochs 1 --log-json one.json")).code, 0);
  const auto auc = [&](const std::string& name) {
    return logged(dir_.file(name), "epoch").at(0).at("auc").get<double>();
  };
  EXPECT_NEAR(auc("log.json"), auc("one.json"), 1e-9);
  EXPECT_LT(auc("one.json"), 1) << "a wrong order of samples changes nothing";
}

TEST_F(ParallelResume, MayBeInAnotherWorld) {
  run_command("sed -i s/sgd/adam/ " + dir_.file("line.fir"));
  const std::string flags = "--dtype f64 --checkpoint-dir ck --resume --log-json log.json ";
  ASSERT_EQ(run(launch(2, flags + "--zero 1 --batch 6 --max-steps 4")).code, 0);
  const Result more = run(launch(3, flags + "--zero 1 --batch 4 --epochs 2"));
  EXPECT_EQ(more.code, 0) << more.output;
  EXPECT_NE(more.output.find("world 3 (was 2)"), std::string::npos) << more.output;
  ASSERT_EQ(run(train("--dtype f64 --batch 12 --epochs 2 --log-json one.json")).code, 0);
  expect_losses("log.json", "one.json");
}

}  // namespace
}  // namespace fluid::parallel_resume_test
