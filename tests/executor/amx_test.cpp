// Convolutions and matrix products by AMX against the ops' own definitions.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "executor/cpu_libraries/amx_kernels.h"
#include "executor/cpu_libraries/amx_support.h"
#include "executor/host/parallel.h"
#include "ops/operators.h"
#include "tests/support/convolution_programs.h"
#include "tests/support/kernel_runner.h"

namespace fluid::amx_test {
namespace {

using testing::LibraryProgram;
using Case = testing::ConvolutionCase;
using Convolution = testing::ConvolutionPrograms;

LibraryRoutine make_amx(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                        int64_t batch) {
  return amx_kernel(kernel, op, epilogue, batch).value();
}

/// Makes the images of a convolution channels-last, and returns its candidates.
std::vector<KernelCandidate> amx_candidates_of(LibraryProgram& p) {
  testing::use_channels_last(p);
  return amx_candidates(*p.chain[0], p.epilogue(), 2e12, 20e9);
}

class AmxConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_supports_amx()) GTEST_SKIP() << "the processor lacks AMX";
  }
};

void expect_results(const Case& c, double tolerance) {
  testing::expect_convolutions(c, bf16, tolerance, amx_candidates_of, make_amx);
}

TEST_F(AmxConvolution, WindowsOfAllKinds) {
  for (const Case& c : testing::windows_of_all_kinds()) expect_results(c, 2e-2);
  expect_results({{2, 16, 7, 7}, {33, 16, 1, 1}, {}}, 2e-2);
}

// Several blocks, groups of column tiles and strips; ranges of pixels, and a filter too large for
// them.
TEST_F(AmxConvolution, LargeConvolutions) {
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}},
                        Case{{4, 64, 19, 17}, {96, 64, 3, 3}, {.padding = 1}},
                        Case{{1, 128, 5, 6}, {520, 128, 3, 3}, {.padding = 1}}}) {
    expect_results(c, 4e-2);
  }
}

TEST_F(AmxConvolution, ThreadsDoNotChangeBits) {
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}}}) {
    testing::expect_equal_bits_of_threads(c, bf16, amx_candidates_of, make_amx);
  }
}

TEST_F(AmxConvolution, OnlyWhatItCanDo) {
  Convolution grouped({{2, 32, 9, 9}, {32, 16, 3, 3}, {.groups = 2}}, bf16);
  for (LibraryProgram* p : grouped.programs()) EXPECT_TRUE(amx_candidates_of(*p).empty());
  EXPECT_THROW(make_amx("amx.conv2d", *grouped.forward.chain[0], {}, 1), DeviceError);
  Convolution wide({{2, 4, 9, 9}, {8, 4, 3, 3}, {}}, f32);
  for (LibraryProgram* p : wide.programs()) EXPECT_TRUE(amx_candidates_of(*p).empty());
  Convolution plain({{2, 4, 9, 9}, {8, 4, 3, 3}, {}}, bf16);
  EXPECT_TRUE(amx_candidates(*plain.forward.chain[0], {}, 2e12, 20e9).empty());
  EXPECT_FALSE(amx_kernel("winograd.conv2d", *plain.forward.chain[0], {}, 1));
}

TEST_F(AmxConvolution, KeepsNans) {
  Convolution convolution({{2, 16, 6, 6}, {16, 16, 3, 3}, {.padding = 1}}, bf16);
  LibraryProgram& p = convolution.forward;
  p.feeds.at("x0").as<uint16_t>()[0] = 0x7fc0;  // NaN
  const KernelCandidate candidate = amx_candidates_of(p).at(0);
  EXPECT_TRUE(candidate.propagates_nan);
  const Tensor y = testing::run_candidate(p, make_amx, candidate);
  int64_t nans[2] = {0, 0};
  for (int64_t i = 0; i < y.numel(); ++i) nans[2 * i / y.numel()] += std::isnan(y.at(i)) ? 1 : 0;
  EXPECT_GT(nans[0], 0);
  EXPECT_EQ(nans[1], 0) << "the other sample";
}

struct Product {
  Shape a, b;
  MatmulAttrs attrs;
};

/// A product with a bias and a relu.
void expect_product(const Product& c) {
  SCOPED_TRACE(c.a.str() + " and " + c.b.str());
  LibraryProgram p{.dtype = bf16};
  const Value y = matmul(p.feed(c.a), p.feed(c.b), c.attrs);
  p.then(y);
  const Value sum = y + p.feed({y.shape().back()});
  p.then(sum);
  p.then(relu(sum));
  p.graph.outputs = {{"y", p.result()}};
  const Tensor expected = testing::run_kernels(p.graph, p.feeds, 1).at("y");
  std::optional<Tensor> first;
  for (const int threads : {1, 2, 3, 7}) {
    const ScopedLibraryThreads limit(threads);
    const auto candidates = amx_candidates(*p.chain[0], p.epilogue(), 2e12, 20e9);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_GT(candidates[0].seconds, 0);
    const Tensor result = testing::run_candidate(p, make_amx, candidates[0]);
    testing::expect_near(result, expected, 2e-2);
    if (!first) first = result;
    EXPECT_EQ(std::memcmp(result.data(), first->data(), static_cast<size_t>(result.bytes())), 0)
        << threads << " threads";
  }
}

using AmxMatmul = AmxConvolution;

TEST_F(AmxMatmul, AllTranspositionsAndSizes) {
  for (const auto& [m, k, n] : {std::array{1, 1, 1},
                                {17, 33, 31},
                                {32, 64, 32},
                                {33, 250, 70},
                                {300, 300, 530},
                                {5, 700, 40}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        expect_product({ta ? Shape{k, m} : Shape{m, k},
                        tb ? Shape{n, k} : Shape{k, n},
                        {.transpose_a = ta, .transpose_b = tb}});
      }
    }
  }
  expect_product({{3, 5, 40}, {40, 24}, {}});
}

TEST_F(AmxMatmul, OnlyWhatItCanDo) {
  const auto candidates = [](const Product& c, DType dtype) {
    LibraryProgram p{.dtype = dtype};
    p.then(matmul(p.feed(c.a), p.feed(c.b), c.attrs));
    return amx_candidates(*p.chain[0], {}, 2e12, 20e9).size();
  };
  EXPECT_EQ(candidates({{4, 5}, {5, 6}, {}}, bf16), 1u);
  EXPECT_EQ(candidates({{4, 5}, {5, 6}, {}}, f32), 0u);
  EXPECT_EQ(candidates({{2, 4, 5}, {2, 5, 6}, {}}, bf16), 0u);
  EXPECT_EQ(candidates({{2, 5, 4}, {5, 6}, {.transpose_a = true}}, bf16), 0u);
}

}  // namespace
}  // namespace fluid::amx_test
