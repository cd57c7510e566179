#include <algorithm>

#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr double kEps = 1e-6;  // added to the norm, as in torch.nn.utils.clip_grad_norm_

Value clamped(Value g, double limit) {
  return minimum(maximum(g, scalar_like(g, -limit)), scalar_like(g, limit));
}

/// Factor (at most 1) that scales a tensor to an L2 norm of at most `max_norm`. `squares` is the
/// sum of the squares of the tensor's elements.
Value clip_factor(Value squares, double max_norm) {
  const Value factor = max_norm / (sqrt(squares) + kEps);
  return minimum(factor, scalar_like(factor, 1));
}

Value scaled(Value g, Value factor) { return g * cast(factor, g.dtype()); }

/// Square of the global norm, that is, the sum of the squares of all elements of all gradients.
Value all_squares(const Recipe& recipe) {
  Value sum;
  for (size_t i = 0; i < recipe.parameters().size(); ++i) {
    const Value squares = internal::sum_squares(recipe.gradient(i));
    sum = sum ? sum + cast(squares, sum.dtype()) : squares;
  }
  return recipe.all_reduce_sums({sum})[0];
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
    squares = recipe.all_reduce_sums(squares);
    size_t i = 0;
    recipe.replace_gradients([&](Value g) { return scaled(g, clip_factor(squares[i++], norm)); });
  }
  if (global_norm > 0) {
    ir::ScopedRecording as(graph, recipe.recording());
    const Value factor = clip_factor(all_squares(recipe), global_norm);
    recipe.replace_gradients([&](Value g) { return scaled(g, factor); });
  }
  move_op_last(graph, directive);
  return true;
}

}  // namespace

Pass clip_gradients_pass() {
  return {.name = "clip_gradients",
          .doc = "Clips gradients by value, by the norm of each gradient or by the global norm.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_clip_gradients};
}

}  // namespace fluid
