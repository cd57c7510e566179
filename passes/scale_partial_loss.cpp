#include "ops/operators.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "passes/batch_partition.h"
#include "passes/metrics.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"
#include "passes/summed_outputs.h"

namespace fluid {
namespace {

/// Scales the loss and outputs of a program that processes a micro-batch or shard. The sum of the
/// scaled values over all micro-batches or shards is the value for the whole batch.
class PartialLossScaler {
 public:
  explicit PartialLossScaler(ir::Graph& graph) : graph_(graph) {}

  /// Returns `v`, scaled so that the sum over all parts of the batch is the value for the whole
  /// batch. For example, a mean is multiplied by the part's fraction of the samples. `what` names
  /// `v` in error messages.
  Value scaled_to_add_up(Value v, const std::string& what) {
    const BatchPartition parts = analysis_.partition_of(v);
    if (parts.kind == BatchPartition::other) reject_loss(analysis_.first_unsupported_op(v), what);
    if (const auto known = scaled_.find(v); known != scaled_.end()) return known->second;
    ir::Op& op = *v.op();
    ir::ScopedRecording as(graph_, recording_of(op));
    if (parts.kind == BatchPartition::terms) return scaled_[v] = sum_of_terms(op, what);
    Value& result = scaled_[v] = v;
    for (int i = 0; i < parts.scale_power(); ++i) result = result * cast(weight(op.loc), v.dtype());
    for (int i = parts.scale_power(); i < 0; ++i) result = result / cast(weight(op.loc), v.dtype());
    return result;
  }

  void scale_output(ir::Output& o) {
    if (is_metric(o.value) || o.value.shape().has_batch()) return;
    const std::string what = "output '" + o.name + "'";
    if (is_additive(o)) {
      o.value = scaled_to_add_up(o.value, what);
    } else if (analysis_.partition_of(o.value) != BatchPartition{}) {
      throw UserError(o.value.op()->loc,
                      what + " is " + o.value.type().str() +
                          ", which does not add up over micro-batches and processes: cast it to a "
                          "float");
    }
  }

 private:
  Value sum_of_terms(const ir::Op& op, const std::string& what) {
    Values operands = op.operands;
    const std::vector<bool> terms = analysis_.terms_of(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (terms[i]) operands[i] = scaled_to_add_up(operands[i], what);
    }
    return record(graph_, op.name, operands, op.attrs, op.loc)[0];
  }

  Value weight(const Loc& loc) {
    if (!weight_) {
      weight_ = record_source(
          graph_, "state", std::string(kPartialLossWeight), Type{f64, {}, {}},
          {{"init", std::string("constant")}, {"value", 1.0}, {kScratchAttribute, true}}, loc);
    }
    return weight_;
  }

  [[noreturn]] static void reject_loss(const ir::Op& op, const std::string& what) {
    throw UserError(
        op.loc,
        what +
            " does not decompose into sums and means over samples, which micro-batches and several "
            "ranks need: " +
            op.name +
            " combines samples in another way; change it, or run the batch as a whole on one rank");
  }

  ir::Graph& graph_;
  BatchPartitionAnalysis analysis_;
  std::map<Value, Value> scaled_;
  Value weight_;
};

bool run_scale_partial_loss(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.scale_partial_loss) return false;
  PartialLossScaler scaler(graph);
  Value& loss = directive->operands.at(0);
  loss = scaler.scaled_to_add_up(loss, "the loss");
  for (ir::Output& o : graph.outputs) scaler.scale_output(o);
  move_op_last(graph, directive);
  return true;
}

}  // namespace

Pass scale_partial_loss_pass() {
  return {.name = "scale_partial_loss",
          .doc = "Scales the loss and outputs of a partial batch to add up to those of the batch.",
          .needs = {"typed"},
          .provides = {},
          .run = run_scale_partial_loss};
}

}  // namespace fluid
