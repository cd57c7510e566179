#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/bucket.h"
#include "passes/options.h"

namespace fluid {

/// Name of a state, f64[]: the learning rate of the last update. Exists only with a schedule.
inline constexpr std::string_view kLearningRate = "lr";

/// Name of a state, f64[], that is set before a step with Options::weighted: samples of this part
/// divided by samples of the whole batch.
inline constexpr std::string_view kPartialLossWeight = "part.weight";

/// Whether skip_nonfinite tests the loss. With loss scaling the gradients are tested instead.
bool decides_by_loss(const Options& options);

/// View of the `train` directive, through which the passes from append_backward to expand_optimizer
/// communicate. Its operands are train(loss, seed, gradient of each of `parameters`..., applies if
/// `predicated`).
class Recipe {
 public:
  /// `directive` must have its operands from append_backward.
  explicit Recipe(ir::Op& directive) : directive_(directive) {}

  ir::Op& directive() const { return directive_; }
  const std::vector<std::string>& parameters() const;
  /// The seed of backward: the gradient of the loss with respect to itself.
  Value& seed() const { return directive_.operands.at(1); }
  /// Multiplies the seed by the scalar that `factor` records, cast to the seed's dtype.
  void scale_seed(const std::function<Value()>& factor) const;
  /// The gradient of parameter `i`.
  Value& gradient(size_t i) const { return directive_.operands.at(2 + i); }
  /// Number of the last collective of backward on which the gradient of parameter `i` depends; -1
  /// if none. Uses the numbers that collectives have at the end of append_backward.
  int64_t waits_for(size_t i) const;
  void set_waits(const std::vector<int64_t>& numbers) const;
  /// Replaces each gradient by the value that `replace` records.
  void replace_gradients(const std::function<Value(Value)>& replace) const;
  /// Shards the optimizer (ZeRO-1). This process keeps the elements [cuts[i][rank], cuts[i][rank +
  /// 1]) of parameter `i`. Gradients are 0 elsewhere. Parameters of equal `bucket[i]` share a
  /// collective.
  void shard(const std::vector<std::vector<int64_t>>& cuts, const std::vector<int64_t>& bucket,
             int64_t rank) const;
  bool is_sharded() const;
  /// First element of each process's shard of parameter `i`, then the number of elements.
  std::vector<int64_t> cuts(size_t i) const;
  /// This process's shard of parameter `i`.
  BucketShard part(size_t i) const;
  int64_t bucket(size_t i) const;
  /// All-reduces `sums`, which are computed from this process's shards of the gradients. Without
  /// shards, returns `sums`.
  Values all_reduced(const Values& sums) const;

  /// A bool scalar: whether the step is applied. Null: always.
  Value applies() const;
  void set_applies(Value applies) const;

  /// How ops for the directive are recorded: role optimize, the directive's location, `parameter`.
  ir::Graph::Recording recording(const std::string& parameter = "") const {
    return {ir::Role::optimize, directive_.loc, directive_.scope, parameter};
  }

 private:
  ir::Op& directive_;
};

}  // namespace fluid
