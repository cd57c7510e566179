// oneDNN's kernels against the ops' own definitions, plain and in the layouts that oneDNN asks for.

#include "executor/cpu_libraries/onednn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "executor/host/parallel.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "tests/support/cpu_features.h"
#include "tests/support/golden.h"
#include "tests/support/library_program.h"

namespace fluid::onednn_test {
namespace {

using testing::ConvolutionCase;
using testing::LibraryProgram;

constexpr OnednnRates kRates = {.flops_per_second = 200e9,
                                .bf16_flops_per_second = 400e9,
                                .bytes_per_second = 20e9,
                                .vector_lanes = 16};

void check_candidate(LibraryProgram& p, const KernelCandidate& candidate, const Tensor& expected) {
  testing::expect_near(testing::run_candidate(p, onednn_kernel, candidate), expected,
                       testing::library_tolerance(p.dtype));
}

// Runs every candidate, and returns how many there are.
size_t run_candidates(LibraryProgram& p) {
  p.graph.outputs.push_back({"y", p.result()});
  const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
  const std::vector<KernelCandidate> offered = onednn_candidates(*p.chain[0], p.epilogue(), kRates);
  for (const KernelCandidate& candidate : offered) {
    SCOPED_TRACE(candidate.kernel +
                 (candidate.results[0] ? " " + candidate.results[0]->str() : " plain"));
    EXPECT_GT(candidate.seconds, 0);
    check_candidate(p, candidate, expected);
  }
  return offered.size();
}

/// `least`: number of candidates on every CPU. A CPU whose filters are blocked has another one.
void check_candidates(LibraryProgram& p, size_t least) { EXPECT_GE(run_candidates(p), least); }

TEST(Onednn, Conv2dWithBiasAndRelu) {
  LibraryProgram p;
  const Value x = p.feed({2, 20, 7, 7}), w = p.feed({20, 20, 5, 5}), bias = p.feed({20});
  const Value y = conv2d(x, w, {.padding = 2});
  const Value sum = y + reshape(bias, Shape{20, 1, 1});
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_candidates(p, 2);
}

TEST(Onednn, LeavesExtentsBeyond32BitsAlone) {
  ir::Program program("large");
  ir::Graph& graph = program.main();
  const int64_t rows = int64_t{1} << 42;
  const Value x = record_source(graph, "data", "x", {f32, {rows, 8}, {}}, {}, {});
  const Value w = record_source(graph, "data", "w", {f32, {8, 16}, {}}, {}, {});
  EXPECT_TRUE(onednn_candidates(*matmul(x, w).op(), {}, kRates).empty());
}

TEST(Onednn, Conv2dOfOneChannel) {
  LibraryProgram p;
  const Value x = p.feed({2, 1, 11, 13}), w = p.feed({32, 1, 3, 3});
  p.then(conv2d(x, w, {.stride = {2, 1}, .padding = {1, 0, 2, 1}}));
  check_candidates(p, 2);
}

TEST(Onednn, Conv2dInGroups) {
  LibraryProgram p;
  const Value x = p.feed({1, 32, 7, 7}), w = p.feed({32, 16, 3, 3});
  p.then(conv2d(x, w, {.dilation = 2, .groups = 2}));
  EXPECT_GE(run_candidates(p), 1u);
}

/// oneDNN's depthwise kernels take filters in blocks of channels, and images with channels last.
TEST(Onednn, DepthwiseConv2d) {
  for (const bool last : {false, true}) {
    LibraryProgram p;
    Value x = p.feed({2, 32, 7, 5});
    if (last) x.op()->results[0].type.layout = channels_last();
    const Value y = conv2d(x, p.feed({32, 1, 3, 3}), {.padding = 1, .groups = 32});
    if (last) y.op()->results[0].type.layout = channels_last();
    p.then(y);
    EXPECT_GE(run_candidates(p), 1u);
  }
}

TEST(Onednn, Conv2dGradients) {
  const Type input = {f32, {2, 16, 9, 9}, {}}, filter = {f32, {32, 16, 3, 3}, {}};
  LibraryProgram for_input;
  const Value dy = for_input.feed({2, 32, 7, 7}), w = for_input.feed(filter.shape);
  for_input.then(internal::conv2d_grad_input(dy, w, {.input = input}));
  check_candidates(for_input, 2);
  LibraryProgram for_filter;
  const Value x = for_filter.feed(input.shape), gradient = for_filter.feed({2, 32, 7, 7});
  for_filter.then(internal::conv2d_grad_filter(x, gradient, {.filter = filter}));
  check_candidates(for_filter, 2);
}

std::vector<ConvolutionCase> cases() {
  std::vector<ConvolutionCase> all = testing::convolution_cases();
  all.push_back({{1, 16, 7, 7}, {32, 16, 3, 3}, {.stride = {1, 2}, .padding = {0, 1, 2, 0}}});
  all.push_back({{1, 32, 7, 7}, {32, 16, 3, 3}, {.stride = 2, .groups = 2}});
  all.push_back({{2, 32, 7, 5}, {32, 1, 3, 3}, {.padding = {1, 0, 0, 1}, .groups = 32}});
  return all;
}

// A convolution and its gradients of each case; how many candidates were made for each of the
// three.
std::array<size_t, 3> run_cases(DType dtype) {
  std::array<size_t, 3> candidates{};
  for (const ConvolutionCase& c : cases()) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    const Conv2dAttrs& a = c.attrs;
    LibraryProgram forward{.dtype = dtype};
    const Value y = conv2d(forward.feed(c.x), forward.feed(c.w), a);
    forward.then(y);
    candidates[0] += run_candidates(forward);
    LibraryProgram for_input{.dtype = dtype};
    const Value dy = for_input.feed(y.shape());
    for_input.then(internal::conv2d_grad_input(
        dy, for_input.feed(c.w),
        {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.x, {}}}));
    candidates[1] += run_candidates(for_input);
    LibraryProgram for_filter{.dtype = dtype};
    const Value x = for_filter.feed(c.x);
    for_filter.then(internal::conv2d_grad_filter(
        x, for_filter.feed(y.shape()),
        {a.stride, a.padding, a.dilation, a.groups, Type{dtype, c.w, {}}}));
    candidates[2] += run_candidates(for_filter);
  }
  return candidates;
}

