// Tests that groups with few result rows, such as statistics of channels-last images, still use
// many GPU threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>

#include "codegen/gpu.h"
#include "executor/gpu/gpu_target.h"
#include "ops/operators.h"
#include "ops/program_file.h"
#include "ops/record.h"
#include "passes/pass.h"
#include "tests/support/fused_runner.h"
#include "tests/support/h200.h"

namespace fluid::testing::gpu_stages_test {
namespace {

constexpr int64_t kBatch64 = 64;

/// Elements of the largest buffer that a pass touches for each of its threads, about: those that
/// one takes at once count as one.
double work_of(const kir::Kernel& pass) {
  int64_t most = 0;
  std::string text = kir::print(pass);
  text.erase(0, text.find('\n'));
  for (const kir::Buffer& b : pass.buffers) {
    if (text.find(b.name + "[") == std::string::npos) continue;
    most = std::max(most, b.elements.at(kBatch64));
  }
  const int64_t threads =
      kir::evaluate(pass.blocks, kBatch64) * pass.thread_group_size * pass.vector_width;
  return static_cast<double>(most) / static_cast<double>(threads);
}

class GpuNetworkStages : public ::testing::TestWithParam<const char*> {};

/// None of a network's passes walks over all of a tensor, and those that combine do so in parallel.
TEST_P(GpuNetworkStages, NoPassLeavesAGpuIdle) {
  for (const bool half : {false, true}) {
    Options options{.batch = kBatch64};
    if (half) options.amp = AmpOptions{.dtype = bf16};
    auto program = load_program(FLUID_BINARY_DIR "/examples/" + std::string(GetParam()) + ".fluid");
    run_passes(*program, pipeline(options), options, GpuTarget(kH200));
    for (const auto& op : program->main().ops) {
      if (op->name != "fused" || op->attrs.has("kernel")) continue;
      const std::string body = op->attrs.get<GraphRef>("body").name;
      const std::vector<kir::Kernel> passes = schedule_gpu(*program->find(body), body);
      for (const kir::Kernel& pass : passes) {
        EXPECT_LT(work_of(pass), pass.name.ends_with("_finish") ? 64 : 1024) << kir::print(pass);
      }
    }
  }
}

/// Records by `build`, which returns the outputs, and compares them with the interpreter's. How
/// many passes on a GPU they come to.
int passes_of_program(int64_t batch, const std::function<Values(ir::Graph&)>& build,
                      double tolerance = 1e-12) {
  ir::Program program("p");
  ir::Graph& g = program.main();
  for (const Value& v : build(g)) g.outputs.push_back({std::to_string(g.outputs.size()), v});
  expect_fused_as_interpreted(program, batch, tolerance);
  const NamedTensors sources = random_sources(program, batch, 1);
  return run_fused(program, sources, {.batch = batch, .gpu = true}).passes;
}

Value input(ir::Graph& g, const std::string& name, Shape shape, DType dtype = f64) {
  return record_source(g, "data", name, {dtype, std::move(shape), {}}, {}, {});
}

/// Batch normalisation of x [N, H, W, C], whose channels are innermost.
Values normalised(ir::Graph& g, int64_t size, int64_t channels, DType dtype) {
  const Value x = input(g, "x", {kBatch, size, size, channels}, dtype);
  const Value gamma = input(g, "gamma", {channels}, dtype);
  const Ints pixels = {0, 1, 2};
  const Value mean = fluid::mean(x, {.axes = pixels});
  const Value centred = x - mean;
  const Value var = fluid::mean(square(centred), {.axes = pixels});
  return {centred * rsqrt(var + 1e-5) * gamma, mean, var, gamma - mean * 0.1};
}

/// Two passes for the mean, two for the variance, one for the maps.
TEST(GpuStages, NormalisationOverPixels) {
  for (const int64_t batch : {1, 3}) {
    for (const int64_t channels : {3, 8, 33}) {
      EXPECT_EQ(
          passes_of_program(batch, [&](ir::Graph& g) { return normalised(g, 23, channels, f64); }),
          5);
    }
  }
  EXPECT_EQ(passes_of_program(
                2, [](ir::Graph& g) { return normalised(g, 16, 16, f32); }, 1e-4),
            5);
  EXPECT_EQ(passes_of_program(
                2, [](ir::Graph& g) { return normalised(g, 16, 16, bf16); }, 3e-2),
            5);
}

/// The gradients of scale, shift and operand, of which the last reads the sums of the others:
/// terms, sums and what is of scale's shape, what is of x's.
TEST(GpuStages, SumsThatShareTheirTerms) {
  for (const int64_t batch : {0, 1, 3}) {
    const int passes = passes_of_program(batch, [](ir::Graph& g) {
      const Value x = input(g, "x", {kBatch, 48, 48, 12}),
                  dy = input(g, "dy", {kBatch, 48, 48, 12});
      const Value scale = input(g, "scale", {12});
      const Ints pixels = {0, 1, 2};
      const Value dgamma = sum(dy * x, {.axes = pixels}), dbeta = sum(dy, {.axes = pixels});
      return Values{(dy - dbeta * 0.01 - x * dgamma * 0.01) * scale, scale - dgamma, dbeta};
    });
    EXPECT_EQ(passes, 3);
  }
}

/// The gradient of a convolution's bias, whose kernel counts the steps as well.
TEST(GpuStages, SumsOfChannelsBesideACounter) {
  for (const int64_t batch : {1, 3}) {
    const int passes = passes_of_program(batch, [](ir::Graph& g) {
      const Value dy = input(g, "dy", {kBatch, 20, 28, 28}), bias = input(g, "bias", {20});
      const Value steps = input(g, "steps", {});
      const Values updates = {bias - sum(dy, {.axes = {0, 2, 3}}) * 0.1, steps + 1.0};
      for (const Value& v : updates)
        v.op()->role = ir::Role::optimize;  // so that they are one kernel
      return updates;
    });
    EXPECT_EQ(passes, 3);  // terms, sums and their map, and the other map
  }
}

/// Reductions other than sums, and sums without readers.
TEST(GpuStages, ExtremesAndProducts) {
  const int passes = passes_of_program(2, [](ir::Graph& g) {
    const Value x = input(g, "x", {kBatch, 24, 24, 8});
    const Value most = max(x, {.axes = {0, 1, 2}}), least = min(x, {.axes = {0, 1, 2}});
    return Values{(x - least) / (most - least), sum(x, {.axes = {0, 1, 2}}),
                  prod(x * 0.01 + 1.0, {.axes = {0, 1, 2}})};
  });
  EXPECT_GE(passes, 3);
}

/// Windows are short sums: it is their results that are many.
TEST(GpuStages, PoolsBesideMaps) {
  const int passes = passes_of_program(
      1,
      [](ir::Graph& g) {
        const Value x = relu(input(g, "x", {kBatch, 48, 48, 16}, f32) - 1.0);
        const Value planes = transpose(x, {.perm = {0, 3, 1, 2}});
        const Value pooled = max_pool2d(planes, {.kernel = 3, .stride = 2});
        return Values{transpose(pooled, {.perm = {0, 2, 3, 1}}), x * 2.0};
      },
      1e-6);
  EXPECT_EQ(passes, 3);  // the windows, which another lays out, and the map
}

/// The new `state` reads an element of x that the sum also reads in another row, so its map is not
/// the last pass. The map that reads the old `state` must not run later, because the new one may
/// overwrite it.
TEST(GpuStages, MapsOfRowsThatReplaceWhatOthersRead) {
  const int passes = passes_of_program(1, [](ir::Graph& g) {
    const Value x = input(g, "x", {48, 40, 16}), state = input(g, "state", {16});
    const Value first =
        reshape(slice(x, {.starts = {0, 0}, .stops = {1, 1}, .axes = {0, 1}}), {16});
    const Value centred = x - sum(x, {.axes = {0, 1}});
    return Values{centred, state + first, neg(state)};
  });
  EXPECT_GE(passes, 4);
}

/// A root that is computed last reads x in another order than the map that may overwrite x, and
/// that the sums' kernel could compute.
TEST(GpuStages, MapsOfResultsThatReplaceWhatOthersRead) {
  for (const bool transposed : {true, false}) {
    const int passes = passes_of_program(1, [&](ir::Graph& g) {
      const Value x = input(g, "x", {4, 4}), y = input(g, "y", {4, 4, 192, 192});
      const Value other = transposed ? transpose(x, {.perm = {1, 0}}) : reshape(x, {4, 1, 4});
      return Values{x + max(y, {.axes = {2, 3}}), neg(other)};
    });
    EXPECT_GE(passes, 3);
  }
}

/// The extremes and their indices, which are not divided, beside sums, which are.
TEST(GpuStages, IndicesOfExtremesBesideSums) {
  passes_of_program(2, [](ir::Graph& g) {
    const Value x = input(g, "x", {16, 2, 40, 40});
    const auto extremes = max_index(x, {.axes = {0, 2, 3}});
    return Values{sum(x, {.axes = {0, 2, 3}}), extremes[0], extremes[1]};
  });
}

/// Rows of one variable are divided into chunks, also where the batch size is a factor of it. A
/// variable without a divisor, or the batch size itself, is not.
TEST(GpuStages, SumsOverOneVariable) {
  const auto sums = [](const Dim& rows, int64_t batch) {
    return passes_of_program(batch, [&](ir::Graph& g) {
      const Value x = input(g, "x", {rows, 64}), dy = input(g, "dy", {rows, 64});
      return Values{sum(x * dy, {.axes = {0}}), sum(dy, {.axes = {0}}), x * dy};
    });
  };
  EXPECT_EQ(sums(4096, 1), 2);
  EXPECT_EQ(sums(Dim::of_batch(512), 1), 2);
  EXPECT_EQ(sums(Dim::of_batch(512), 3), 2);
  EXPECT_EQ(sums(4093, 1), 2);      // the row-wise schedule and its finish
  EXPECT_EQ(sums(kBatch, 300), 1);  // few rows for the batch size that is assumed: a thread each
}

INSTANTIATE_TEST_SUITE_P(Examples, GpuNetworkStages,
                         ::testing::Values("resnet18", "alexnet_cifar10", "mnist_fluid",
                                           "mnist_cnn"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluid::testing::gpu_stages_test
