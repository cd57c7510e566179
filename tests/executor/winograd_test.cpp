// Convolutions by Winograd's algorithm against the ops' own definitions.

#include "executor/cpu_libraries/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "executor/cpu_libraries/avx512_support.h"
#include "executor/cpu_libraries/winograd_tiles.h"
#include "executor/host/parallel.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "tests/support/golden.h"
#include "tests/support/kernel_runner.h"
#include "tests/support/library_program.h"

namespace fluid::winograd_test {
namespace {

using testing::LibraryProgram;

constexpr double kFlopsPerSecond = 200e9;

LibraryRoutine make(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                    int64_t batch) {
  return winograd_kernel(kernel, op, epilogue, batch).value();
}

void put_channels_last(ir::Result& image) {
  if (image.type.shape.size() == 4) image.type.layout = Layout{{0, 2, 3, 1}, {}};
}

// The candidates for images with their channels last, and filters in their own order.
std::vector<KernelCandidate> candidates_of(LibraryProgram& p) {
  for (const ir::Op* op : p.chain) {
    const bool writes_filter = op->name == "conv2d_grad_filter";
    const bool reads_filter = op->name == "conv2d" || op->name == "conv2d_grad_input";
    for (size_t i = 0; i < op->operands.size(); ++i) {
      if (reads_filter && i == 1) continue;
      put_channels_last(op->operands[i].op()->results[0]);
    }
    if (!writes_filter) put_channels_last(const_cast<ir::Op*>(op)->results[0]);
  }
  return winograd_candidates(*p.chain[0], p.epilogue(), kFlopsPerSecond);
}

Tensor expected_of(LibraryProgram& p) {
  p.graph.outputs = {{"y", p.result()}};
  return testing::interpret(p.graph, p.feeds).outputs.at("y");
}

struct Case {
  Shape x, w;
  Conv2dAttrs attrs;
};

// Half precision differs in how tensors are read and written alone.
std::vector<Case> cases(DType dtype = f32) {
  std::vector<Case> all = {{{5, 16, 13, 13}, {16, 16, 3, 3}, {.padding = 1}},
                           {{3, 32, 8, 9}, {16, 32, 3, 3}, {.padding = 1}},
                           {{2, 16, 5, 7}, {48, 16, 3, 3}, {}},
                           {{7, 16, 4, 4}, {80, 16, 3, 3}, {.padding = 1}},
                           {{3, 16, 5, 6}, {16, 16, 3, 3}, {.padding = {2, 0, 1, 2}}},
                           {{2, 16, 6, 2}, {16, 16, 3, 3}, {.padding = 2}},
                           {{3, 16, 9, 7}, {32, 16, 5, 5}, {.padding = 2}},
                           {{2, 16, 8, 6}, {16, 16, 5, 5}, {.padding = {4, 0, 1, 3}}},
                           {{3, 20, 12, 12}, {50, 20, 5, 5}, {}},
                           {{3, 33, 6, 7}, {7, 33, 3, 3}, {.padding = 1}},
                           {{2, 1, 9, 8}, {17, 1, 5, 5}, {}},
                           {{2, 3, 6, 6}, {5, 3, 3, 3}, {.padding = 1}}};
  if (dtype != f32) all = {all[2], all[6], all[8], all[9]};
  return all;
}

struct Forward : LibraryProgram {
  Forward(const Case& c, DType type) {
    dtype = type;
    const Value x = feed(c.x);
    then(conv2d(x, feed(c.w), c.attrs));
  }
};

class Winograd : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!cpu_supports_avx512()) GTEST_SKIP() << "the processor lacks AVX-512";
  }

  static void expect_candidates(LibraryProgram& p, size_t candidates) {
    const std::vector<KernelCandidate> offered = candidates_of(p);
    EXPECT_EQ(offered.size(), candidates);
    const Tensor expected = expected_of(p);
    for (const KernelCandidate& candidate : offered) {
      SCOPED_TRACE(candidate.kernel);
      EXPECT_GT(candidate.seconds, 0);
      testing::expect_near(testing::run_candidate(p, make, candidate), expected,
                           10 * testing::library_tolerance(p.dtype) / (p.dtype == f32 ? 1 : 10));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, Winograd, ::testing::Values(f32, bf16, f16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(Winograd, Results) {
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    Forward p(c, GetParam());
    const Value y = p.result();
    const Value sum = y + reshape(p.feed({c.w[0]}), Shape{c.w[0], 1, 1});
    p.then(sum);
    p.then(relu(sum));
    expect_candidates(p, 2);
  }
}

TEST_P(Winograd, GradientsOfInputs) {
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    LibraryProgram p{.dtype = GetParam()};
    const Value dy = p.feed(Forward(c, GetParam()).result().shape());
    p.then(internal::conv2d_grad_input(
        dy, p.feed(c.w), {.padding = c.attrs.padding, .input = Type{GetParam(), c.x, {}}}));
    expect_candidates(p, 1);
  }
}

TEST_P(Winograd, GradientsOfFilters) {
  for (const Case& c : cases(GetParam())) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    LibraryProgram p{.dtype = GetParam()};
    const Value x = p.feed(c.x), dy = p.feed(Forward(c, GetParam()).result().shape());
    p.then(internal::conv2d_grad_filter(
        x, dy, {.padding = c.attrs.padding, .filter = Type{GetParam(), c.w, {}}}));
    expect_candidates(p, 1);
  }
}

