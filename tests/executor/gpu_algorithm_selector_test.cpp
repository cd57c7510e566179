// How a way to compute a product, or a convolution, is chosen, and kept.

#include "executor/gpu_libraries/gpu_algorithm_selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "ir/tensor.h"
#include "tests/support/convolution_data.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"
#include "tests/support/temp_dir.h"

namespace fluid::gpu_algorithm_selector_test {
namespace {

using fluid::testing::fail_host_gpu;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;

constexpr FluidGpuMatmul kProduct = {.operands = fluid_gpu_f32,
                                     .result = fluid_gpu_f32,
                                     .transpose_a = 1,
                                     .m = 4,
                                     .n = 5,
                                     .k = 6,
                                     .a_row_stride = 4,
                                     .b_row_stride = 5,
                                     .result_row_stride = 5,
                                     .count = 1,
                                     .a_matrix_stride = 24,
                                     .b_matrix_stride = 30,
                                     .result_matrix_stride = 20};
constexpr int64_t kWorkspace = 2048;
constexpr int64_t kPartsBytes = 4 * 4 * 5 * 8;  ///< workspace of the host's favourite

class GpuChooserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fluid::testing::reset_host_gpu({});
    gpu_ = std::make_shared<const OpenGpu>(host_gpu_table(), 0);
    memory_ = gpu_->gpu.allocate(4096);
  }
  void TearDown() override {
    memory_ = {};
    gpu_.reset();
    EXPECT_EQ(host_gpu_objects(), 0);
  }

  GpuAlgorithmSelector products(AlgorithmRecord::Settings terms = {.machine = "this",
                                                                   .workspace = 2048}) {
    return {gpu_, {std::move(terms), {dir_.path(), 1 << 20}}};
  }
  FluidGpuOperands factors() const {
    return {.a = memory_.data(),
            .b = memory_.data() + 128,
            .result = memory_.data() + 512,
            .workspace = memory_.data() + 1024};
  }
  /// How often a call of the table is allowed until it fails.
  int calls_of(const std::string& name, GpuAlgorithmSelector& products) const {
    for (int calls = 0;; ++calls) {
      fail_host_gpu(name, fluid_gpu_out_of_memory, calls);
      try {
        products.create_plan(kProduct, factors(), kWorkspace);
        return calls;
      } catch (const DeviceError&) {
        if (calls == 100) return calls;
      }
    }
  }
  bool queries_library(GpuAlgorithmSelector& products) const {
    return calls_of("matmul_algorithms", products) > 0;
  }
  /// The bytes of workspace without which the choice could not run.
  int64_t workspace_of(GpuAlgorithmSelector& products, int64_t allowed = kWorkspace) const {
    const GpuPlan gpu_plan = products.create_plan(kProduct, factors(), allowed);
    FluidGpuOperands f = factors();
    f.workspace = nullptr;
    try {
      gpu_->gpu.execute_plan(gpu_->stream, gpu_plan, f);
      return 0;
    } catch (const DeviceError&) {
      return kPartsBytes;
    }
  }

  TempDir dir_;
  std::shared_ptr<const OpenGpu> gpu_;
  GpuMemory memory_;
};

TEST_F(GpuChooserTest, TheFastestIsChosenNotTheFavourite) {
  GpuAlgorithmSelector timed = products();
  EXPECT_EQ(workspace_of(timed), 0);
  GpuAlgorithmSelector untimed = products({.machine = "this", .workspace = 2048, .tune = false});
  EXPECT_EQ(workspace_of(untimed), kPartsBytes);
}

TEST_F(GpuChooserTest, OnlyWhatFitsTheWorkspaceIsTried) {
  GpuAlgorithmSelector chooser = products({.machine = "this", .workspace = 2048, .tune = false});
  EXPECT_EQ(workspace_of(chooser, kPartsBytes - 1), 0);
  GpuAlgorithmSelector wide = products({.machine = "that", .workspace = 2048, .tune = false});
  EXPECT_EQ(workspace_of(wide), kPartsBytes);
  EXPECT_EQ(workspace_of(wide, kPartsBytes - 1), 0) << "though more was kept";
}

