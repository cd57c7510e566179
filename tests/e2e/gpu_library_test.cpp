// Whole programs whose products of matrices go to the library of a GPU, for which the host stands
// in. Results are those of the CPU's generated kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "executor/checkpoint/checkpoint.h"
#include "executor/device/out_of_memory.h"
#include "executor/executor.h"
#include "executor/gpu/gpu_device.h"
#include "executor/gpu/gpu_target.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "tests/support/count_of.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::gpu_library_test {
namespace {

using fluid::testing::count_of;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;
using fluid::testing::worst_difference;

constexpr int64_t kIn = 96, kHidden = 128, kClasses = 64;
constexpr int64_t kBatch64 = 64;
constexpr int64_t kWorkspace = 1 << 20;
constexpr std::string_view kKernel = "kernel = \"cublaslt.matmul\"";

constexpr int kFirstLayerLine = __LINE__ + 7;

/// Three dense layers, wide enough for a library.
Program wide_network() {
  Program net("wide");
  const Value x = net.data("x", {kBatch, kIn}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = relu(linear(x, {.units = kHidden}));  // kFirstLayerLine
  h = relu(linear(h, {.units = kHidden}));
  const Value logits = linear(h, {.units = kClasses});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("prob", softmax(logits));
  minimize(loss, Momentum{.lr = 0.05});
  return net;
}

Batch batch_of(int64_t n, int64_t first = 0) {
  Tensor x(f32, {n, kIn}), label(i64, {n});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] =
        std::sin(static_cast<float>(i + first * kIn * kBatch64) * 0.37f);
  }
  for (int64_t i = 0; i < n; ++i) {
    label.as<int64_t>()[static_cast<size_t>(i)] = (3 * i + first) % kClasses;
  }
  return {.size = n, .columns = {{"x", x}, {"label", label}}};
}

std::unique_ptr<Device> stand_in(const std::string& cache_dir = "", bool tune = true) {
  return testing::stand_in({.cache_dir = cache_dir, .libraries = {kWorkspace}, .tune = tune});
}

/// How far parameters and losses are from the CPU's after some steps.
double worst_after_training(ExecutorOptions options, int steps = 2) {
  Executor gpu(wide_network(), stand_in(), options);
  EXPECT_GT(count_of(gpu.text(Mode::train, kBatch64), kKernel), 5);
  options.debug.libraries = false;
  Executor cpu(wide_network(), fluid::cpu(), options);
  std::vector<Batch> batches;
  for (int step = 0; step < steps; ++step) batches.push_back(batch_of(kBatch64, step));
  return worst_difference(cpu, gpu, batches);
}

class GpuLibrary : public testing::HostGpuTest {};

TEST_F(GpuLibrary, TrainsAsTheCpuDoesWheneverWorkIsDone) {
  for (const HostPace pace : {HostPace::early, HostPace::late, HostPace::random}) {
    fluid::testing::reset_host_gpu({.pace = pace});
    EXPECT_LT(worst_after_training({.batch = kBatch64}), 2e-5);
  }
}

TEST_F(GpuLibrary, TrainsInF64AsTheCpuDoes) {
  EXPECT_LT(worst_after_training({.batch = kBatch64, .precision = {.dtype = f64}}), 1e-12);
}

TEST_F(GpuLibrary, TrainsInHalvesAsTheCpuDoes) {
  const AmpOptions o1{.dtype = bf16}, o2{.dtype = f16, .level = AmpLevel::o2};
  EXPECT_LT(worst_after_training({.batch = kBatch64, .precision = {.amp = o1}}), 2e-2);
  EXPECT_LT(worst_after_training({.batch = kBatch64, .precision = {.amp = o2}}), 2e-3);
}

/// The gradient of a micro-batch is added to earlier gradients in place.
TEST_F(GpuLibrary, AddsUpTheGradientsOfMicroBatches) {
  const ExecutorOptions options{.batch = kBatch64, .micro_batches = 2};
  EXPECT_LT(worst_after_training(options), 2e-5);
  Executor gpu(wide_network(), stand_in(), options);
  const std::string text = gpu.text(Mode::train, kBatch64);
  EXPECT_GE(count_of(text, "in_place = 2, " + std::string(kKernel)), 3) << text;
  Executor whole(wide_network(), stand_in(), {.batch = kBatch64});
  EXPECT_EQ(whole.text(Mode::train, kBatch64).find("in_place"), std::string::npos);
}

