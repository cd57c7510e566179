#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"

namespace fluid {

/// How a library kernel would run an op on a target.
struct Claim {
  std::string kernel;     ///< "onednn.conv"
  double seconds = 0;     ///< predicted
  int64_t workspace = 0;  ///< bytes it needs while it runs
  bool keeps_nan = true;  ///< a NaN that reaches the result shows there
  /// What one sample of the batch holds may change the others' results: in their last bits, and
  /// wholly where it is not finite.
  bool mixes_samples = false;
  bool adds_in_place = false;  ///< the result may lie over the matrix that the epilogue adds
  /// Wanted layouts, one an operand and one a result; an empty optional is plain.
  std::vector<std::optional<Layout>> operands;
  std::vector<std::optional<Layout>> results;

  /// Whether these are the layouts that the operands of `head` and the result of `last`, the last
  /// op of its epilogue, have.
  bool fits(const ir::Op& head, const ir::Op& last) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != head.operands.at(i).type().layout) return false;
    }
    return results.at(0) == last.results.at(0).type.layout;
  }
};

/// A stretch of epilogue ops (bias, relu) that a kernel may take along: each reads the one before.
using Chain = std::vector<const ir::Op*>;

/// A step that no memory is too small for, but the target's kernels.
class BatchTooLarge : public UserError {
 public:
  using UserError::UserError;
};

/// The hardware as the passes see it. Ops come with concrete types. A description of a machine
/// implements it as well as the machine itself does.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< "cpu"
  virtual int threads() const = 0;
  /// Library kernels that may run `op` followed by `epilogue`, best first; empty when none can.
  virtual std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const = 0;
  /// Predicted seconds of generated code for `op`.
  virtual double generated_seconds(const ir::Op& op) const = 0;
  /// Lines that say what libraries could not compute, of what claims() was asked for.
  virtual std::vector<std::string> refused() const { return {}; }
  /// Whether the executor can keep library kernels from running in a step that was refused: only
  /// then may they write to variables.
  virtual bool libraries_may_update() const { return true; }
  /// Whether memory is so fast, and so scarce, that a kernel had better run a second time than have
  /// its result wait from forward for backward.
  virtual bool repeats_kernels() const { return false; }
  /// Slots for feeds that steps take in turn: two where the feeds of a step are copied to the place
  /// while the step before runs.
  virtual int feed_slots() const { return 1; }
  /// Bytes of scratch that the generated kernel of a `fused` op needs while it runs. Throws
  /// BatchTooLarge.
  virtual int64_t scratch(const ir::Op& fused, int64_t batch) const = 0;
};

}  // namespace fluid