/// The host's clock counts work: each call of the whole product is a piece, and so is the event
/// between two rounds, whose share is an eighth here.
TEST_F(GpuChooserTest, SeveralShortCallsAreTimedAsOne) {
  fluid::testing::change_host_gpu({.work_ms = 0.25F});
  GpuAlgorithmSelector chooser = products();
  chooser.create_plan(kProduct, factors(), kWorkspace);
  EXPECT_FLOAT_EQ(chooser.record().find(kProduct)->ms, 0.25F * (8 + 1) / 8);
}

TEST_F(GpuChooserTest, ALongCallIsTimedAlone) {
  fluid::testing::change_host_gpu({.work_ms = 4});
  GpuAlgorithmSelector chooser = products();
  chooser.create_plan(kProduct, factors(), kWorkspace);
  EXPECT_FLOAT_EQ(chooser.record().find(kProduct)->ms, 4.0F * (1 + 1));
}

/// Steps are recorded.
TEST_F(GpuChooserTest, AWayThatCannotBeRecordedIsPassedOver) {
  for (const bool tune : {true, false}) {
    SCOPED_TRACE(tune);
    fluid::testing::change_host_gpu({.split_k_is_fast = true});
    GpuAlgorithmSelector chooser =
        products({.machine = tune ? "tuned" : "untuned", .workspace = 2048, .tune = tune});
    fail_host_gpu("multiply", fluid_gpu_invalid_usage, 1);
    EXPECT_EQ(workspace_of(chooser), 0) << "not the favourite, which is faster, too";
  }
}

/// Tuning fills the unused memory with noise, and leaves other memory unchanged.
TEST_F(GpuChooserTest, IsTimedOnNoise) {
  constexpr int64_t kBytes = 200'000, kNoise = 150'000;
  const Gpu& gpu = gpu_->gpu;
  const GpuMemory given = gpu.allocate(kBytes), seen = gpu.allocate_host(kBytes);
  gpu.fill(gpu_->stream, given.data(), 0, kBytes);
  products().create_plan(kProduct, factors(), kWorkspace, {{given.data(), kNoise}});
  gpu.copy(gpu_->stream, seen.data(), given.data(), kBytes);
  gpu.synchronize(gpu_->stream);
  std::set<uint16_t> different;
  for (int64_t i = 0; i < kBytes; i += 2) {
    uint16_t half = 0;
    std::memcpy(&half, seen.data() + i, sizeof half);
    if (i >= kNoise) {
      ASSERT_EQ(half, 0) << i;
      continue;
    }
    different.insert(half);
    for (const DType type : {f16, bf16}) {
      const float value = std::abs(half_to_float(half, type));
      ASSERT_TRUE(value > 0.005F && value < 2) << i;
    }
  }
  EXPECT_GT(different.size(), 1000U);
}

TEST_F(GpuChooserTest, WhatWasChosenBeforeMakesNoNoise) {
  products().create_plan(kProduct, factors(), kWorkspace);
  const int64_t copied = fluid::testing::host_gpu_copied();
  products().create_plan(kProduct, factors(), kWorkspace, {{memory_.data(), 4096}});
  EXPECT_EQ(fluid::testing::host_gpu_copied(), copied);
}

/// An engine fails only when it runs.
TEST_F(GpuChooserTest, AWayThatFailsIsPassedOver) {
  GpuAlgorithmSelector chooser = products({.machine = "this", .workspace = 2048, .tune = false});
  fail_host_gpu("multiply", fluid_gpu_invalid_usage);
  EXPECT_EQ(workspace_of(chooser), 0) << "not the favourite, which failed";
}

TEST_F(GpuChooserTest, AChoiceIsMadeOnceAndKept) {
  GpuAlgorithmSelector first = products();
  EXPECT_TRUE(queries_library(first));
  EXPECT_FALSE(queries_library(first)) << "in this process";
  GpuAlgorithmSelector second = products();
  EXPECT_FALSE(queries_library(second)) << "on disk";
  GpuAlgorithmSelector elsewhere = products({.machine = "another", .workspace = 2048});
  EXPECT_TRUE(queries_library(elsewhere));
  GpuAlgorithmSelector wider = products({.machine = "this", .workspace = 2049});
  EXPECT_TRUE(queries_library(wider));
}