TEST_F(GpuLibrary, TakesReluAlongWhereNothingIsTrained) {
  const Batch samples = batch_of(kBatch64);
  Executor gpu(wide_network(), stand_in()), cpu(wide_network(), fluid::cpu());
  gpu.prepare({.predict = {kBatch64}});
  cpu.prepare({.predict = {kBatch64}});
  const Tensor found = gpu.predict(samples)["prob"], expected = cpu.predict(samples)["prob"];
  for (int64_t i = 0; i < found.numel(); ++i) EXPECT_NEAR(found.at(i), expected.at(i), 1e-6);
  const std::string text = gpu.text(Mode::predict, kBatch64);
  EXPECT_EQ(count_of(text, kKernel), 3);
  EXPECT_EQ(count_of(text, "= relu("), 2);
}

TEST_F(GpuLibrary, RoundsToTf32WhereItIsAllowedTo) {
  const double exact = worst_after_training({.batch = kBatch64}, 1);
  const double rounded = worst_after_training({.batch = kBatch64, .gpu = {.tf32 = true}}, 1);
  EXPECT_LT(exact, 2e-5);
  EXPECT_GT(rounded, 10 * exact);
  EXPECT_LT(rounded, 2e-2);
}

TEST_F(GpuLibrary, HasTheSameBitsAgain) {
  const TempDir dir;
  std::vector<std::byte> first;
  for (int run = 0; run < 3; ++run) {
    fluid::testing::reset_host_gpu({.pace = HostPace::random, .seed = static_cast<uint64_t>(run)});
    Executor gpu(wide_network(), stand_in(dir.path()), {.batch = kBatch64});
    for (int step = 0; step < 2; ++step) gpu.run(batch_of(kBatch64, step));
    const std::vector<std::byte> bytes = parameter_bytes(gpu);
    if (run == 0) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

TEST_F(GpuLibrary, ACheckpointHoldsWhatWasChosen) {
  const TempDir dir;
  std::map<std::string, std::string> decided;
  {
    Executor gpu(wide_network(), stand_in("", false), {.batch = kBatch64});
    decided = gpu.snapshot().tuning_record;
    EXPECT_GT(decided.size(), 5U);
    CheckpointDirectory(dir.file("saved")).save(gpu.snapshot(), {});
  }
  const std::optional<Checkpoint> read = newest_checkpoint(dir.file("saved"));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->snapshot.tuning_record, decided);
  fluid::testing::reset_host_gpu({});
  fluid::testing::fail_host_gpu("matmul_algorithms", fluid_gpu_failed);  // no further call
  Executor later(wide_network(),
                 gpu_device(host_gpu_table(), {.libraries = {kWorkspace},
                                               .tune = false,
                                               .tuning_record = read->snapshot.tuning_record}),
                 {.batch = kBatch64});
  later.restore(read->snapshot);
  later.run(batch_of(kBatch64));
  EXPECT_EQ(later.snapshot().tuning_record, decided);
}

/// Tuning runs only if its choices can be stored. Otherwise a later run might choose differently.
TEST_F(GpuLibrary, TimesOnlyWhatItCanKeep) {
  const TempDir dir;
  const auto times = [](const std::string& cache_dir, bool tune) {
    fluid::testing::reset_host_gpu({});
    fluid::testing::fail_host_gpu("event_milliseconds", fluid_gpu_failed);
    try {
      Executor(wide_network(), stand_in(cache_dir, tune), {.batch = kBatch64});
      return false;
    } catch (const DeviceError&) {
      return true;
    }
  };
  EXPECT_FALSE(times("", true));
  EXPECT_FALSE(times(dir.path(), false));
  EXPECT_TRUE(times(dir.path(), true));
}

/// The workspace is one stretch, whatever the algorithm needs of it.
TEST_F(GpuLibrary, TheMemoryTakenIsThatPlannedWithoutAGpu) {
  FluidGpuDescription described = {};
  ASSERT_EQ(host_gpu_table().describe(0, &described), fluid_gpu_ok);
  const Program net = wide_network();
  const Options options{.mode = Mode::train, .batch = kBatch64};
  const auto planned = [&](int64_t workspace) {
    const auto program = net.ir().clone();
    run_passes(*program, pipeline(options), options, GpuTarget(described, {workspace}));
    return memory_plan(*program, options);
  };
  const TempDir dir;
  for (const bool tune : {false, true}) {
    Executor gpu(wide_network(), stand_in(dir.path(), tune), {.batch = kBatch64});
    EXPECT_EQ(gpu.memory().transient, planned(kWorkspace).transient);
    EXPECT_EQ(gpu.memory().slots, 2 * (planned(kWorkspace).feeds + planned(kWorkspace).outputs));
  }
  const int64_t small = int64_t{4} << 20;  // share of kGpuWorkspace that products of this size get
  const int64_t part = small / (kGpuWorkspace / kWorkspace);
  EXPECT_EQ(planned(kWorkspace).at_peak.at(RangeCategory::workspace), planned_workspace(part));
  EXPECT_EQ(planned(0).at_peak.at(RangeCategory::workspace), planned_workspace(small));
  EXPECT_LT(planned(0).transient, small + (1 << 20));
}

/// A product comes before the labels are looked at, and nothing keeps it from running.
TEST_F(GpuLibrary, AProductNeverWritesAVariable) {
  const TempDir dir;
  std::ofstream(dir.file("kept.fir")) << R"(program @kept {
  %x = data "x" : f32[?, 96]
  %label = data "label" : i64[?]
  %w = param "w" {init = "xavier_uniform"} : f32[96, 64]
  %kept = state "kept" : f32[96, 64]
  %y = matmul(%x, %w) : f32[?, 64]
  %next = matmul(%x, %y) {transpose_a = true} : f32[96, 64]
  store "kept" (%next)
  %each = softmax_cross_entropy(%y, %label) : f32[?]
  %loss = mean(%each) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)";
  const Program net = Program::load(dir.file("kept.fir"));
  Executor gpu(net, stand_in(), {.batch = kBatch64});
  EXPECT_GE(count_of(gpu.text(Mode::train, kBatch64), kKernel), 2);
  const auto kept = [&] {
    const Tensor value = gpu.snapshot().find("kept")->value.copy();
    const auto* bytes = static_cast<const std::byte*>(value.data());
    return std::vector<std::byte>(bytes, bytes + value.bytes());
  };
  gpu.run(batch_of(kBatch64));
  const std::vector<std::byte> before = kept();
  Batch bad = batch_of(kBatch64, 1);
  bad.columns[1].second.as<int64_t>()[5] = kClasses;
  expect_user_error([&] { gpu.run(bad).wait(); }, "the step was not applied");
  EXPECT_EQ(kept(), before);
  gpu.run(batch_of(kBatch64, 1));
  EXPECT_NE(kept(), before);
}