TEST(Onednn, Conv2dOfAllKinds) {
  for (const size_t candidates : run_cases(f32)) EXPECT_GE(candidates, cases().size() / 2);
}

TEST(Onednn, Conv2dOfAllKindsInBf16) {
  for (const size_t candidates : run_cases(bf16)) EXPECT_GE(candidates, cases().size() / 2);
}

/// One thread; shards of unequal length; a batch with too few images to shard.
TEST(Onednn, Conv2dGradientOfFiltersInSlicesOfTheBatch) {
  struct Case {
    int threads;
    int64_t images, groups;
  };
  for (const Case& c :
       {Case{1, 17, 1}, Case{3, 17, 1}, Case{2, 9, 2}, Case{3, 2, 1}, Case{2, 1, 1}}) {
    SCOPED_TRACE(std::to_string(c.images) + " images, " + std::to_string(c.threads) + " threads");
    const ScopedLibraryThreads some(c.threads);
    LibraryProgram p{.dtype = bf16};
    const Type filter = {bf16, {32, 32 / c.groups, 3, 3}, {}};
    const Value x = p.feed({c.images, 32, 5, 6}), dy = p.feed({c.images, 32, 3, 3});
    p.then(internal::conv2d_grad_filter(
        x, dy, {.stride = 2, .padding = 1, .groups = c.groups, .filter = filter}));
    EXPECT_GT(run_candidates(p), 0u);
    const bool computes_bf16 = testing::onednn_computes_bf16();
    if (c.threads == 1 || !computes_bf16) continue;
    const int64_t sums =
        std::min<int64_t>(c.threads, c.images) * filter.shape.numel().size * size_of(f32);
    for (const KernelCandidate& candidate : onednn_candidates(*p.chain[0], {}, kRates)) {
      EXPECT_GE(candidate.workspace, sums) << "not in slices";
    }
  }
}

