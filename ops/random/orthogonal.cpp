#include "ops/random/orthogonal.h"

#include <algorithm>
#include <cmath>

#include "ops/newton_schulz.h"
#include "ops/operators.h"
#include "ops/scan.h"

namespace fluid {
namespace {

/// Grows small singular values, and moves those of at most 1 to between 0.68 and 1.21 (Jordan et
/// al., "Muon: an optimizer for hidden layers", 2024).
constexpr NewtonSchulz kGrowth = {3.4445, -4.775, 2.0315};
/// Converges to 1 from there, cubically (Higham, "Functions of matrices", 2008, section 8.3).
constexpr NewtonSchulz kConvergence = {15.0 / 8, -10.0 / 8, 3.0 / 8};
constexpr int kConvergenceSteps = 5;

/// Iterations after which the smallest singular value of a random matrix has grown. It is about
/// n^-1.5 of the Frobenius norm, rarely 1000 times smaller.
int growth_steps(double n) {
  constexpr double kRarelySmaller = 1000;
  return static_cast<int>(
      std::ceil(std::log(kRarelySmaller * std::pow(n, 1.5)) / std::log(kGrowth.a)));
}

/// Records `steps` iterations as a scan, so that one of them is compiled.
Value iterate(Value x, const NewtonSchulz& coefficients, int steps, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::Program& program = graph.program();
  ir::Graph& body = program.add_graph(program.fresh_graph_name("orthogonal"));
  const Value before = append_argument(body, 0, x.type());
  body.outputs.push_back({"0", newton_schulz_step(before, coefficients, loc)});
  return append_scan(graph, {x}, {.body = &body, .carries = 1, .steps = steps}, loc)->result();
}

}  // namespace

Value orthogonal_factor(Value x, const Loc& loc) {
  const int64_t n = std::min(x.shape()[0].size, x.shape()[1].size);
  x = x / sqrt(sum(square(x, loc), {}, loc), loc);
  x = iterate(x, kGrowth, growth_steps(static_cast<double>(n)), loc);
  return iterate(x, kConvergence, kConvergenceSteps, loc);
}

}  // namespace fluid
