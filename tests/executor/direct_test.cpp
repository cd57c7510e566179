// Direct convolutions against the ops' own definitions.

#include "executor/cpu_libraries/direct.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "executor/cpu_libraries/avx512_support.h"
#include "executor/host/parallel.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "tests/support/golden.h"
#include "tests/support/kernel_runner.h"
#include "tests/support/library_program.h"

namespace fluid::direct_test {
namespace {

using testing::LibraryProgram;

LibraryRoutine make_direct(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                           int64_t batch) {
  return direct_kernel(kernel, op, epilogue, batch).value();
}

void make_channels_last(ir::Result& image) {
  if (image.type.shape.size() == 4) image.type.layout = channels_last();
}

/// Makes the images of a convolution channels-last, and returns its candidate.
std::vector<KernelCandidate> direct_candidates_of(LibraryProgram& p) {
  const ir::Op& head = *p.chain[0];
  for (size_t i = 0; i < head.operands.size(); ++i) {
    const bool is_filter = i == 1 && head.name != "conv2d_grad_filter";
    if (!is_filter) make_channels_last(head.operands[i].op()->results[0]);
  }
  if (head.name != "conv2d_grad_filter") {
    for (ir::Op* op : p.chain) make_channels_last(op->results[0]);
  }
  return direct_candidates(head, p.epilogue(), 200e9, 20e9);
}

struct Case {
  Shape x, w;
  Conv2dAttrs attrs;
};

/// A convolution with a bias and a relu, and the gradients of the convolution.
struct Convolution {
  LibraryProgram forward, for_input, for_filter;

  explicit Convolution(const Case& c, DType dtype = f32)
      : forward{.dtype = dtype}, for_input{.dtype = dtype}, for_filter{.dtype = dtype} {
    const Value image = forward.feed(c.x);
    const Value y = conv2d(image, forward.feed(c.w), c.attrs);
    forward.then(y);
    const Value sum = y + reshape(forward.feed({c.w[0]}), Shape{c.w[0], 1, 1});
    forward.then(sum);
    forward.then(relu(sum));
    const auto& a = c.attrs;
    const Value gradient = for_input.feed(y.shape());
    for_input.then(internal::conv2d_grad_input(gradient, for_input.feed(c.w),
                                               {.stride = a.stride,
                                                .padding = a.padding,
                                                .dilation = a.dilation,
                                                .groups = a.groups,
                                                .input = Type{dtype, c.x, {}}}));
    const Value x = for_filter.feed(c.x), dy = for_filter.feed(y.shape());
    for_filter.then(internal::conv2d_grad_filter(x, dy,
                                                 {.stride = a.stride,
                                                  .padding = a.padding,
                                                  .dilation = a.dilation,
                                                  .groups = a.groups,
                                                  .filter = Type{dtype, c.w, {}}}));
  }
  std::vector<LibraryProgram*> programs() { return {&forward, &for_input, &for_filter}; }
};

class DirectConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_supports_avx512()) GTEST_SKIP() << "the processor lacks AVX-512";
  }
};

void expect_results(const Case& c, double tolerance) {
  SCOPED_TRACE(c.x.str() + " and " + c.w.str());
  Convolution convolution(c);
  for (LibraryProgram* p : convolution.programs()) {
    SCOPED_TRACE(p->chain[0]->name);
    p->graph.outputs = {{"y", p->result()}};
    const Tensor expected = testing::run_kernels(p->graph, p->feeds, 1).at("y");
    const std::vector<KernelCandidate> candidates = direct_candidates_of(*p);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_GT(candidates[0].seconds, 0);
    testing::expect_near(testing::run_candidate(*p, make_direct, candidates[0]), expected,
                         tolerance);
  }
}

TEST_F(DirectConvolution, WindowsOfAllKinds) {
  for (const Case& c :
       {Case{{2, 3, 9, 8}, {5, 3, 3, 3}, {}}, Case{{2, 3, 9, 8}, {5, 3, 3, 3}, {.padding = 1}},
        Case{{2, 3, 9, 8}, {17, 3, 3, 2}, {.stride = 2, .padding = 1}},
        Case{{2, 16, 7, 7}, {33, 16, 1, 1}, {.padding = 1}},
        Case{{2, 16, 7, 8}, {20, 16, 1, 1}, {.stride = 2}},
        Case{{1, 1, 12, 11}, {20, 1, 5, 5}, {.padding = 2}},
        Case{{1, 4, 11, 13}, {64, 4, 3, 3}, {.stride = {3, 2}, .padding = 2}},
        Case{{2, 5, 12, 9}, {70, 5, 3, 3}, {.padding = 2, .dilation = 2}},
        Case{{2, 5, 13, 9}, {7, 5, 3, 3}, {.stride = 2, .padding = 1, .dilation = 3}},
        Case{{2, 2, 6, 5}, {3, 2, 4, 3}, {.stride = 4, .padding = {3, 0, 1, 2}}},
        Case{{1, 2, 5, 4}, {3, 2, 2, 2}, {.stride = 3}},
        Case{{1, 2, 3, 3}, {3, 2, 3, 3}, {.padding = 5}}}) {
    expect_results(c, 1e-4);
  }
}

// Several blocks, panels and strips of taps; ranges of pixels, and a filter too large for them.
TEST_F(DirectConvolution, LargeConvolutions) {
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}}}) {
    expect_results(c, 1e-3);
  }
}

TEST_F(DirectConvolution, ThreadsDoNotChangeBits) {
  std::map<std::string, Tensor> expected;
  for (const Case& c : {Case{{3, 3, 67, 61}, {64, 3, 11, 11}, {.stride = 4, .padding = 2}},
                        Case{{5, 130, 14, 13}, {150, 130, 3, 3}, {.stride = 2, .padding = 1}}}) {
    Convolution convolution(c);
    for (LibraryProgram* p : convolution.programs()) {
      const std::string name = p->chain[0]->name + c.x.str();
      for (const int threads : {1, 2, 3, 7}) {
        const ScopedLibraryThreads limit(threads);
        const Tensor y = testing::run_candidate(*p, make_direct, direct_candidates_of(*p).at(0));
        const Tensor& first = expected.try_emplace(name, y).first->second;
        EXPECT_EQ(std::memcmp(y.data(), first.data(), static_cast<size_t>(y.bytes())), 0)
            << name << ", " << threads << " threads";
      }
    }
  }
  EXPECT_EQ(expected.size(), 6u);
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
