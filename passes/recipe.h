#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/bucket.h"
#include "passes/options.h"

namespace fluid {

/// A state, f64[]: the learning rate of the last update, when it follows a schedule.
inline constexpr std::string_view kLearningRate = "lr";

/// A state, f64[], set before a step with Options::weighted: the samples of this part over those of
/// the whole batch.
inline constexpr std::string_view kPartWeight = "part.weight";

/// Whether skip_nonfinite decides over a step by its loss: where the loss is scaled, the gradients
/// do.
bool decides_by_loss(const Options& options);

/// What the passes between the backward graph and the optimizer hand on in the operands of the
/// `train` directive: train(loss, seed, gradient of each of `parameters`..., applies if
/// `predicated`).
class Recipe {
 public:
  /// Of the graph's directive, which append_backward has been at.
  explicit Recipe(ir::Op& directive) : directive_(directive) {}

  ir::Op& directive() const { return directive_; }
  const std::vector<std::string>& parameters() const;
  /// The gradient of the loss for itself.
  Value& seed() const { return directive_.operands.at(1); }
  /// Multiplies it by the scalar that `factor` records, in whatever dtype.
  void scale_seed(const std::function<Value()>& factor) const;
  /// Of parameter `i`.
  Value& gradient(size_t i) const { return directive_.operands.at(2 + i); }
  /// The number of the last exchange of backward that the gradient of parameter `i` waits for; -1
  /// for none. They count as append_backward left them.
  int64_t waits_for(size_t i) const;
  void set_waits(const std::vector<int64_t>& numbers) const;
  /// Puts what `replace` records in the place of each gradient.
  void replace_gradients(const std::function<Value(Value)>& replace) const;
  /// Splits the update among the processes (ZeRO-1): of parameter `i` this one keeps the elements
  /// [cuts[i][rank], cuts[i][rank + 1]). Gradients are 0 elsewhere then, and `bucket[i]` says which
  /// parameters travel together.
  void shard(const std::vector<std::vector<int64_t>>& cuts, const std::vector<int64_t>& bucket,
             int64_t rank) const;
  bool is_sharded() const;
  /// Where each process's part of parameter `i` begins, and the number of its elements.
  std::vector<int64_t> cuts(size_t i) const;
  /// This process's part.
  BucketShare part(size_t i) const;
  int64_t bucket(size_t i) const;
  /// What is added up over this process's parts of the gradients, added up over all processes.
  Values over_processes(const Values& sums) const;

  /// A bool scalar: whether the step is applied. Null: always.
  Value applies() const;
  void set_applies(Value applies) const;

  /// The place of what is recorded for the directive: role optimize, and a parameter's.
  ir::Graph::Recording recording(const std::string& parameter = "") const {
    return {ir::Role::optimize, directive_.loc, directive_.scope, parameter};
  }

 private:
  ir::Op& directive_;
};

}  // namespace fluid
