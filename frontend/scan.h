#pragma once

#include <functional>

#include "ir/graph.h"

namespace fluid {

/// Results of one step of a scan.
struct ScanStep {
  Values carries;         ///< carries for the next step
  Values collected = {};  ///< values that the scan stacks over all steps
};

struct ScanResult {
  Values carries;    ///< the carries after the last step
  Values collected;  ///< one stacked tensor [T, ...] per value in ScanStep::collected
};

struct ScanOptions {
  /// Number of steps T; 0: the length of the sequences.
  int64_t steps = 0;
  bool reverse = false;  ///< step from the last element of the sequences to the first
};

/// Records one step of a scan. The arguments are the carries and the current element of each
/// sequence. The body may read values recorded outside, which are the same in each step. It may
/// create parameters, which all steps share.
using ScanBody = std::function<ScanStep(const Values& carries, const Values& elements)>;

/// A recurrence, like jax.lax.scan: runs `body` T times. `carries` are the initial carries; a step
/// must return carries of the same types. `sequences` are [T, ...]; step t reads element t. In a
/// reverse scan, step t still writes element t of the stacked results. The backward pass runs the
/// steps in the opposite order. For each step, the forward pass stores the carries and the results
/// of matmuls and reductions. The backward pass recomputes elementwise values.
///
/// The body must not have side effects, take gradients() or draw random numbers (dropout): draw a
/// sequence of them outside. Throws UserError for such ops, and if types or lengths differ.
ScanResult scan(const Values& carries, const Values& sequences, const ScanBody& body,
                const ScanOptions& options = {}, const Loc& loc = Loc::here());

}  // namespace fluid
