// Random programs, trained for a step: every variable and output as an interpreter of the ops'
// definitions gives it, op by op.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

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

/// One training step in f64 on the variables that `exe` has, nothing fused.
Interpreted reference_step(const RandomTraining& training, Executor& exe) {
  const std::unique_ptr<ir::Program> program = training.program.ir().clone();
  Options options;
  options.dtype = f64;
  options.batch = training.batch.size;
  run_passes(*program,
             {check_recorded_pass(), set_dtype_pass(), infer_types_pass(), append_backward_pass(),
              expand_optimizer_pass()},
             options, PlainTarget());
  NamedTensors sources;
  for (const auto& [name, column] : training.batch.columns) {
    sources[name] = is_float(column.dtype()) ? column.cast(f64) : column;
  }
  for (const std::string& name : exe.parameters()) sources[name] = exe.parameter(name).cast(f64);
  for (const auto& op : program->main().ops) {  // counters
    if (op->name == "state" && !sources.contains(op->symbol)) {
      sources[op->symbol] = Tensor(op->results[0].type.dtype, {});
    }
  }
  return interpret(program->main(), sources, {.batch = training.batch.size});
}

void expect_near(const Tensor& actual, const Tensor& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.numel(), expected.numel()) << what;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double e = expected.at(i);
    if (std::isnan(e) && std::isnan(actual.at(i))) continue;
    ASSERT_NEAR(actual.at(i), e, tolerance * (1 + std::abs(e))) << what << ", element " << i;
  }
}

void check(uint64_t seed, DType dtype, double tolerance) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " in " + std::string(name_of(dtype)));
  const RandomTraining training = random_training(seed);
  Executor exe(
      training.program, cpu(),
      {.batch = training.batch.size,
       .seed = seed,
       .threads = seed % 3 == 0 ? 2 : 1,
       .precision = {.dtype = dtype},
       .debug = {.verify_plan = seed % 4 < 2, .fuse = seed % 5 != 0, .libraries = seed % 7 < 4}});
  const Interpreted expected = reference_step(training, exe);
  const OutputViews outputs = exe.run(training.batch);
  for (const auto& [name, value] : expected.outputs) {
    expect_near(outputs[name], value, tolerance, name);
  }
  for (const std::string& name : exe.parameters()) {
    if (!expected.stores.contains(name)) continue;
    expect_near(exe.parameter(name), expected.stores.at(name), tolerance, name);
  }
  for (int step = 0; step < 2; ++step) exe.run(training.batch);
}

/// The program is the same after it was written and read, as text and in the .fluid format.
void expect_same_after_files(uint64_t seed) {
  const RandomTraining training = random_training(seed);
  const ir::Program& program = training.program.ir();
  const std::string text = ir::print(program);
  const TempDir folder;
  for (const char* name : {"p.fir", "p.fluid"}) {
    const std::string path = folder.file(name);
    save_program(program, path);
    EXPECT_EQ(ir::print(*load_program(path)), text) << "seed " << seed << ", " << name;
  }
}

constexpr uint64_t kShards = 10;
constexpr uint64_t kSample = 10, kAll = 1000;  // programs per shard

class RandomPrograms : public ::testing::TestWithParam<uint64_t> {};

/// Half of the programs run in f64 and half in f32. The seed decides whether a program runs without
/// fusion, without library kernels or with a verified memory plan.
TEST_P(RandomPrograms, TrainAsTheirOpsAreDefined) {
  const uint64_t programs = testing::is_full_run() ? kAll : kSample;
  for (uint64_t i = 0; i < programs && !HasFailure(); ++i) {
    const uint64_t seed = GetParam() * programs + i;
    i % 2 == 0 ? check(seed, f64, 1e-9) : check(seed, f32, 2e-3);
    expect_same_after_files(seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomPrograms, ::testing::Range(uint64_t{0}, kShards));

}  // namespace
}  // namespace fluid::testing::random_programs_test