/// As a checkpoint keeps it.
TEST_F(GpuChooserTest, WhatAnEarlierRunDecidedHolds) {
  GpuAlgorithmSelector untuned = products({.machine = "this", .workspace = 2048, .tune = false});
  untuned.create_plan(kProduct, factors(), kWorkspace);
  const AlgorithmRecord::Entries decided = untuned.record().entries();
  ASSERT_EQ(decided.size(), 1U);
  GpuAlgorithmSelector timed = products();
  timed.create_plan(kProduct, factors(), kWorkspace);
  const auto [key, fast] = *timed.record().entries().begin();
  const AlgorithmRecord::Entries slow = {{key, decided.begin()->second}};
  GpuAlgorithmSelector later(gpu_, {timed.record().settings(), {dir_.path(), 1 << 20}, slow});
  EXPECT_EQ(workspace_of(later), kPartsBytes) << "though another is on disk";
  EXPECT_EQ(later.record().entries(), slow);
  GpuAlgorithmSelector kept = products();
  kept.create_plan(kProduct, factors(), kWorkspace);
  EXPECT_EQ(kept.record().entries(), timed.record().entries());
}

/// As where a library takes a choice no more, or the disk was damaged.
TEST_F(GpuChooserTest, WhatIsKeptAndDoesNotFitIsChosenAnew) {
  for (const std::string text : {"", "1 0 1 2", "1 0 1 1 0 0 0 0 0 0", "1 9999 1 4 0 0 0 0 0 0"}) {
    GpuAlgorithmSelector first = products();
    first.create_plan(kProduct, factors(), kWorkspace);
    const ObjectCache cache(dir_.path(), 1 << 20);
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      cache.store(entry.path().stem().string(), text);
    }
    GpuAlgorithmSelector second = products();
    EXPECT_TRUE(queries_library(second)) << text;
  }
}

TEST_F(GpuChooserTest, AKeptChoiceMayBeCaptured) {
  products().create_plan(kProduct, factors(), kWorkspace);
  const GpuPlan kept = products().create_plan(kProduct, factors(), kWorkspace);
  gpu_->gpu.begin_capture(gpu_->stream);
  gpu_->gpu.execute_plan(gpu_->stream, kept, factors());
  const GpuGraph graph = gpu_->gpu.end_capture(gpu_->stream);
  gpu_->gpu.launch(graph, gpu_->stream);
  gpu_->gpu.synchronize(gpu_->stream);
}

/// As where several processes take those of the first.
TEST_F(GpuChooserTest, WhatOthersDecidedIsTakenAndKept) {
  GpuAlgorithmSelector timed = products();
  timed.create_plan(kProduct, factors(), kWorkspace);
  const auto [key, fast] = *timed.record().entries().begin();
  fluid::testing::change_host_gpu({.split_k_is_fast = true});
  std::filesystem::remove_all(dir_.path());
  GpuAlgorithmSelector other = products();
  EXPECT_EQ(workspace_of(other), kPartsBytes);
  EXPECT_FALSE(other.adopt_tuning_record(other.record().entries()));
  EXPECT_FALSE(other.adopt_tuning_record({{"k0", "of another GPU"}}));
  EXPECT_EQ(other.revision(), 0);
  EXPECT_TRUE(other.adopt_tuning_record(timed.record().entries()));
  EXPECT_EQ(other.revision(), 1);
  EXPECT_EQ(workspace_of(other), 0);
  EXPECT_EQ(other.record().entries().at("k0"), "of another GPU") << "for checkpoints";
  GpuAlgorithmSelector later = products();
  EXPECT_EQ(workspace_of(later), 0) << "on disk";
}

TEST_F(GpuChooserTest, WhatTheLibraryHasNoWayForIsRemembered) {
  GpuAlgorithmSelector able = products();
  EXPECT_TRUE(able.has_algorithm(kProduct, kWorkspace));
  EXPECT_FALSE(able.record().rejection_reason(kProduct));
  fluid::testing::change_host_gpu({.most_rows = kProduct.m - 1});
  GpuAlgorithmSelector unable = products();
  EXPECT_FALSE(unable.has_algorithm(kProduct, kWorkspace));
  EXPECT_TRUE(unable.record().rejection_reason(kProduct));
  FluidGpuMatmul other = kProduct;
  other.bias = 1;
  EXPECT_FALSE(unable.record().rejection_reason(other));
  fluid::testing::change_host_gpu({});
  GpuAlgorithmSelector later = products();
  EXPECT_FALSE(later.has_algorithm(kProduct, kWorkspace)) << "on disk";
  EXPECT_TRUE(later.rejection_reason(kProduct));
  EXPECT_EQ(later.record().entries(), unable.record().entries()) << "for its checkpoints";
  const AlgorithmRecord resumed({.machine = "this", .workspace = 2048}, {"", 0},
                                unable.record().entries());
  EXPECT_TRUE(resumed.rejection_reason(kProduct)) << "in checkpoints";
  const GpuAlgorithmSelector wider = products({.machine = "this", .workspace = 2049});
  EXPECT_FALSE(wider.record().rejection_reason(kProduct));
}

