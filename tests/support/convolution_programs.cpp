#include "tests/support/convolution_programs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "executor/host/parallel.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/layouts.h"
#include "tests/support/kernel_runner.h"

namespace fluid::testing {
namespace {

void make_channels_last(ir::Result& image) {
  if (image.type.shape.size() == 4) image.type.layout = channels_last();
}

}  // namespace

ConvolutionPrograms::ConvolutionPrograms(const ConvolutionCase& c, DType dtype)
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

std::vector<ConvolutionCase> windows_of_all_kinds() {
  return {{{2, 3, 9, 8}, {5, 3, 3, 3}, {}},
          {{2, 3, 9, 8}, {5, 3, 3, 3}, {.padding = 1}},
          {{2, 3, 9, 8}, {17, 3, 3, 2}, {.stride = 2, .padding = 1}},
          {{2, 16, 7, 7}, {33, 16, 1, 1}, {.padding = 1}},
          {{2, 16, 7, 8}, {20, 16, 1, 1}, {.stride = 2}},
          {{1, 1, 12, 11}, {20, 1, 5, 5}, {.padding = 2}},
          {{1, 4, 11, 13}, {64, 4, 3, 3}, {.stride = {3, 2}, .padding = 2}},
          {{2, 5, 12, 9}, {70, 5, 3, 3}, {.padding = 2, .dilation = 2}},
          {{2, 5, 13, 9}, {7, 5, 3, 3}, {.stride = 2, .padding = 1, .dilation = 3}},
          {{2, 2, 6, 5}, {3, 2, 4, 3}, {.stride = 4, .padding = {3, 0, 1, 2}}},
          {{1, 2, 5, 4}, {3, 2, 2, 2}, {.stride = 3}},
          {{1, 2, 3, 3}, {3, 2, 3, 3}, {.padding = 5}}};
}

void use_channels_last(LibraryProgram& p) {
  const ir::Op& head = *p.chain[0];
  for (size_t i = 0; i < head.operands.size(); ++i) {
    const bool is_filter = i == 1 && head.name != "conv2d_grad_filter";
    if (!is_filter) make_channels_last(head.operands[i].op()->results[0]);
  }
  if (head.name == "conv2d_grad_filter") return;
  for (ir::Op* op : p.chain) make_channels_last(op->results[0]);
}

void expect_convolutions(const ConvolutionCase& c, DType dtype, double tolerance,
                         const std::function<std::vector<KernelCandidate>(LibraryProgram&)>& all,
                         const MakeKernel& make) {
  SCOPED_TRACE(c.x.str() + " and " + c.w.str());
  ConvolutionPrograms convolution(c, dtype);
  for (LibraryProgram* p : convolution.programs()) {
    SCOPED_TRACE(p->chain[0]->name);
    p->graph.outputs = {{"y", p->result()}};
    const Tensor expected = run_kernels(p->graph, p->feeds, 1).at("y");
    use_channels_last(*p);
    const std::vector<KernelCandidate> candidates = all(*p);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_GT(candidates[0].seconds, 0);
    expect_near(run_candidate(*p, make, candidates[0]), expected, tolerance);
  }
}

void expect_equal_bits_of_threads(
    const ConvolutionCase& c, DType dtype,
    const std::function<std::vector<KernelCandidate>(LibraryProgram&)>& all,
    const MakeKernel& make) {
  ConvolutionPrograms convolution(c, dtype);
  for (LibraryProgram* p : convolution.programs()) {
    use_channels_last(*p);
    std::optional<Tensor> first;
    for (const int threads : {1, 2, 3, 7}) {
      const ScopedLibraryThreads limit(threads);
      const Tensor y = run_candidate(*p, make, all(*p).at(0));
      if (!first) first = y;
      EXPECT_EQ(std::memcmp(y.data(), first->data(), static_cast<size_t>(y.bytes())), 0)
          << p->chain[0]->name << ' ' << c.x.str() << ", " << threads << " threads";
    }
  }
}

}  // namespace fluid::testing
