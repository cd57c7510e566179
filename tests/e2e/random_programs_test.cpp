// Random programs, trained for a step in several configurations: every variable and output as an
// interpreter of the ops' definitions computes it, op by op.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "executor/executor.h"
#include "ir/print.h"
#include "ops/program_file.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "tests/support/full_run.h"
#include "tests/support/interpreter.h"
#include "tests/support/plain_target.h"
#include "tests/support/random_training.h"
#include "tests/support/temp_dir.h"

namespace fluid::testing::random_programs_test {
namespace {

/// A step in f64 on the variables that `exe` has, nothing fused.
Interpreted reference_step(const RandomTraining& training, Executor& exe, Mode mode) {
  const std::unique_ptr<ir::Program> program = training.program.ir().clone();
  Options options;
  options.mode = mode;
  options.dtype = f64;
  options.batch = training.batch.size;
  run_passes(*program,
             {check_recorded_pass(), set_dtype_pass(), infer_types_pass(), derive_inference_pass(),
              expand_gradients_pass(), append_backward_pass(), clip_gradients_pass(),
              expand_optimizer_pass()},
             options, PlainTarget());
  const auto widened = [](const Tensor& t) { return is_float(t.dtype()) ? t.cast(f64) : t; };
  NamedTensors sources;
  for (const auto& [name, column] : training.batch.columns) sources[name] = widened(column);
  for (const auto& op : program->main().ops) {
    if (op->name == "param" || op->name == "state") {
      sources[op->symbol] = widened(exe.parameter(op->symbol)).copy();
    }
  }
  return interpret(program->main(), sources, {.batch = training.batch.size});
}

/// The outputs and the parameters after a step.
struct Results {
  NamedTensors outputs, parameters;
};

Results results_of(const OutputViews& outputs, Executor& exe) {
  Results results;
  for (const OutputView& o : outputs) {
    results.outputs[o.name] = (o.metric != nullptr ? o.statistics : o.value).copy();
  }
  for (const std::string& name : exe.parameters()) results.parameters[name] = exe.parameter(name);
  return results;
}

void expect_near(const Tensor& actual, const Tensor& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.numel(), expected.numel()) << what;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double e = expected.at(i);
    if (std::isnan(e) && std::isnan(actual.at(i))) continue;
    if (actual.at(i) == e) continue;
    ASSERT_NEAR(actual.at(i), e, tolerance * (1 + std::abs(e))) << what << ", element " << i;
  }
}

void expect_near(const NamedTensors& actual, const NamedTensors& expected, double tolerance) {
  for (const auto& [name, value] : actual) {
    if (expected.contains(name)) expect_near(value, expected.at(name), tolerance, name);
  }
}

void expect_equal(const NamedTensors& actual, const NamedTensors& expected) {
  for (const auto& [name, value] : actual) {
    const Tensor& e = expected.at(name);
    ASSERT_EQ(value.bytes(), e.bytes()) << name;
    EXPECT_EQ(std::memcmp(value.data(), e.data(), static_cast<size_t>(e.bytes())), 0) << name;
  }
}

constexpr size_t kMostOps = 4;

/// A full run draws longer programs, and a tenth of them three times as long: each operation costs
/// about 60 ms, for compiling its kernels in all configurations.
size_t most_ops(uint64_t seed) {
  if (!is_full_run()) return kMostOps;
  return seed % 10 == 0 ? 24 : 8;
}

