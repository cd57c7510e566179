#include "ops/random/orthogonal.h"

#include <algorithm>
#include <cmath>

#include "ops/newton_schulz.h"
#include "ops/operators.h"
#include "ops/scan.h"

namespace fluid {
namespace {

/// Coefficients for which iterations enlarge small singular values, and move singular values of at
/// most 1 to between 0.68 and 1.21 (Jordan et al., "Muon: an optimizer for hidden layers", 2024).
constexpr NewtonSchulz<double> kGrowth = {3.4445, -4.775, 2.0315};
/// Coefficients for which singular values between 0.68 and 1.21 converge to 1 cubically (Higham,
/// "Functions of matrices", 2008, section 8.3).
constexpr NewtonSchulz<double> kConvergence = {15.0 / 8, -10.0 / 8, 3.0 / 8};
constexpr int kConvergenceSteps = 5;

/// Number of kGrowth iterations after which the smallest singular value of a random n x n matrix is
/// near 1. This singular value is initially about n^-1.5 of the Frobenius norm, and rarely 1000
/// times smaller.
int growth_steps(double n) {
  constexpr double kRarelySmaller = 1000;
  return static_cast<int>(
      std::ceil(std::log(kRarelySmaller * std::pow(n, 1.5)) / std::log(kGrowth.a)));
}

/// Records an iteration with kGrowth if the scalar `growths_left` is positive, else with
/// kConvergence.
Value iteration(Value x, Value growths_left, const Loc& loc) {
  const Value grows = cast(greater(growths_left, scalar_like(growths_left, 0)), x.dtype(), loc);
  const auto choose = [&](double growth, double convergence) {
    return grows * (growth - convergence) + convergence;
  };
  const NewtonSchulz<Value> chosen = {choose(kGrowth.a, kConvergence.a),
                                      choose(kGrowth.b, kConvergence.b),
                                      choose(kGrowth.c, kConvergence.c)};
  return newton_schulz_step(x, chosen, loc);
}

}  // namespace

// Runs the iterations as a scan, so that only one iteration is compiled.
Value orthogonal_factor(Value x, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::Program& program = graph.program();
  const int64_t n = std::min(x.shape()[0].size, x.shape()[1].size);
  const int growths = growth_steps(static_cast<double>(n)), steps = growths + kConvergenceSteps;
  const Type counts{i64, {steps}, {}};
  const Value growths_left =
      arange(graph, {.type = counts, .start = static_cast<double>(growths), .step = -1}, loc);
  ir::Graph& body = program.add_graph(program.fresh_graph_name("orthogonal"));
  const Value before = append_argument(body, 0, x.type());
  const Value left = append_argument(body, 1, {i64, {}, {}});
  body.outputs.push_back({"0", iteration(before, left, loc)});
  x = x / sqrt(sum(square(x, loc), {}, loc), loc);
  const ScanParts parts{.body = &body, .carries = 1, .sequences = 1, .steps = steps};
  return append_scan(graph, {x, growths_left}, parts, loc)->result();
}

}  // namespace fluid