/// A convolution in f32, and its gradients.
struct Convolution {
  Forward forward;
  LibraryProgram for_input, for_filter;

  explicit Convolution(const Case& c) : forward(c, f32) {
    const Shape y = forward.result().shape();
    for_input.then(
        internal::conv2d_grad_input(for_input.feed(y), for_input.feed(c.w),
                                    {.padding = c.attrs.padding, .input = Type{f32, c.x, {}}}));
    const Value x = for_filter.feed(c.x), dy = for_filter.feed(y);
    for_filter.then(internal::conv2d_grad_filter(
        x, dy, {.padding = c.attrs.padding, .filter = Type{f32, c.w, {}}}));
  }
  std::vector<LibraryProgram*> programs() { return {&forward, &for_input, &for_filter}; }
};

// More tiles than a chunk has. Threads share a chunk in the first case, and have chunks of their
// own in the second, whose filters are small. The expected results are those of generated kernels.
TEST_F(Winograd, ManyTiles) {
  for (const Case& c : {Case{{40, 128, 13, 14}, {144, 128, 3, 3}, {.padding = 1}},
                        Case{{9, 32, 13, 14}, {80, 32, 3, 3}, {.padding = 1}},
                        Case{{40, 131, 13, 14}, {145, 131, 3, 3}, {.padding = 1}},
                        Case{{64, 20, 12, 12}, {50, 20, 5, 5}, {}}}) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    Convolution convolution(c);
    for (LibraryProgram* p : convolution.programs()) {
      p->graph.outputs = {{"y", p->result()}};
      const Tensor expected = testing::run_kernels(p->graph, p->feeds, 1).at("y");
      for (const KernelCandidate& candidate : candidates_of(*p)) {
        SCOPED_TRACE(candidate.kernel);
        testing::expect_near(testing::run_candidate(*p, make, candidate), expected, 1e-3);
      }
    }
  }
}