/// An engine may find only as it runs, or is recorded, that it cannot.
TEST_F(GpuChooserTest, ATaskIsRejectedWhereEveryWayFails) {
  fluid::testing::change_host_gpu({.most_rows_computed = kProduct.m - 1});
  for (const bool tune : {true, false}) {
    SCOPED_TRACE(tune);
    GpuAlgorithmSelector chooser =
        products({.machine = tune ? "tuned" : "untuned", .workspace = 2048, .tune = tune});
    ASSERT_TRUE(chooser.has_algorithm(kProduct, kWorkspace));
    EXPECT_FALSE(chooser.create_plan(kProduct, factors(), kWorkspace));
    EXPECT_EQ(chooser.record().rejection_reason(kProduct), "no engine computes so many rows");
    const GpuAlgorithmSelector later = products(chooser.record().settings());
    EXPECT_EQ(later.record().rejection_reason(kProduct), "no engine computes so many rows")
        << "on disk";
    EXPECT_EQ(chooser.record().entries().size(), 1U) << "nothing was chosen";
    EXPECT_TRUE(chooser.notes().empty());
  }
}

/// A failure other than a rejection may not recur. It is recorded for this process, its checkpoints
/// and its peers, but not on disk.
TEST_F(GpuChooserTest, AFailureIsNotKeptForLater) {
  fluid::testing::change_host_gpu(
      {.most_rows_computed = kProduct.m - 1, .rejection_result = fluid_gpu_failed});
  GpuAlgorithmSelector chooser = products();
  EXPECT_FALSE(chooser.create_plan(kProduct, factors(), kWorkspace));
  EXPECT_EQ(chooser.record().rejection_reason(kProduct), "no engine computes so many rows");
  EXPECT_FALSE(products().record().rejection_reason(kProduct)) << "on disk";
  GpuAlgorithmSelector other = products({.machine = "this", .workspace = 2048});
  other.adopt_tuning_record(chooser.record().entries());
  EXPECT_EQ(other.record().rejection_reason(kProduct), "no engine computes so many rows");
  EXPECT_EQ(other.record().entries(), chooser.record().entries()) << "for checkpoints";
  EXPECT_FALSE(products().record().rejection_reason(kProduct)) << "on disk";
}

/// The favourite, which is faster, too, has no memory: what is taken instead holds for this
/// process, and for those that it works with, and is not what later ones find.
TEST_F(GpuChooserTest, WhatIsChosenForWantOfMemoryIsNotKeptForLater) {
  fluid::testing::change_host_gpu({.split_k_is_fast = true});
  for (const char* call : {"matmul_plan_create", "multiply", "graph_create"}) {
    SCOPED_TRACE(call);
    GpuAlgorithmSelector chooser = products({.machine = call, .workspace = 2048});
    fail_host_gpu(call, fluid_gpu_out_of_memory);
    EXPECT_EQ(workspace_of(chooser), 0);
    EXPECT_EQ(workspace_of(chooser), 0) << "in this process";
    EXPECT_EQ(
        chooser.notes(),
        std::vector<std::string>{
            "the GPU lacked memory for one of the algorithms of f32 4 x 5 of 6, transposed a (" +
            std::string(call) +
            " was told to fail): another algorithm is used, also by runs that resume from this "
            "run's checkpoints"});
    GpuAlgorithmSelector resumed(
        gpu_, {chooser.record().settings(), {dir_.path(), 1 << 20}, chooser.record().entries()});
    EXPECT_EQ(workspace_of(resumed), 0);
    EXPECT_EQ(resumed.record().entries(), chooser.record().entries());
    GpuAlgorithmSelector other = products(chooser.record().settings());
    other.adopt_tuning_record(chooser.record().entries());
    EXPECT_EQ(workspace_of(other), 0) << "of another process";
    GpuAlgorithmSelector later = products(chooser.record().settings());
    EXPECT_EQ(workspace_of(later), kPartsBytes);
    EXPECT_TRUE(later.notes().empty());
  }
}

