#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Relation between a value computed on the whole batch and the values that the same program
/// computes on parts of the batch (micro-batches or shards). The value scales with n^power, where n
/// is the number of samples of its part.
struct BatchPartition {
  enum Kind {
    same,   ///< equal in every part: a parameter, a constant, the number of samples
    rows,   ///< each element belongs to one sample
    total,  ///< a sum over samples
    terms,  ///< a sum of values of different kinds
    other,  ///< any other relation, such as the square root of a total
  };
  Kind kind = same;
  int power = 0;
  bool operator==(const BatchPartition&) const = default;

  /// Number of factors n_part / n_batch by which to scale the values so that they add up over the
  /// parts. 0 for a sum over samples; 1 for a mean, or for a value that is equal in every part.
  /// Only for `same` and `total`.
  int shares() const { return kind == same ? 1 - power : -power; }
};

/// Computes the BatchPartition of each value of a graph from the lowered form of the ops. For an op
/// with an inference form (batch_norm, dropout), per-sample results count as rows even if they
/// depend on batch statistics.
class BatchPartitionAnalysis {
 public:
  BatchPartition of(Value v);
  /// For a `v` of kind `other`: the op that introduced this kind.
  const ir::Op& culprit(Value v) const { return *culprits_.at(v); }
  /// Whether the result of a sample depends on other samples, as in batch_norm.
  bool computes_batch_statistics(const ir::Op& op);
  /// For an op whose result is of kind `terms`: marks the operands that are terms. Other operands
  /// are factors.
  std::vector<bool> terms_of(const ir::Op& op);

 private:
  void analyse(const ir::Op& op);
  std::vector<BatchPartition> results_of(const ir::Op& op);
  std::vector<BatchPartition> lowered(const ir::Op& op);
  std::vector<BatchPartition> of_expansion(const ir::Op& op);

  std::map<Value, BatchPartition> known_;
  std::map<Value, const ir::Op*> culprits_;
};

}  // namespace fluid