// 81 tiles, which no number of threads divides evenly into chunks, and several chunks of a filter's
// gradient.
TEST_F(Winograd, ThreadsDoNotChangeBits) {
  std::map<std::string, Tensor> expected;
  for (const Case& c : {Case{{9, 32, 12, 12}, {80, 32, 3, 3}, {.padding = 1}},
                        Case{{40, 131, 13, 14}, {145, 131, 3, 3}, {.padding = 1}}}) {
    Convolution convolution(c);
    for (LibraryProgram* p : convolution.programs()) {
      for (const int threads : {1, 2, 3, 7}) {
        const ScopedLibraryThreads limit(threads);
        for (const KernelCandidate& candidate : candidates_of(*p)) {
          const Tensor y = testing::run_candidate(*p, make, candidate);
          const std::string kernel = candidate.kernel + c.x.str();
          const Tensor& first = expected.try_emplace(kernel, y).first->second;
          EXPECT_EQ(std::memcmp(y.data(), first.data(), static_cast<size_t>(y.bytes())), 0)
              << kernel << ", " << threads << " threads";
        }
      }
    }
  }
  EXPECT_EQ(expected.size(), 8u);
}

TEST_F(Winograd, OnlyWhatItCanDo) {
  const std::vector<Case> others = {{{2, 16, 8, 8}, {16, 16, 7, 7}, {.padding = 2}},
                                    {{2, 16, 8, 8}, {16, 16, 3, 5}, {.padding = 1}},
                                    {{2, 16, 9, 9}, {16, 16, 3, 3}, {.stride = 2}},
                                    {{2, 16, 9, 9}, {16, 16, 3, 3}, {.dilation = 2}},
                                    {{2, 32, 9, 9}, {32, 16, 3, 3}, {.groups = 2}},
                                    {{2, 16, 9, 9}, {16, 16, 3, 3}, {.padding = 3}}};
  for (const Case& c : others) {
    SCOPED_TRACE(c.x.str() + " and " + c.w.str());
    Forward p(c, f32);
    EXPECT_TRUE(candidates_of(p).empty());
    EXPECT_THROW(make("winograd.conv2d", *p.chain[0], {}, 1), DeviceError);
  }
  Forward plain(cases()[0], f32);
  EXPECT_TRUE(winograd_candidates(*plain.chain[0], {}, kFlopsPerSecond).empty());
  Forward wide(cases()[0], f64);
  EXPECT_TRUE(candidates_of(wide).empty());
  EXPECT_FALSE(winograd_kernel("onednn.conv2d", *plain.chain[0], {}, 1));
}

int64_t nans_in(const Tensor& t, int64_t image) {
  const int64_t n = t.numel() / t.shape()[0];
  int64_t nans = 0;
  for (int64_t i = image * n; i < (image + 1) * n; ++i) nans += std::isnan(t.at(i)) ? 1 : 0;
  return nans;
}

// A NaN shows, behind a relu too; in other samples only where the candidate says so.
TEST_F(Winograd, KeepsNansAndSamplesApart) {
  Forward p({{2, 16, 6, 6}, {16, 16, 3, 3}, {.padding = 1}}, f32);
  p.then(relu(p.result()));
  Tensor& x = p.feeds.at("x0");
  x.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  size_t mixing = 0;
  for (const KernelCandidate& candidate : candidates_of(p)) {
    SCOPED_TRACE(candidate.kernel);
    EXPECT_TRUE(candidate.propagates_nan);
    const Tensor y = testing::run_candidate(p, make, candidate);
    EXPECT_GT(nans_in(y, 0), 0);
    if (!candidate.mixes_samples) {
      EXPECT_EQ(nans_in(y, 1), 0);
    }
    mixing += candidate.mixes_samples ? 1 : 0;
  }
  EXPECT_EQ(mixing, 1u);
}

TEST(WinogradTiles, LieAcrossImagesWhereFewerDo) {
  const WinogradAxis odd{13, 13, 1, 1}, even{16, 16, 1, 1};
  EXPECT_EQ(WinogradTiles(64, odd, odd, 6, false).count(), 64 * 16);
  EXPECT_EQ(WinogradTiles(64, odd, odd, 6, true).count(), 28 * 28);
  EXPECT_EQ(WinogradTiles(64, even, even, 6, true).count(), 64 * 16);
  EXPECT_EQ(WinogradTiles(3, odd, even, 6, true).count(), 11 * 4);
}

}  // namespace
}  // namespace fluid::winograd_test
