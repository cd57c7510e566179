#include <algorithm>

#include "ops/operators.h"
#include "passes/collective_order.h"
#include "passes/outputs_add_up.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Adds the all-reduces. All ranks must run the same buckets in the same order, even if their
/// programs differ. So buckets follow the order of parameters in the recipe, not the order of ops.
class Reduction {
 public:
  Reduction(ir::Graph& graph, const Recipe& recipe, const Options& options)
      : graph_(graph), recipe_(recipe), options_(options), buckets_(options.buckets) {}

  void run() {
    reduce_gradients();
    if (options_.shard_optimizer) recipe_.shard(cuts_, bucket_of_, options_.rank);
    reduce_outputs();
  }

 private:
  /// Goes from the last parameter to the first, because backward computes gradients in this order.
  void reduce_gradients() {
    cuts_.resize(recipe_.parameters().size());
    bucket_of_.resize(cuts_.size());
    std::vector<size_t> bucket;
    int64_t bytes = 0;
    for (size_t i = recipe_.parameters().size(); i-- > 0;) {
      const Value g = collective_operand(i);
      if (!bucket.empty() && collective_operand(bucket.front()).dtype() != g.dtype())
        flush(bucket, bytes);
      bucket.push_back(i);
      bytes += g.type().bytes_at(1);
      if (bytes >= (flushed_ ? buckets_.bytes : buckets_.first_bytes)) flush(bucket, bytes);
    }
    flush(bucket, bytes);
  }

  /// The gradient cast to the dtype of the collective.
  Value collective_operand(size_t i) {
    Value& g = cast_[i];
    if (g) return g;
    ir::RecordAs as(graph_, recipe_.recording(recipe_.parameters()[i]));
    const Value full = recipe_.gradient(i);
    g = cast(full, buckets_.dtype.value_or(full.dtype()));
    return g;
  }

  void flush(std::vector<size_t>& bucket, int64_t& bytes) {
    if (bucket.empty()) return;
    Values gradients;
    for (const size_t i : bucket) gradients.push_back(collective_operand(i));
    if (options_.shard_optimizer) cut(bucket);
    for (const size_t i : bucket) waits_for_ = std::max(waits_for_, recipe_.waits_for(i));
    const Values sums = insert_collective(
        graph_, waits_for_ + 1 + flushed_,  // + flushed_: earlier buckets have lower numbers
        options_.shard_optimizer ? "reduce_scatter" : "all_reduce", gradients,
        recipe_.directive().loc);
    for (size_t k = 0; k < bucket.size(); ++k) {
      ir::RecordAs as(graph_, recipe_.recording(recipe_.parameters()[bucket[k]]));
      Value& gradient = recipe_.gradient(bucket[k]);
      gradient = cast(sums[k], gradient.dtype());
    }
    bucket.clear();
    bytes = 0;
    ++flushed_;
  }

  /// Divides the bucket evenly among the processes. A cut may lie inside a parameter.
  void cut(const std::vector<size_t>& bucket) {
    std::vector<int64_t> starts = {0};
    for (const size_t i : bucket) {
      starts.push_back(starts.back() + bucket_elements(recipe_.gradient(i).type()));
    }
    for (size_t k = 0; k < bucket.size(); ++k) {
      const int64_t elements = recipe_.gradient(bucket[k]).shape().numel().size;
      std::vector<int64_t>& cuts = cuts_[bucket[k]];
      for (int64_t rank = 0; rank < options_.world; ++rank) {
        const int64_t begin = bucket_shard(starts.back(), options_.world, rank).begin;
        cuts.push_back(std::clamp<int64_t>(begin - starts[k], 0, elements));
      }
      cuts.push_back(elements);
      bucket_of_[bucket[k]] = flushed_;
    }
  }

  /// Reduces all outputs in one collective, in f64.
  void reduce_outputs() {
    Values parts;
    for (const Summand& summand : summands(graph_)) parts.push_back(summand.value);
    Value& loss = recipe_.directive().operands.at(0);
    const bool decides = decides_by_loss(options_);  // equal on all ranks
    if (decides) parts.push_back(loss);
    if (parts.empty()) return;
    for (Value& part : parts) {
      ir::RecordAs as(graph_, {ir::Role::metric, recipe_.directive().loc, "", ""});
      part = cast(part, f64);
    }
    const Values sums = record_collective(graph_, "all_reduce", parts, recipe_.directive().loc);
    size_t i = 0;
    replace_summands(graph_,
                     [&](const std::string&, Value part) { return cast(sums[i++], part.dtype()); });
    if (decides) loss = sums.back();
  }

  ir::Graph& graph_;
  const Recipe& recipe_;
  const Options& options_;
  const Buckets& buckets_;
  int64_t flushed_ = 0;     ///< number of gradient buckets so far
  int64_t waits_for_ = -1;  ///< last collective of backward that a bucket waits for
  std::map<size_t, Value> cast_;
  std::vector<std::vector<int64_t>> cuts_;  ///< by parameter, see Recipe::shard
  std::vector<int64_t> bucket_of_;
};

bool run_all_reduce(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.exchanges()) return false;
  Reduction(graph, Recipe(*directive), options).run();
  move_last(graph, directive);
  sort_by_collectives(graph);
  return true;
}

}  // namespace

Pass all_reduce_pass() {
  return {
      .name = "all_reduce",
      .doc = "All-reduces losses and metrics, and all-reduces or reduce-scatters the gradients.",
      .needs = {"gradients"},
      .gives = {"reduced"},
      .run = run_all_reduce};
}

}  // namespace fluid
