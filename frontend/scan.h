#pragma once

#include <functional>

#include "ir/graph.h"

namespace fluid {

/// Results of one step.
struct ScanStep {
  Values carries;         ///< the next carries
  Values collected = {};  ///< values of the step that the scan collects
};

struct ScanResult {
  Values carries;    ///< the carries after the last step
  Values collected;  ///< each collected value of all steps, [T, ...]
};

struct ScanOptions {
  /// Number of steps T; 0: the length of the sequences.
  int64_t steps = 0;
  bool reverse = false;  ///< step from the last element of the sequences to the first
};

/// Records one step of a scan: the carries and the current element of each sequence -> ScanStep.
/// May read values recorded outside, which are the same in each step, and create parameters, which
/// the steps share.
using ScanBody = std::function<ScanStep(const Values& carries, const Values& elements)>;

/// A recurrence, as jax.lax.scan: runs `body` T times. `carries` are the initial carries; a step
/// must keep their types. `sequences` are [T, ...]; step t reads element t. In a reverse scan, the
/// collected values of step t are still element t. The gradient runs the steps in the opposite
/// order. It keeps the carries and the results of matmuls and reductions of each step, and computes
/// the elementwise values of the step again.
///
/// The body must not have side effects or draw random numbers (dropout): draw a sequence outside.
/// Throws UserError for such ops, and if types or lengths differ.
ScanResult scan(const Values& carries, const Values& sequences, const ScanBody& body,
                const ScanOptions& options = {}, const Loc& loc = Loc::here());

}  // namespace fluid