TEST(Onednn, Conv2dOfAllKindsInF16) {
  for (const size_t candidates : run_cases(f16)) EXPECT_GE(candidates, cases().size() / 2);
}

TEST(Onednn, MatmulOfF16ByTheKernelsOfF32) {
  LibraryProgram p{.dtype = f16};
  const Value a = p.feed({7, 4099}), b = p.feed({4099, 19}), bias = p.feed({19});
  const Value y = matmul(a, b), sum = y + bias;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_candidates(p, 1);
}

TEST(Onednn, MatmulWithBiasAndReluInBf16) {
  LibraryProgram p{.dtype = bf16};
  const Value a = p.feed({7, 33}), b = p.feed({33, 19}), bias = p.feed({19});
  const Value y = matmul(a, b), sum = y + bias;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  EXPECT_GT(run_candidates(p), 0u);
}

// The candidate for images with their channels last and plain filters, as a pass wants them.
void check_channels_last(LibraryProgram& p) {
  p.graph.outputs.push_back({"y", p.result()});
  const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
  const auto image = [](const Type& type) { return type.shape[0].is(2) && !type.shape[1].is(1); };
  ir::Op& op = *p.chain[0];
  for (const Value& v : op.operands) {
    if (image(v.type())) v.op()->results[0].type.layout = Layout{{0, 2, 3, 1}, {}};
  }
  if (image(op.results[0].type)) op.results[0].type.layout = Layout{{0, 2, 3, 1}, {}};
  const std::vector<KernelCandidate> candidates = onednn_candidates(op, {}, kRates);
  const auto candidate = std::ranges::find_if(
      candidates, [&](const KernelCandidate& c) { return c.accepts_layouts(op, op); });
  ASSERT_NE(candidate, candidates.end());
  check_candidate(p, *candidate, expected);
}

TEST(Onednn, ConvolutionsWithChannelsLast) {
  for (const int64_t channels : {1, 20}) {
    const Type input = {f32, {2, channels, 9, 9}, {}}, filter = {f32, {20, channels, 3, 3}, {}};
    LibraryProgram forward, for_filter;
    const Value in = forward.feed(input.shape);
    forward.then(conv2d(in, forward.feed(filter.shape)));
    check_channels_last(forward);
    const Value x = for_filter.feed(input.shape), gradient = for_filter.feed({2, 20, 7, 7});
    for_filter.then(internal::conv2d_grad_filter(x, gradient, {.filter = filter}));
    check_channels_last(for_filter);
    if (channels == 1) continue;
    LibraryProgram for_input;
    const Value dy = for_input.feed({2, 20, 7, 7}), w = for_input.feed(filter.shape);
    for_input.then(internal::conv2d_grad_input(dy, w, {.input = input}));
    check_channels_last(for_input);
  }
}

TEST(Onednn, MatmulTransposesAndTakesABias) {
  LibraryProgram p;
  const Value a = p.feed({7, 33}), b = p.feed({19, 7}), bias = p.feed({19});
  const Value y = matmul(a, b, {.transpose_a = true, .transpose_b = true});
  const Value sum = bias + y;
  p.then(y);
  p.then(sum);
  p.then(relu(sum));
  check_candidates(p, 1);
}

TEST(Onednn, MatmulOfBatches) {
  LibraryProgram p;
  p.then(matmul(p.feed({3, 5, 7}), p.feed({3, 7, 4})));
  check_candidates(p, 1);
  LibraryProgram one_matrix;
  const Value a = one_matrix.feed({3, 5, 7});
  one_matrix.then(matmul(a, one_matrix.feed({7, 4})));
  check_candidates(one_matrix, 1);
}