/// Preparing a step runs its products once, on arbitrary memory contents.
TEST_F(GpuLibrary, FeedsThatASlotHoldsAreNotLostToPreparing) {
  Executor gpu(wide_network(), stand_in(), {.batch = kBatch64});
  gpu.prepare({.predict = {kBatch64}});
  Batch samples = batch_of(kBatch64);
  samples.id = 7;
  const Tensor expected = gpu.predict(samples)["prob"].copy();
  for (const int64_t batch : {32, 48, 40}) {
    gpu.prepare({.eval = {batch}});
    const Tensor found = gpu.predict(samples)["prob"];
    for (int64_t i = 0; i < found.numel(); ++i) ASSERT_EQ(found.at(i), expected.at(i)) << batch;
  }
}

TEST_F(GpuLibrary, IsToldToFailWhileAStepIsPrepared) {
  for (const char* call : {"matmul_algorithms", "matmul_plan_create", "multiply"}) {
    fluid::testing::reset_host_gpu({});
    fluid::testing::fail_host_gpu(call, fluid_gpu_failed, 3);
    EXPECT_TRUE(states(
        error_of<DeviceError>([] { Executor(wide_network(), stand_in(), {.batch = kBatch64}); }),
        std::string(call) + " was told to fail"));
    EXPECT_EQ(host_gpu_objects(), 0) << call;
  }
}

/// Where the factors of products lay that were computed outside of a capture, and where the largest
/// stretch of memory was.
struct Seen {
  std::vector<const void*> factors;
  const std::byte* arena = nullptr;
  int64_t largest = 0;
  bool captures = false;
};
Seen seen;

/// The functions of the stand-in, which also record their calls in `seen`.
FluidGpuTable seeing_table() {
  FluidGpuTable table = host_gpu_table();
  table.allocate = [](FluidGpu* gpu, int64_t bytes, void** address) {
    const FluidGpuResult result = host_gpu_table().allocate(gpu, bytes, address);
    if (bytes > seen.largest) seen.arena = static_cast<const std::byte*>(*address);
    seen.largest = std::max(seen.largest, bytes);
    return result;
  };
  table.capture_begin = [](FluidGpuStream* stream) {
    seen.captures = true;
    return host_gpu_table().capture_begin(stream);
  };
  table.capture_end = [](FluidGpuStream* stream, FluidGpuGraph** graph) {
    seen.captures = false;
    return host_gpu_table().capture_end(stream, graph);
  };
  table.plan_execute = [](FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                          const FluidGpuOperands* f) {
    for (const void* factor : {f->a, f->b, f->addend, f->bias}) {
      if (factor != nullptr && !seen.captures) seen.factors.push_back(factor);
    }
    return host_gpu_table().plan_execute(stream, gpu_plan, f);
  };
  return table;
}

