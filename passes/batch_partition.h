#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Relation between a value computed on the whole batch and the values that the same program
/// computes on parts of the batch (micro-batches or shards). A value is n^power times a value of
/// kind `kind`, where n is the number of samples in the batch or part. The kinds `same`,
/// `per_sample` and `total` correspond to Replicate, Shard and Partial of PyTorch's DTensor.
struct BatchPartition {
  enum Kind {
    /// Equal in all parts after division by n^power. Examples are a parameter (power 0) and the
    /// number of samples n (power 1).
    same,
    per_sample,  ///< has a batch dimension: each element belongs to one sample
    total,       ///< a sum over samples
    terms,       ///< a sum whose terms differ in kind or in scale_power()
    other,       ///< any other relation, such as the square root of a total
  };
  Kind kind = same;
  int power = 0;
  bool operator==(const BatchPartition&) const = default;

  /// The value of the whole batch is the sum of the values of the parts, each multiplied by (n_part
  /// / n_batch)^scale_power(). The power is 0 for a sum over samples, and 1 for a mean or for a
  /// value that is equal in all parts. Valid only for the kinds `same` and `total`.
  int scale_power() const { return kind == same ? 1 - power : -power; }
};

/// Computes the BatchPartition of each value of a graph from the lowered scalar expressions of the
/// ops. For an op with an inference form (batch_norm, dropout), results with a batch dimension
/// count as `per_sample` even if they depend on batch statistics.
class BatchPartitionAnalysis {
 public:
  BatchPartition partition_of(Value v);
  /// For a value `v` of kind `other`: the first op on the path to `v` whose result has this kind.
  const ir::Op& first_unsupported_op(Value v) const { return *unsupported_ops_.at(v); }
  /// Whether the result of `op` for one sample depends on other samples, as in batch_norm.
  bool computes_batch_statistics(const ir::Op& op);
  /// For an op whose result is of kind `terms`: whether each operand is a term of the sum (true) or
  /// a factor (false). Empty if the op is not such a sum.
  std::vector<bool> terms_of(const ir::Op& op);

 private:
  void analyse(const ir::Op& op);
  std::vector<BatchPartition> result_partitions(const ir::Op& op);
  std::vector<BatchPartition> partitions_by_lowering(const ir::Op& op);
  std::vector<BatchPartition> partitions_by_expansion(const ir::Op& op);
  std::vector<BatchPartition> partitions_of_scan(const ir::Op& op,
                                                 std::vector<BatchPartition> arguments);

  std::map<Value, BatchPartition> known_;
  std::map<Value, const ir::Op*> unsupported_ops_;
};

}  // namespace fluid