/// oneDNN blocks the second matrix, so that it reads the matrix without copying it.
TEST(Onednn, MatmulOfAPackedMatrix) {
  for (const bool transposed : {false, true}) {
    for (const DType dtype : {f32, bf16}) {
      LibraryProgram p{.dtype = dtype};
      const Value x = p.feed({5, 96}), bias = p.feed({256});
      const Value w = p.feed(transposed ? Shape{256, 96} : Shape{96, 256});
      const Value y = matmul(x, w, {.transpose_b = transposed});
      p.then(y);
      p.then(y + bias);
      const size_t least = testing::has_avx512_vnni() && dtype == f32 ? 2 : 1;
      check_candidates(p, least);
    }
  }
}

/// Fills feed `i` with whole numbers in [low, high].
void set_integers(LibraryProgram& p, Value v, double low, double high) {
  Tensor& feed = p.feeds.at(v.op()->symbol);
  Tensor numbers(f64, feed.shape());
  const std::vector<double> uniform = testing::golden_uniform(7, feed.numel());
  for (size_t i = 0; i < uniform.size(); ++i)
    numbers.as<double>()[i] = std::floor(low + (high - low + 1) * uniform[i]);
  feed = numbers.cast(feed.dtype());
}

/// A convolution or product of 8-bit integers with the whole epilogue, with each shorter one, and
/// of each dtype of input and result.
TEST(Onednn, Int8WithEveryEpilogue) {
  size_t candidates = 0;
  for (const bool conv : {true, false}) {
    for (const DType from : {u8, i8}) {
      for (const DType to : {u8, i8}) {
        for (size_t length = 1; length <= 5; ++length) {
          SCOPED_TRACE((conv ? "conv2d " : "matmul ") + std::string(name_of(from)) + " to " +
                       std::string(name_of(to)) + " " + std::to_string(length));
          LibraryProgram p{.dtype = from};
          const Value x = p.feed(conv ? Shape{2, 16, 6, 5} : Shape{9, 40});
          p.dtype = i8;
          const Value w = p.feed(conv ? Shape{32, 16, 3, 3} : Shape{40, 32});
          p.dtype = f32;
          const Value scale = p.feed({32}), bias = p.feed({32});
          set_integers(p, x, from == u8 ? 0 : -128, from == u8 ? 255 : 127);
          set_integers(p, w, -127, 127);
          for (float& s : p.feeds.at(scale.op()->symbol).as<float>()) s = std::abs(s) / 512;
          const auto vector = [&](Value v) { return conv ? reshape(v, Shape{32, 1, 1}) : v; };
          const Value by = vector(scale), shift = vector(bias);
          Values chain = {conv ? internal::conv2d_int8(x, w, {.padding = 1})
                               : internal::matmul_int8(x, w)};
          chain.push_back(chain.back() * by);
          chain.push_back(chain.back() + shift);
          chain.push_back(relu(chain.back()));
          chain.push_back(internal::round_saturate(chain.back(), {.to = Type{to, {}, {}}}));
          for (size_t i = 0; i < length; ++i) p.then(chain[i]);
          candidates += run_candidates(p);
        }
      }
    }
  }
  const size_t least = testing::has_avx512_vnni() ? 40 : 0;
  EXPECT_GE(candidates, least);
}

TEST(Onednn, OffersNothingItCannotCompute) {
  ir::Program program("f64");
  ir::Graph& g = program.main();
  const Value x = record_source(g, "data", "x", {f64, {2, 2}, {}}, {}, {});
  EXPECT_TRUE(onednn_candidates(*matmul(x, x).op(), {}, kRates).empty());
  EXPECT_TRUE(onednn_candidates(*exp(x).op(), {}, kRates).empty());
  LibraryProgram p;
  const Value y = matmul(p.feed({2, 2}), p.feed({2, 2}));
  const Value other = exp(y), row_bias = y + p.feed({2, 1});
  EXPECT_TRUE(onednn_candidates(*y.op(), {other.op()}, kRates).empty());
  EXPECT_TRUE(onednn_candidates(*y.op(), {row_bias.op()}, kRates).empty());
  EXPECT_THROW(onednn_kernel("onednn.exp", *other.op(), {}, 1), DeviceError);
  EXPECT_THROW(onednn_kernel("onednn.matmul", *x.op(), {}, 1), DeviceError);
}

}  // namespace
}  // namespace fluid::onednn_test