/// Tuning writes noise to the step's memory only; variables keep their values.
TEST_F(GpuLibrary, TriesItsWaysBesideTheVariables) {
  seen = {};
  const FluidGpuTable table = seeing_table();
  const TempDir dir;
  Executor gpu(wide_network(),
               gpu_device(table, {.cache_dir = dir.path(), .libraries = {kWorkspace}}),
               {.batch = kBatch64});
  const std::byte* behind_variables = seen.arena + gpu.memory().state;
  ASSERT_EQ(seen.largest, gpu.memory().total);
  EXPECT_GT(seen.factors.size(), 15U);
  for (const void* factor : seen.factors) {
    EXPECT_GE(static_cast<const std::byte*>(factor), behind_variables);
  }
  Executor untuned(wide_network(), stand_in(), {.batch = kBatch64});
  EXPECT_EQ(parameter_bytes(gpu), parameter_bytes(untuned));
}

/// If the library fails only when it runs a kernel, the program is recompiled without that kernel.
TEST_F(GpuLibrary, LeavesToGeneratedCodeWhatFailsAsItIsComputed) {
  for (const FluidGpuResult result : {fluid_gpu_invalid_usage, fluid_gpu_failed}) {
    const TempDir dir;
    fluid::testing::reset_host_gpu({.most_rows_computed = 0, .rejection_result = result});
    Executor gpu(wide_network(), stand_in(dir.path()), {.batch = kBatch64});
    EXPECT_EQ(count_of(gpu.text(Mode::train, kBatch64), kKernel), 0);
    const std::vector<std::string> said = gpu.compile_report().library_rejections;
    const std::string line =
        "cublaslt.matmul cannot compute f32 64 x 128 of 96, with bias with a workspace of 64.00 "
        "KiB (no engine computes so many rows): code is generated";
    EXPECT_EQ(std::ranges::count(said, line), 1) << ::testing::PrintToString(said);
    Executor cpu(wide_network(), fluid::cpu(), {.batch = kBatch64, .debug = {.libraries = false}});
    EXPECT_LT(worst_difference(cpu, gpu, {batch_of(kBatch64), batch_of(kBatch64, 1)}), 2e-5);
    fluid::testing::change_host_gpu({});
    Executor later(wide_network(), stand_in(dir.path()), {.batch = kBatch64});
    const bool forgotten = count_of(later.text(Mode::train, kBatch64), kKernel) > 0;
    EXPECT_EQ(forgotten, result == fluid_gpu_failed) << "which may not happen again";
  }
}

/// Steps that are already prepared do not change.
TEST_F(GpuLibrary, LeavesStepsAloneWhereAnotherFailsAsItIsComputed) {
  Executor gpu(wide_network(), stand_in(), {.batch = kBatch64});
  Executor same(wide_network(), stand_in(), {.batch = kBatch64});
  const std::string before = gpu.text(Mode::train, kBatch64);
  gpu.run(batch_of(kBatch64));
  same.run(batch_of(kBatch64));
  fluid::testing::change_host_gpu({.most_rows_computed = kBatch64 - 1});
  gpu.prepare({.eval = {kBatch64}});
  EXPECT_EQ(count_of(gpu.text(Mode::eval, kBatch64), kKernel), 0);
  EXPECT_EQ(gpu.text(Mode::train, kBatch64), before);
  fluid::testing::change_host_gpu({});
  same.prepare({.eval = {kBatch64}});
  EXPECT_GT(count_of(same.text(Mode::eval, kBatch64), kKernel), 0);
  const Batch samples = batch_of(kBatch64, 1);
  EXPECT_LT(worst_difference(gpu.eval(samples)["prob"], same.eval(samples)["prob"]), 1e-6);
  gpu.run(samples);
  same.run(samples);
  EXPECT_EQ(parameter_bytes(gpu), parameter_bytes(same));
}

