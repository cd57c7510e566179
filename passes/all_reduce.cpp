#include <algorithm>

#include "ops/operators.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"
#include "passes/summed_outputs.h"

namespace fluid {
namespace {

/// Inserts all-reduces or reduce-scatters of the gradients, and an all-reduce of the outputs and
/// the loss. All ranks must run the same collectives in the same order, even if their programs
/// differ. Therefore the buckets of gradients follow the order of Recipe::parameters(), not the
/// order of ops.
class Reduction {
 public:
  Reduction(ir::Graph& graph, const Recipe& recipe, const Options& options)
      : graph_(graph), recipe_(recipe), options_(options), buckets_(options.buckets) {}

  void run() {
    reduce_gradients();
    if (options_.shard_optimizer) recipe_.set_shards(shard_bounds_, bucket_of_, options_.rank);
    reduce_outputs();
  }

 private:
  /// Assigns gradients to buckets from the last parameter to the first, because backward computes
  /// gradients in this order.
  void reduce_gradients() {
    shard_bounds_.resize(recipe_.parameters().size());
    bucket_of_.resize(shard_bounds_.size());
    std::vector<size_t> bucket;
    int64_t bytes = 0;
    for (size_t i = recipe_.parameters().size(); i-- > 0;) {
      const Value g = collective_operand(i);
      if (!bucket.empty() && collective_operand(bucket.front()).dtype() != g.dtype())
        reduce_bucket(bucket, bytes);
      bucket.push_back(i);
      bytes += g.type().bytes_at(1);
      if (bytes >= (bucket_count_ ? buckets_.bytes : buckets_.first_bytes))
        reduce_bucket(bucket, bytes);
    }
    reduce_bucket(bucket, bytes);
    reduce_rows();
  }

  /// All-reduces the row indices of all sparse gradients; see Recipe::row_indices().
  void reduce_rows() {
    Values rows;
    recipe_.replace_row_indices([&](size_t, Value v) { return rows.emplace_back(v); });
    if (rows.empty()) return;
    const Values sums = insert_collective(graph_, last_backward_collective_ + 1 + bucket_count_++,
                                          "all_reduce", rows, recipe_.directive().loc);
    auto sum = sums.begin();
    recipe_.replace_row_indices([&](size_t, Value) { return *sum++; });
  }

  /// The gradient of parameter `i`, cast to the dtype of the collective.
  Value collective_operand(size_t i) {
    Value& g = cast_[i];
    if (g) return g;
    ir::ScopedRecording as(graph_, recipe_.recording(recipe_.parameters()[i]));
    const Value full = recipe_.gradient(i);
    g = cast(full, buckets_.dtype.value_or(full.dtype()));
    return g;
  }

  void reduce_bucket(std::vector<size_t>& bucket, int64_t& bytes) {
    if (bucket.empty()) return;
    Values gradients;
    for (const size_t i : bucket) gradients.push_back(collective_operand(i));
    if (options_.shard_optimizer) shard_bucket(bucket);
    for (const size_t i : bucket)
      last_backward_collective_ =
          std::max(last_backward_collective_, recipe_.last_collective_before_gradient(i));
    const Values sums =
        insert_collective(graph_,
                          // Order number: the collective runs after last_backward_collective_
                          // and after the collectives of earlier buckets.
                          last_backward_collective_ + 1 + bucket_count_,
                          options_.shard_optimizer ? "reduce_scatter" : "all_reduce", gradients,
                          recipe_.directive().loc);
    for (size_t k = 0; k < bucket.size(); ++k) {
      ir::ScopedRecording as(graph_, recipe_.recording(recipe_.parameters()[bucket[k]]));
      Value& gradient = recipe_.gradient(bucket[k]);
      gradient = cast(sums[k], gradient.dtype());
    }
    bucket.clear();
    bytes = 0;
    ++bucket_count_;
  }

  /// Computes the shards of the bucket, one per process. The bucket is divided evenly, so a shard
  /// may begin in the middle of a parameter.
  void shard_bucket(const std::vector<size_t>& bucket) {
    std::vector<int64_t> starts = {0};
    for (const size_t i : bucket) {
      starts.push_back(starts.back() + bucket_elements(recipe_.gradient(i).type()));
    }
    for (size_t k = 0; k < bucket.size(); ++k) {
      const int64_t elements = recipe_.gradient(bucket[k]).shape().numel().size;
      std::vector<int64_t>& bounds = shard_bounds_[bucket[k]];
      for (int64_t rank = 0; rank < options_.world; ++rank) {
        const int64_t begin = bucket_shard(starts.back(), options_.world, rank).begin;
        bounds.push_back(std::clamp<int64_t>(begin - starts[k], 0, elements));
      }
      bounds.push_back(elements);
      bucket_of_[bucket[k]] = bucket_count_;
    }
  }

  /// All-reduces the outputs, and the loss if skip_nonfinite tests it, in one f64 collective.
  void reduce_outputs() {
    Values parts;
    for (const SummedOutput& output : summed_outputs(graph_)) parts.push_back(output.value);
    Value& loss = recipe_.directive().operands.at(0);
    const bool reduces_loss = skips_on_nonfinite_loss(options_);  // true on all ranks or on none
    if (reduces_loss) parts.push_back(loss);
    if (parts.empty()) return;
    for (Value& part : parts) {
      ir::ScopedRecording as(graph_, {ir::Role::metric, recipe_.directive().loc, "", ""});
      part = cast(part, f64);
    }
    const Values sums = record_collective(graph_, "all_reduce", parts, recipe_.directive().loc);
    size_t i = 0;
    replace_summed_outputs(
        graph_, [&](const std::string&, Value part) { return cast(sums[i++], part.dtype()); });
    if (reduces_loss) loss = sums.back();
  }

  ir::Graph& graph_;
  const Recipe& recipe_;
  const Options& options_;
  const Buckets& buckets_;
  int64_t bucket_count_ = 0;  ///< number of gradient buckets reduced so far
  /// Order number of the last collective of the backward pass on which a reduced bucket depends;
  /// -1: none. Does not count the collectives that this pass inserts.
  int64_t last_backward_collective_ = -1;
  std::map<size_t, Value> cast_;
  std::vector<std::vector<int64_t>> shard_bounds_;  ///< indexed by parameter; see set_shards()
  std::vector<int64_t> bucket_of_;
};

bool run_all_reduce(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.uses_collectives()) return false;
  if (options.shard_optimizer && Recipe(*directive).has_sparse_gradients()) {
    throw UserError(
        directive->loc,
        "sparse parameters cannot be trained with DistributedOptions::zero 1: each rank "
        "updates the same rows; take DistributedOptions::zero 0, or make them dense");
  }
  Reduction(graph, Recipe(*directive), options).run();
  move_op_last(graph, directive);
  sort_by_order_edges(graph);
  return true;
}

}  // namespace

Pass all_reduce_pass() {
  return {
      .name = "all_reduce",
      .doc = "All-reduces losses and metrics, and all-reduces or reduce-scatters the gradients.",
      .needs = {"gradients"},
      .provides = {"reduced"},
      .run = run_all_reduce};
}

}  // namespace fluid
