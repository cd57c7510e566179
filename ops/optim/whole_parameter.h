#pragma once

// Interface through which an optimizer computes tensors (OptimizerTensor) from whole parameters.

#include "ir/graph.h"

namespace fluid {

/// A parameter that is being updated. With sharded optimizer states (ZeRO-1), each rank holds a
/// shard: a 1-d tensor of consecutive elements. Otherwise, the shard is the whole parameter.
class WholeParameter {
 public:
  virtual ~WholeParameter() = default;
  /// The operands param, grad, lr and update of the optimizer's op. `param` and `grad` are shards.
  virtual const Values& operands() const = 0;
  /// Complete attributes of the optimizer's op.
  virtual const Attrs& settings() const = 0;
  virtual const Shape& shape() const = 0;  ///< shape of the whole parameter
  /// Pads `shard` with zeros to the shape of the whole parameter.
  virtual Value padded(Value shard) = 0;
  /// This rank's shard of `whole`.
  virtual Value shard_of(Value whole) = 0;
  /// Collective if the states are sharded: sums `terms` over the ranks. All `terms` have one dtype.
  virtual Values sum_over_shards(const Values& terms) = 0;
  /// The state `name` of the parameter's shard, before the update; initially 0.
  virtual Value sharded_state(const std::string& name) = 0;
  /// The state `name` of type `type`, the same on all ranks, before the update; initially 0.
  virtual Value state(const std::string& name, const Type& type) = 0;
  /// Sets the value of `state` after the update.
  virtual void set_state(Value state, Value updated) = 0;

  Value param() const { return operands().at(0); }
  Value grad() const { return operands().at(1); }
  Value lr() const { return operands().at(2); }      ///< in the compute dtype of the parameter
  Value update() const { return operands().at(3); }  ///< number of completed updates, i64
};

}  // namespace fluid