const std::string kFirstRejection =
    "fc0 @ gpu_library_test.cpp:" + std::to_string(kFirstLayerLine) +
    ": cublaslt.matmul cannot compute f32 64 x 128 of 96, with bias with a workspace of 64.00 KiB "
    "(no engine computes so many rows)";

/// The first reason is said where generated code fails as well, whichever of its modules it is.
TEST_F(GpuLibrary, SaysWhyGeneratedCodeWasTried) {
  unsetenv("FLUID_KERNEL_CACHE");  // loads fewer modules
  const std::string why = "module_load was told to fail";
  for (const auto& [result, then] :
       {std::pair(fluid_gpu_failed, "; generated code fails too: " + why + "; use the place cpu"),
        std::pair(fluid_gpu_out_of_memory, "; generated code lacks the memory: " + why)}) {
    std::vector<std::string> said;
    do {
      fluid::testing::reset_host_gpu({.most_rows_computed = 0});
      fluid::testing::fail_host_gpu("module_load", result, static_cast<int>(said.size()));
      try {
        Executor(wide_network(), stand_in(), {.batch = kBatch64});
        said.emplace_back();
      } catch (const DeviceError& e) {
        said.emplace_back(e.what());
        EXPECT_EQ(dynamic_cast<const OutOfMemory*>(&e) != nullptr,
                  result == fluid_gpu_out_of_memory);
      }
      EXPECT_EQ(host_gpu_objects(), 0);
    } while (!said.back().empty());
    ASSERT_GE(said.size(), 3U);
    EXPECT_TRUE(said.front().starts_with(why)) << said.front();
    EXPECT_TRUE(said.at(said.size() - 2).starts_with(kFirstRejection + then))
        << said.at(said.size() - 2);
  }
}

/// A step that is bound again, as other processes have chosen otherwise, is not compiled again.
TEST_F(GpuLibrary, SaysWhatToDoWhereAKnownStepFails) {
  const Program net = wide_network();
  const ExecutorOptions options{.batch = kBatch64};
  Session session(net.ir().clone(), stand_in(), session_options(options));
  Options step = session_options(options).passes;
  step.batch = kBatch64;
  session.prepare(step);
  std::map<std::string, std::string> others = session.device().tuning_record();
  for (auto& [key, choice] : others) choice = "none";
  fluid::testing::change_host_gpu({.most_rows_computed = 0});
  const std::string said =
      kFirstRejection + "; start the program again: code is generated for it then";
  EXPECT_EQ(error_of<DeviceError>([&] { session.adopt_tuning_record(others); }), said);
  step.batch = kBatch64 / 2;
  EXPECT_EQ(error_of<DeviceError>([&] { session.prepare(step); }), said);
}

/// Another way is taken, and said so; it is not what the next run finds.
TEST_F(GpuLibrary, SaysThatAWayLackedMemory) {
  const TempDir dir;
  fluid::testing::reset_host_gpu({.split_k_is_fast = true});
  fluid::testing::fail_host_gpu("multiply", fluid_gpu_out_of_memory);
  const auto two_ways = [&] {
    return testing::stand_in({.cache_dir = dir.path(), .libraries = {8 * kWorkspace}});
  };
  Executor gpu(wide_network(), two_ways(), {.batch = kBatch64});
  const std::vector<std::string> said = gpu.compile_report().library_rejections;
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said.front().starts_with("the GPU lacked memory for one of the algorithms of f32 "))
      << said.front();
  gpu.run(batch_of(kBatch64));
  Executor next(wide_network(), two_ways(), {.batch = kBatch64});
  EXPECT_TRUE(next.compile_report().library_rejections.empty());
  EXPECT_EQ(next.snapshot().tuning_record.size(), gpu.snapshot().tuning_record.size());
  EXPECT_NE(next.snapshot().tuning_record, gpu.snapshot().tuning_record);
}

TEST_F(GpuLibrary, ProfilesItsProducts) {
  Executor gpu(wide_network(), stand_in(),
               {.batch = kBatch64, .profile = ProfileOptions{.warm_up = 0, .steps = 1}});
  gpu.run(batch_of(kBatch64));
  const std::string table = gpu.profile().table(gpu.peak_rates());
  EXPECT_NE(table.find("cublaslt.matmul"), std::string::npos) << table;
}

TEST_F(GpuLibrary, RejectsAWorkspaceThatIsNone) {
  expect_user_error([] { Executor(wide_network(), stand_in(), {.gpu = {.workspace = -1}}); },
                    "a workspace of -1 bytes");
}

}  // namespace
}  // namespace fluid::gpu_library_test
