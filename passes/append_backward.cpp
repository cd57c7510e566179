#include "ir/error.h"
#include "ops/functions.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/optim/recipes.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/backward.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The parameters that the recipe trains, in the order in which they were recorded.
std::vector<ir::Op*> trainable_parameters(const ir::Graph& graph, const ir::Op& train) {
  const std::set<std::string> of_recipe = trained_parameters(train);
  std::vector<ir::Op*> parameters;
  for (const auto& op : graph.ops) {
    const bool trainable =
        source_kind(*op) == SourceKind::parameter && op->attrs.get_or<bool>("trainable", true);
    const bool in_recipe = of_recipe.empty() || of_recipe.contains(op->symbol);
    if (trainable && in_recipe) parameters.push_back(op.get());
  }
  return parameters;
}

bool is_sparse(const ir::Op& param) { return param.attrs.get_or("sparse", false); }

/// Returns the gradient of the sparse parameter `param` as rows with row indices. Throws UserError
/// if several ops read the parameter.
RowUpdates sparse_gradient(const ir::Op& param, const Values& contributions) {
  const std::string subject = "parameter '" + param.symbol + "' is sparse, but ";
  if (contributions.size() > 1) {
    throw UserError(param.loc, subject + std::to_string(contributions.size()) +
                                   " ops read it; concatenate their indices for one op");
  }
  ir::Op& gradient = *contributions.front().op();
  const auto& row_updates = def_of(gradient).row_updates;
  const auto updates = row_updates ? row_updates(ExpandCtx(gradient)) : std::nullopt;
  if (!updates) {
    throw UserError(param.loc, subject + "its gradient, from " + gradient.name +
                                   ", is dense; only embedding, embedding_bag and gather along "
                                   "axis 0 of a matrix give rows");
  }
  return *updates;
}

/// Sums rows that have the same row index, like torch.Tensor.coalesce(). Returns the row indices
/// and the rows.
Values coalesced(const ir::Op& param, const RowUpdates& gradient) {
  const auto& [index, rows, weights] = gradient;
  const internal::CoalesceRowsAttrs attrs{.rows = param.results[0].type.shape[0].size};
  return weights ? internal::coalesce_rows(index, rows, weights, attrs)
                 : internal::coalesce_rows(index, rows, attrs);
}

/// Returns one gradient row per index, multiplied by the weight of the index, if any. The shape is
/// [number of indices, D].
Value row_of_each_index(const RowUpdates& gradient) {
  const auto& [index, updates, weights] = gradient;
  const Dim count = index.shape()[0], m = updates.shape()[0], width = updates.shape()[1];
  if (count == m && !weights) return updates;
  const int64_t each = m.size == 0 ? 0 : count.size / m.size;
  const Value bags = reshape(updates, Shape{m, 1, width});
  const Value rows = weights ? bags * reshape(weights, Shape{m, each, 1})
                             : broadcast_to(bags, Shape{m, each, width});
  return reshape(rows, Shape{count, width});
}

/// Scatters the row indices and rows of a micro-batch or shard into tensors of zeros for the global
/// batch; see Recipe::row_indices(). Adds 1 to the row indices, because 0 marks the entries of
/// other micro-batches and shards.
Values placed_in_global_batch(const ir::Op& param, const RowUpdates& gradient,
                              const Options& options) {
  const Dim count = gradient.index.shape()[0];
  if (!count.batch) {
    throw UserError(param.loc, "parameter '" + param.symbol +
                                   "' is sparse, but the rows that a step reads do not depend on "
                                   "the batch, as micro-batches and several ranks need; make it "
                                   "dense");
  }
  ir::Graph& graph = *param.graph();
  ir::Op* known = graph.find("state", kFirstSampleIndex);
  const Value first =
      known != nullptr ? known->result()
                       : record_source(graph, "state", std::string(kFirstSampleIndex),
                                       Type{i64, {}, {}}, {{kScratchAttribute, true}}, param.loc);
  const Value start = first * static_cast<double>(count.size);
  const internal::PlaceRowsAttrs attrs{.rows = count.size * options.global_samples()};
  return {internal::place_rows(cast(gradient.index, f64) + 1, start, attrs),
          internal::place_rows(row_of_each_index(gradient), start, attrs)};
}

bool run_append_backward(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* train = find_directive(graph);
  if (train == nullptr) return false;
  const Value loss = train->operands.at(0);
  const std::vector<ir::Op*> parameters = trainable_parameters(graph, *train);
  Values xs;
  for (ir::Op* param : parameters) xs.push_back(param->result());
  Backward backward(graph, {loss}, xs, ir::Role::backward, "a parameter reaches the loss");
  for (ir::Op* param : parameters) {
    if (is_sparse(*param)) backward.collect_contributions(param->result());
  }
  const Value seed = backward.seed_with_ones(loss);
  backward.run();
  std::vector<std::string> names, sparse;
  Values values, rows;
  train->operands.push_back(seed);
  for (ir::Op* param : parameters) {
    Value gradient;
    if (!is_sparse(*param)) {
      gradient = backward.gradient(param->result());
    } else if (const Values& parts = backward.contributions(param->result()); !parts.empty()) {
      ir::ScopedRecording as(graph, {ir::Role::backward, param->loc, param->scope, param->symbol});
      const RowUpdates updates = sparse_gradient(*param, parts);
      const Values found = options.processes_part_of_batch()
                               ? placed_in_global_batch(*param, updates, options)
                               : coalesced(*param, updates);
      sparse.push_back(param->symbol);
      rows.push_back(found[0]);
      gradient = found[1];
    }
    if (!gradient) continue;
    names.push_back(param->symbol);
    values.push_back(gradient);
    train->operands.push_back(gradient);
    if (gradient.op()->param.empty()) gradient.op()->param = param->symbol;
  }
  if (names.empty()) throw_nothing_to_train(*train);
  train->attrs.set("parameters", names);
  if (!sparse.empty()) Recipe(*train).set_row_indices(sparse, rows);
  move_op_last(graph, train);
  if (const auto waits = last_collectives(graph, values))
    Recipe(*train).set_last_collectives(*waits);
  return true;
}

}  // namespace

Pass append_backward_pass() {
  return {.name = "append_backward",
          .doc = "Appends the gradients of the loss with respect to the trainable parameters.",
          .needs = {"typed"},
          .provides = {"gradients"},
          .run = run_append_backward};
}

}  // namespace fluid
