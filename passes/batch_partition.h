#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// How a value of a whole batch follows from those that the same program gives for parts of it. By
/// `power`, it was multiplied by the number of samples of its part (of the whole: of all).
struct BatchPartition {
  enum Kind {
    same,   ///< the value is the same in every part: a parameter, a constant, the count of samples
    rows,   ///< each element is that of one sample
    total,  ///< the sum over the samples
    terms,  ///< a sum of values that are of different kinds
    other,  ///< none of these: a root of a total
  };
  Kind kind = same;
  int power = 0;
  bool operator==(const BatchPartition&) const = default;

  /// By how many factors of the part's share of the samples the values add up over the parts: 0 of
  /// a sum over samples, 1 of a mean or of what is the same in every part. Of `same` and `total`.
  int shares() const { return kind == same ? 1 - power : -power; }
};

/// Finds out how the values of a graph follow from parts of a batch, from how its ops are lowered.
/// An op that is another one in inference (batch_norm, dropout) decides itself what it takes from
/// the batch: what it gives a sample counts as that sample's.
class BatchPartitionAnalysis {
 public:
  BatchPartition of(Value v);
  /// Where `v`'s kind is `other`: the op that made it so.
  const ir::Op& culprit(Value v) const { return *culprits_.at(v); }
  /// Whether what `op` gives a sample depends on the others: batch_norm's statistics.
  bool takes_statistics(const ir::Op& op);
  /// The operands of `op`, whose result is `terms`, that are terms; the others are factors.
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
