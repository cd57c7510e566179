#include <algorithm>

#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr double kEps = 1e-6;  // PyTorch's eps, added to a norm

Value clamped(Value g, double most) {
  return minimum(maximum(g, scalar_like(g, -most)), scalar_like(g, most));
}

/// Factor that scales a tensor with sum of squares `squares` down to norm `most`. At most 1.
Value shrinking(Value squares, double most) {
  const Value factor = most / (sqrt(squares) + kEps);
  return minimum(factor, scalar_like(factor, 1));
}

Value scaled(Value g, Value factor) { return g * cast(factor, g.dtype()); }

/// Sum of squares of all gradients, added in the order of the parameters.
Value all_squares(const Recipe& recipe) {
  Value sum;
  for (size_t i = 0; i < recipe.parameters().size(); ++i) {
    const Value squares = internal::sum_squares(recipe.gradient(i));
    sum = sum ? sum + cast(squares, sum.dtype()) : squares;
  }
  return recipe.all_reduced({sum})[0];
}

bool run_clip_gradients(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr) return false;
  const Recipe recipe(*directive);
  const Attrs& attrs = directive->attrs;
  const double value = attrs.get_or("clip_value", 0.0), norm = attrs.get_or("clip_norm", 0.0),
               global_norm = attrs.get_or("clip_global_norm", 0.0);
  if (std::max({value, norm, global_norm}) == 0) return false;
  if (value > 0) recipe.replace_gradients([&](Value g) { return clamped(g, value); });
  if (norm > 0) {
    Values squares;
    recipe.replace_gradients(
        [&](Value g) { return squares.emplace_back(internal::sum_squares(g)), g; });
    squares = recipe.all_reduced(squares);
    size_t i = 0;
    recipe.replace_gradients([&](Value g) { return scaled(g, shrinking(squares[i++], norm)); });
  }
  if (global_norm > 0) {
    ir::RecordAs as(graph, recipe.recording());
    const Value factor = shrinking(all_squares(recipe), global_norm);
    recipe.replace_gradients([&](Value g) { return scaled(g, factor); });
  }
  move_last(graph, directive);
  return true;
}

}  // namespace

Pass clip_gradients_pass() {
  return {.name = "clip_gradients",
          .doc = "Clips gradients by value, by the norm of each gradient or by the global norm.",
          .needs = {"gradients"},
          .gives = {},
          .run = run_clip_gradients};
}

}  // namespace fluid