TEST_F(GpuChooserTest, NoMemoryForAnyWayIsSaidAndNoRejection) {
  const std::string said =
      "the GPU lacks memory to compute f32 4 x 5 of 6, transposed a (no engine computes so many "
      "rows): 1024.00 MiB of 1.00 GiB are free; take a smaller batch, micro-batches or mixed "
      "precision, or free GPU memory";
  fluid::testing::change_host_gpu(
      {.most_rows_computed = kProduct.m - 1, .rejection_result = fluid_gpu_out_of_memory});
  GpuAlgorithmSelector chooser = products();
  EXPECT_EQ(error_of<DeviceError>([&] { chooser.create_plan(kProduct, factors(), kWorkspace); }),
            said);
  fail_host_gpu("matmul_algorithms", fluid_gpu_out_of_memory);
  EXPECT_EQ(
      error_of<DeviceError>([&] { chooser.has_algorithm(kProduct, kWorkspace); }).substr(0, 50),
      said.substr(0, 50));
  EXPECT_TRUE(chooser.record().entries().empty());
  EXPECT_TRUE(chooser.has_algorithm(kProduct, kWorkspace));
}

TEST_F(GpuChooserTest, AWayThatCannotBeTimedIsPassedOver) {
  fluid::testing::change_host_gpu({.split_k_is_fast = true});
  fail_host_gpu("graph_launch", fluid_gpu_invalid_usage);
  GpuAlgorithmSelector chooser = products();
  EXPECT_EQ(workspace_of(chooser), 0);
  EXPECT_TRUE(chooser.notes().empty());
}

/// And those that are short once more, several calls as one.
TEST_F(GpuChooserTest, EachWayIsRecordedOnce) {
  static int recorded = 0;
  FluidGpuTable counting = host_gpu_table();
  counting.capture_begin = [](FluidGpuStream* stream) {
    ++recorded;
    return host_gpu_table().capture_begin(stream);
  };
  const auto gpu = std::make_shared<const OpenGpu>(counting, 0);
  const GpuMemory memory = gpu->gpu.allocate(4096);
  const FluidGpuOperands f = {.a = memory.data(),
                              .b = memory.data() + 128,
                              .result = memory.data() + 512,
                              .workspace = memory.data() + 1024};
  for (const auto& [work_ms, graphs] : {std::pair(4.0F, 2), std::pair(0.001F, 4)}) {
    fluid::testing::change_host_gpu({.work_ms = work_ms});
    recorded = 0;
    GpuAlgorithmSelector chooser(gpu, {{.machine = "counted", .workspace = 2048}, {"", 0}});
    EXPECT_TRUE(chooser.create_plan(kProduct, f, kWorkspace));
    EXPECT_EQ(recorded, graphs);
  }
}

/// A way that was kept counts only where the library still takes it.
TEST_F(GpuChooserTest, WaysThatCannotBePreparedAreNone) {
  products().create_plan(kProduct, factors(), kWorkspace);
  GpuAlgorithmSelector again = products();
  FluidGpuTable strict = host_gpu_table();
  strict.matmul_plan_create = [](FluidGpu*, const FluidGpuMatmul*, const FluidGpuAlgorithm*,
                                 FluidGpuPlan**) { return fluid_gpu_invalid_usage; };
  const auto gpu = std::make_shared<const OpenGpu>(strict, 0);
  GpuAlgorithmSelector none(gpu, {again.record().settings(), {dir_.path(), 1 << 20}});
  EXPECT_TRUE(again.has_algorithm(kProduct, kWorkspace));
  EXPECT_FALSE(none.has_algorithm(kProduct, kWorkspace));
}

TEST(GpuAlgorithmSelector, AGpuThatFailsAsAWayIsTriedEndsIt) {
  for (const int calls : {0, 1, 2, 10, 19}) {
    fluid::testing::reset_host_gpu({});
    const auto gpu = std::make_shared<const OpenGpu>(host_gpu_table(), 0);
    const GpuMemory memory = gpu->gpu.allocate(4096);
    GpuAlgorithmSelector chooser(gpu, {{.machine = "failing", .workspace = 2048}, {"", 0}});
    fail_host_gpu("multiply", fluid_gpu_failed, calls);
    EXPECT_TRUE(states(error_of<DeviceError>([&] {
                         chooser.create_plan(kProduct,
                                             {.a = memory.data(),
                                              .b = memory.data() + 128,
                                              .result = memory.data() + 512,
                                              .workspace = memory.data() + 1024},
                                             kWorkspace);
                       }),
                       "multiply was told to fail"))
        << calls;
  }
}