struct Precision {
  DType dtype;
  double tolerance;
};

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, const Precision& precision)
      : seed_(seed), precision_(precision), training_(random_training(seed, most_ops(seed))) {}

  void check_training() {
    const Results fused = results("fused", {.libraries = false}, 2);
    results("not fused", {.verify_plan = seed_ % 4 == 0, .fuse = false, .libraries = false}, 1);
    results("with libraries", {.verify_plan = seed_ % 8 == 3}, 2);
    if (!is_full_run()) return;
    for (const int threads : {1, 3}) {
      const Results same = results("on other threads", {.libraries = false}, threads);
      expect_equal(same.outputs, fused.outputs);
      expect_equal(same.parameters, fused.parameters);
    }
  }

  /// The program is the same after it was written and read, as text and in the .fluid format.
  void check_files() const {
    const ir::Program& program = training_.program.ir();
    const std::string text = ir::print(program);
    const TempDir folder;
    for (const char* name : {"p.fir", "p.fluid"}) {
      const std::string path = folder.file(name);
      save_program(program, path);
      EXPECT_EQ(ir::print(*load_program(path)), text) << name;
    }
  }

  void check_inference() {
    Executor exe = executor({.libraries = seed_ % 2 == 0}, 2);
    const Interpreted expected = reference_step(training_, exe, Mode::eval);
    for (const bool predicts : {false, true}) {
      const OutputViews outputs =
          predicts ? exe.predict(training_.batch) : exe.eval(training_.batch);
      expect_near(results_of(outputs, exe).outputs, expected.outputs, precision_.tolerance);
    }
  }

  /// Micro-batches change nothing but rounding, unless an op combines samples.
  void check_micro_batches() {
    if (expected_.outputs.empty() || combines_samples()) return;
    ExecutorOptions options = options_of({}, 2);
    options.micro_batches = 2;
    try {
      Executor exe(training_.program, cpu(), options);
      Results got = results_of(exe.run(training_.batch), exe);
      got.outputs.erase("metric");  // counts each micro-batch
      expect_near(got.outputs, expected_.outputs, precision_.tolerance);
      expect_near(got.parameters, expected_.stores, precision_.tolerance);
    } catch (const UserError&) {  // the loss does not decompose
    }
  }

  /// Mixed precision computes about the same loss.
  void check_mixed_precision() {
    ExecutorOptions options = options_of({.libraries = seed_ % 2 == 0}, 1);
    options.precision = {.amp = AmpOptions{.dtype = seed_ % 4 < 2 ? bf16 : f16,
                                           .level = seed_ % 8 < 4 ? AmpLevel::o1 : AmpLevel::o2}};
    Executor exe(training_.program, cpu(), options);
    const double loss = exe.run(training_.batch)["loss"].item();
    EXPECT_NEAR(loss, expected_.outputs.at("loss").item(), 0.5);
    exe.run(training_.batch);
  }

 private:
  ExecutorOptions options_of(const DebugOptions& debug, int threads) const {
    return {.batch = training_.batch.size,
            .seed = seed_,
            .threads = threads,
            .precision = {.dtype = precision_.dtype},
            .debug = debug};
  }
  Executor executor(const DebugOptions& debug, int threads) const {
    return Executor(training_.program, cpu(), options_of(debug, threads));
  }

  /// The results of the first of three steps, which are compared with the interpreter's.
  Results results(const std::string& configuration, const DebugOptions& debug, int threads) {
    SCOPED_TRACE(configuration);
    Executor exe = executor(debug, threads);
    if (expected_.outputs.empty()) expected_ = reference_step(training_, exe, Mode::train);
    Results got = results_of(exe.run(training_.batch), exe);
    expect_near(got.outputs, expected_.outputs, precision_.tolerance);
    expect_near(got.parameters, expected_.stores, precision_.tolerance);
    for (int step = 0; step < 2; ++step) exe.run(training_.batch);
    return got;
  }

  bool combines_samples() const {
    const std::set<std::string> ops = {"batch_norm", "power_iteration"};
    for (const auto& op : training_.program.ir().main().ops) {
      if (ops.contains(op->name)) return true;
    }
    return false;
  }

  uint64_t seed_;
  Precision precision_;
  RandomTraining training_;
  Interpreted expected_;  ///< of a training step
};

constexpr uint64_t kShards = 10;
constexpr uint64_t kSample = 20, kAll = 1000;  // programs per shard

class RandomPrograms : public ::testing::TestWithParam<uint64_t> {};

/// Half of the programs run in f64 and half in f32.
TEST_P(RandomPrograms, TrainAsTheirOpsAreDefined) {
  const uint64_t programs = testing::is_full_run() ? kAll : kSample;
  for (uint64_t i = 0; i < programs && !HasFailure(); ++i) {
    const uint64_t seed = GetParam() * programs + i;
    const Precision precision = i % 2 == 0 ? Precision{f64, 1e-9} : Precision{f32, 2e-3};
    SCOPED_TRACE("seed " + std::to_string(seed) + " in " + std::string(name_of(precision.dtype)));
    RandomProgram program(seed, precision);
    program.check_training();
    program.check_files();
    if (!testing::is_full_run()) continue;
    program.check_inference();
    i % 2 == 0 ? program.check_micro_batches() : program.check_mixed_precision();
  }
}

/// Whether programs compute with the op: others are variables, requests to passes, or parts of
/// compiled programs.
bool computes(const OpDef& def) {
  const Lower& lower = *def.lower;
  return !std::holds_alternative<Source>(lower) && !std::holds_alternative<Store>(lower) &&
         !std::holds_alternative<Directive>(lower) && !std::holds_alternative<FusedOp>(lower) &&
         !std::holds_alternative<CollectiveOp>(lower);
}

TEST(RandomVocabulary, HasAllOpsOfUsers) {
  // Ops that layers record.
  std::set<std::string> missing = {"batch_norm",
                                   "bernoulli",
                                   "categorical",
                                   "dropout",
                                   "dropout2d",
                                   "group_norm",
                                   "instance_norm",
                                   "layer_norm",
                                   "power_iteration",
                                   "random_normal",
                                   "rms_norm",
                                   "random_uniform",
                                   "scaled_dot_product_attention",
                                   "scaled_dot_product_attention_dropout"};
  for (const OpDef& def : op_table()) {
    if (!def.internal && computes(def)) missing.insert(*def.name);
  }
  constexpr uint64_t kSeeds = 4000;
  for (uint64_t seed = 0; seed < kSeeds && !missing.empty(); ++seed) {
    const RandomTraining training = random_training(seed, kMostOps);
    for (const auto& op : training.program.ir().main().ops) missing.erase(op->name);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomPrograms, ::testing::Range(uint64_t{0}, kShards));

}  // namespace
}  // namespace fluid::testing::random_programs_test
