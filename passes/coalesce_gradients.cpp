#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool run_coalesce_gradients(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.processes_part_of_batch()) return false;
  const Recipe recipe(*directive);
  if (!recipe.has_sparse_gradients()) return false;
  recipe.replace_row_indices([&](size_t i, Value rows) {
    const ir::Op& param = *graph.find_indexed("param", recipe.parameters()[i]);
    const Values coalesced = internal::coalesce_rows(cast(rows - 1, i64), recipe.gradient(i),
                                                     {.rows = param.results[0].type.shape[0].size});
    recipe.gradient(i) = coalesced[1];
    return coalesced[0];
  });
  move_op_last(graph, directive);
  return true;
}

}  // namespace

Pass coalesce_gradients_pass() {
  return {.name = "coalesce_gradients",
          .doc = "Sums the rows of a sparse gradient that micro-batches and ranks have gathered.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_coalesce_gradients};
}

}  // namespace fluid
