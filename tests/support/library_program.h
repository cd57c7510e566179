#pragma once

// Library kernels against the ops' own definitions.

#include "executor/cpu_libraries/library.h"
#include "ops/functions.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {

/// A program of one library op and its epilogue; feeds are random.
struct LibraryProgram {
  ir::Program program{"library"};
  ir::Graph& graph = program.main();
  NamedTensors feeds;
  std::vector<ir::Op*> chain;  ///< the op, then its epilogue
  DType dtype = f32;

  Value feed(Shape shape);
  void then(Value v) { chain.push_back(v.op()); }
  EpilogueOps epilogue() const { return {chain.begin() + 1, chain.end()}; }
  /// The values that the kernel reads from outside, in its order.
  Values inputs() const;
  Value result() const { return chain.back()->result(); }
};

using MakeKernel = std::function<LibraryRoutine(std::string_view kernel, const ir::Op&,
                                                const EpilogueOps& epilogue, int64_t batch)>;

/// Runs the kernel of a candidate twice on the feeds, in the layouts that it requires. Returns the
/// result.
Tensor run_candidate(LibraryProgram& p, const MakeKernel& make, const KernelCandidate& candidate);

/// Expects what the ops are defined to give, within `tolerance` of 1 and of the value.
void expect_near(const Tensor& result, const Tensor& expected, double tolerance);

struct ConvolutionCase {
  Shape x, w;
  Conv2dAttrs attrs;
};

/// Convolutions of all kinds, except with asymmetric padding.
std::vector<ConvolutionCase> convolution_cases();

/// How far a kernel may be off, by expect_near.
inline double library_tolerance(DType dtype) { return dtype == f32 ? 2e-5 : 2e-2; }

}  // namespace fluid::testing