TEST(GpuTaskText, SaysAllThatAProductIs) {
  FluidGpuMatmul p = kProduct;
  p.operands = fluid_gpu_bf16;
  p.count = 3;
  p.transpose_a = 0;
  p.transpose_b = p.has_addend = 1;
  EXPECT_EQ(task_text(p), "bf16 4 x 5 of 6, 3 of them to f32, transposed b, added");
  p = kProduct;
  p.transpose_a = 0;
  p.tf32 = p.bias = p.relu = 1;
  EXPECT_EQ(task_text(p), "f32 4 x 5 of 6, TF32, with bias, with relu");
}

TEST(GpuTaskText, SaysAllThatAConvolutionIs) {
  FluidGpuConvolution c = fluid::testing::convolution_of(fluid_gpu_forward, fluid_gpu_f32);
  EXPECT_EQ(task_text(c), "f32 2 x 4 x 7 x 9 by 6 x 3 x 3");
  c.tf32 = c.bias = c.relu = 1;
  EXPECT_EQ(task_text(c), "f32 2 x 4 x 7 x 9 by 6 x 3 x 3, TF32, with bias, with relu");
  c = fluid::testing::convolution_of(fluid_gpu_filter_gradient, fluid_gpu_f16, true, {.groups = 2});
  c.has_addend = 1;
  EXPECT_EQ(task_text(c),
            "filter gradient of f16 2 x 4 x 7 x 9 by 6 x 3 x 3, 2 groups, channels last, added");
}

/// The keys of different convolutions differ.
TEST(GpuTaskText, TellsConvolutionsApart) {
  using C = FluidGpuConvolution;
  const C c = fluid::testing::convolution_of(fluid_gpu_forward, fluid_gpu_f32);
  std::set<std::string> keys = {task_key(c)};
  const auto add = [&](auto change) {
    C other = c;
    change(other);
    EXPECT_TRUE(keys.insert(task_key(other)).second) << task_key(other);
  };
  add([](C& o) { o.direction = fluid_gpu_data_gradient; });
  add([](C& o) { o.dtype = fluid_gpu_bf16; });
  for (const auto part : {&C::tf32, &C::channels_last, &C::has_addend, &C::bias, &C::relu}) {
    add([&](C& o) { o.*part = 1; });
  }
  add([](C& o) { o.groups = 2; });
  for (const auto part : {&C::images, &C::channels, &C::height, &C::width, &C::filters,
                          &C::filter_height, &C::filter_width}) {
    add([&](C& o) { ++(o.*part); });
  }
  for (const auto part : {&C::stride, &C::dilation, &C::padding}) {
    add([&](C& o) { ++(o.*part)[0]; });
    add([&](C& o) { ++(o.*part)[1]; });
  }
}

/// As a product is.
TEST_F(GpuChooserTest, AConvolutionIsChosenAndKept) {
  FluidGpuConvolution c = fluid::testing::convolution_of(
      fluid_gpu_forward, fluid_gpu_f32, false, {.images = 1, .channels = 1, .filters = 1});
  const auto queries_library = [&](GpuAlgorithmSelector& chooser) {
    fail_host_gpu("convolution_algorithms", fluid_gpu_out_of_memory);
    try {
      chooser.create_plan(c, factors(), kWorkspace);
      return false;
    } catch (const DeviceError&) {
      chooser.create_plan(c, factors(), kWorkspace);
      return true;
    }
  };
  GpuAlgorithmSelector first = products();
  EXPECT_TRUE(queries_library(first));
  EXPECT_FALSE(queries_library(first)) << "in this process";
  GpuAlgorithmSelector second = products();
  EXPECT_FALSE(queries_library(second)) << "on disk";
  c.padding[0] = c.padding[1] = 0;
  c.map_height -= 2;
  c.map_width -= 2;
  EXPECT_TRUE(queries_library(second)) << "another one";
  fluid::testing::change_host_gpu({.most_filters = 0});
  GpuAlgorithmSelector unable = products({.machine = "another", .workspace = 2048});
  EXPECT_FALSE(unable.has_algorithm(c, kWorkspace));
  EXPECT_TRUE(unable.record().rejection_reason(c));
}

}  // namespace
}  // namespace fluid::gpu_algorithm_selector_test
