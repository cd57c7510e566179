// Direct convolutions against the ops' own definitions.

#include "executor/cpu_libraries/direct.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/cpu_libraries/avx512_support.h"
#include "tests/support/convolution_programs.h"

namespace fluid::direct_test {
namespace {

using testing::LibraryProgram;
using Case = testing::ConvolutionCase;
using Convolution = testing::ConvolutionPrograms;

LibraryRoutine make_direct(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                           int64_t batch) {
  return direct_kernel(kernel, op, epilogue, batch).value();
}

/// Makes the images of a convolution channels-last, and returns its candidates.
std::vector<KernelCandidate> direct_candidates_of(LibraryProgram& p) {
  testing::use_channels_last(p);
  return direct_candidates(*p.chain[0], p.epilogue(), 200e9, 20e9);
}

class DirectConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_supports_avx512()) GTEST_SKIP() << "the processor lacks AVX-512";
  }
};

void expect_results(const Case& c, double tolerance) {
  testing::expect_convolutions(c, f32, tolerance, direct_candidates_of, make_direct);
}

TEST_F(DirectConvolution, WindowsOfAllKinds) {
  for (const Case& c : testing::windows_of_all_kinds()) expect_results(c, 1e-4);
}

// Several blocks, panels and strips of taps; ranges of pixels, and a filter too large for them.
TEST_F(DirectConvolution, LargeConvolutions) {
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}}}) {
    expect_results(c, 1e-3);
  }
}

TEST_F(DirectConvolution, ThreadsDoNotChangeBits) {
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}}}) {
    testing::expect_equal_bits_of_threads(c, f32, direct_candidates_of, make_direct);
  }
}

TEST_F(DirectConvolution, OnlyWhatItCanDo) {
  Convolution grouped({{2, 32, 9, 9}, {32, 16, 3, 3}, {.groups = 2}});
  for (LibraryProgram* p : grouped.programs()) EXPECT_TRUE(direct_candidates_of(*p).empty());
  EXPECT_THROW(make_direct("direct.conv2d", *grouped.forward.chain[0], {}, 1), DeviceError);
  Convolution product({{2, 16, 7, 7}, {33, 16, 1, 1}, {}});
  for (LibraryProgram* p : product.programs()) EXPECT_TRUE(direct_candidates_of(*p).empty());
  Convolution wide({{2, 4, 9, 9}, {8, 4, 3, 3}, {}}, f64);
  for (LibraryProgram* p : wide.programs()) EXPECT_TRUE(direct_candidates_of(*p).empty());
  Convolution plain({{2, 4, 9, 9}, {8, 4, 3, 3}, {}});
  EXPECT_TRUE(direct_candidates(*plain.forward.chain[0], {}, 200e9, 20e9).empty());
  EXPECT_FALSE(direct_kernel("winograd.conv2d", *plain.forward.chain[0], {}, 1));
}

TEST_F(DirectConvolution, KeepsNans) {
  Convolution convolution({{2, 16, 6, 6}, {16, 16, 3, 3}, {.padding = 1}});
  LibraryProgram& p = convolution.forward;
  p.feeds.at("x0").as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const KernelCandidate candidate = direct_candidates_of(p).at(0);
  EXPECT_TRUE(candidate.propagates_nan);
  const Tensor y = testing::run_candidate(p, make_direct, candidate);
  int64_t nans[2] = {0, 0};
  for (int64_t i = 0; i < y.numel(); ++i) nans[2 * i / y.numel()] += std::isnan(y.at(i)) ? 1 : 0;
  EXPECT_GT(nans[0], 0);
  EXPECT_EQ(nans[1], 0) << "the other sample";
}

}  // namespace
}  // namespace fluid::direct_test
