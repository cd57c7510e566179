#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/bucket.h"
#include "passes/options.h"

namespace fluid {

// Names of the states of a recipe. recipe_state() prefixes them with the name of the recipe, if
// any.

/// Name of the state, f64[], that holds the learning rate of the last update. Exists only with a
/// learning-rate schedule.
inline constexpr std::string_view kLearningRate = "lr";

/// Name of the state, i64[], that holds the number of updates. Skipped steps are not counted.
inline constexpr std::string_view kUpdateCounter = "update";

/// Name of the state, f64[], that holds the weight of this micro-batch or shard. The weight is the
/// number of its samples divided by the number of samples of the whole batch. With
/// Options::scale_partial_loss, the executor sets the state before each step.
inline constexpr std::string_view kPartialLossWeight = "part.weight";

/// Name of the state, i64[], that holds the index of the first sample of this micro-batch or shard
/// in the global batch. Only programs with sparse parameters have the state. The executor sets it
/// before each step.
inline constexpr std::string_view kFirstSampleIndex = "part.first";

/// How the directive `train` averages the parameters over training: by an exponential moving
/// average, or with equal weights (SWA).
enum class WeightAveraging { none, ema, swa };
WeightAveraging weight_averaging_of(const ir::Op& train);
inline bool averages_parameters(const ir::Op& train) {
  return weight_averaging_of(train) != WeightAveraging::none;
}
/// Whether a recipe of the program averages parameters.
bool averages_parameters(const ir::Graph& graph);

/// Returns the name of the state that holds the average of a parameter. `train` must be a recipe
/// that averages parameters.
std::string average_name(const ir::Op& train, std::string_view parameter);

/// Whether a step with a non-finite loss is skipped. True with Options::check_finite, but not with
/// loss scaling, which tests the gradients instead.
bool skips_on_nonfinite_loss(const Options& options);

/// View of the `train` directive, an op that represents backward and the update until
/// expand_optimizer replaces it. The passes between append_backward and expand_optimizer
/// communicate through this op. The first operands are the loss and the seed of backward. Then come
/// a gradient for each name in attribute `parameters`, and the row indices for each name in
/// attribute `sparse`. With attribute `predicated`, the last operand is the step predicate.
class Recipe {
 public:
  /// `directive` must have the operands that append_backward adds.
  explicit Recipe(ir::Op& directive) : directive_(directive) {}

  ir::Op& directive() const { return directive_; }
  /// Name of the variable that holds the recipe's state `state`, such as "update"; see
  /// recipe_state().
  std::string state_name(std::string_view state) const;
  const std::vector<std::string>& parameters() const;
  /// The seed of backward: the gradient of the loss with respect to itself (1, or the loss scale).
  Value& backward_seed() const { return directive_.operands.at(1); }
  /// Multiplies the seed of backward by the scalar that `factor` records, cast to the dtype of the
  /// seed.
  void scale_backward_seed(const std::function<Value()>& factor) const;
  /// The gradient of parameter parameters()[i].
  Value& gradient(size_t i) const { return directive_.operands.at(2 + i); }
  /// For a sparse parameter: the row indices, i64 [n], of the rows [n, D] of gradient(i). Each row
  /// index other than -1 occurs once, and the other rows of the gradient are 0. Null for a
  /// parameter with a dense gradient.
  ///
  /// With Options::processes_part_of_batch(), gradients have this form only after
  /// coalesce_gradients. Before that pass, row_indices(i) holds row indices plus 1, f64 [N], and
  /// gradient(i) is [N, D]. N is the number of rows that the global batch reads. Entries of other
  /// micro-batches and shards are 0. The sum over all micro-batches and shards is the gradient of
  /// the global batch.
  Value row_indices(size_t i) const;
  /// Makes the gradients of the parameters `names` sparse. `rows` holds the row indices of each
  /// gradient.
  void set_row_indices(const std::vector<std::string>& names, const Values& rows) const;
  /// Replaces row_indices(i) by replace(i, row_indices(i)), for each sparse parameter from the last
  /// to the first.
  void replace_row_indices(const std::function<Value(size_t i, Value rows)>& replace) const;
  bool has_sparse_gradients() const;
  /// Order number of the last collective on which the gradient of parameter `i` depended after
  /// append_backward; -1 if there was none.
  int64_t last_collective_before_gradient(size_t i) const;
  void set_last_collectives(const std::vector<int64_t>& order_numbers) const;
  /// Replaces each gradient `g` by replace(g), in the order of parameters().
  void replace_gradients(const std::function<Value(Value)>& replace) const;
  /// Shards the optimizer states and the update over the processes (ZeRO-1). This process updates
  /// the elements [bounds[i][rank], bounds[i][rank + 1]) of parameter `i`. On this process, the
  /// gradients of the other elements are 0. Parameters with the same `bucket_of[i]` share a
  /// collective.
  void set_shards(const std::vector<std::vector<int64_t>>& bounds,
                  const std::vector<int64_t>& bucket_of, int64_t rank) const;
  bool is_sharded() const;
  /// Bounds of the shards of parameter `i`: shard r begins at element bounds[r]. The last bound is
  /// the number of elements.
  std::vector<int64_t> shard_bounds(size_t i) const;
  /// This process's shard of parameter `i`.
  BucketShard own_shard(size_t i) const;
  int64_t bucket_index(size_t i) const;
  /// Completes `sums`, which are sums over gradient elements, such as squared norms. If the
  /// optimizer is sharded, each rank has summed only over its shards, and the sums are all-reduced.
  /// Otherwise returns `sums`.
  Values all_reduce_sums(const Values& sums) const;

  /// A bool scalar: false if the step is skipped, that is, does not update the parameters. Null if
  /// the program never skips a step.
  Value step_predicate() const;
  void set_step_predicate(Value step_predicate) const;

  /// Recording state for ops that passes add on behalf of the directive: role `optimize`, the
  /// location and scope of the directive, and `parameter`.
  ir::Graph::Recording recording(const std::string& parameter = "") const {
    return {ir::Role::optimize, directive_.loc, directive_.scope, parameter};
  }

 private:
  /// Index of the operand that holds row_indices(i); nullopt for a parameter with a dense gradient.
  std::optional<size_t> row_indices_operand(size_t i) const;

  ir::Op& directive_;
};

}  // namespace fluid
