#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"

namespace fluid {

/// A library kernel that can run an op, and its predicted cost.
struct Claim {
  std::string kernel;     ///< "onednn.conv"
  double seconds = 0;     ///< predicted time
  int64_t workspace = 0;  ///< bytes of scratch while it runs
  bool keeps_nan = true;  ///< propagates NaN to the result
  /// Values of one sample may change the results of other samples: the last bits, or all bits if a
  /// value is not finite.
  bool mixes_samples = false;
  bool adds_in_place = false;  ///< the result may overwrite the addend of the epilogue
  /// Required layouts of the operands and results; nullopt is the plain layout.
  std::vector<std::optional<Layout>> operands;
  std::vector<std::optional<Layout>> results;

  /// Whether the operands of `head`, and the result of `last`, the last op of the epilogue, have
  /// the required layouts.
  bool fits(const ir::Op& head, const ir::Op& last) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != head.operands.at(i).type().layout) return false;
    }
    return results.at(0) == last.results.at(0).type.layout;
  }
};

/// Epilogue ops (bias, relu) that a kernel may fuse. Each op reads the previous op.
using Chain = std::vector<const ir::Op*>;

/// The batch exceeds the limits of the target's kernels, regardless of memory.
class BatchTooLarge : public UserError {
 public:
  using UserError::UserError;
};

/// The hardware as passes see it. Ops have concrete types. The interface is implemented for devices
/// and for descriptions of machines.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< "cpu"
  virtual int threads() const = 0;
  /// Library kernels that can run `op` followed by `epilogue`, best first. Empty if there are none.
  virtual std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const = 0;
  /// Predicted seconds of generated code for `op`.
  virtual double generated_seconds(const ir::Op& op) const = 0;
  /// Messages about ops passed to claims() that a library could not compute.
  virtual std::vector<std::string> refused() const { return {}; }
  /// Whether the executor can prevent library kernels from running in a rejected step. Only then
  /// may library kernels write to variables.
  virtual bool libraries_may_update() const { return true; }
  /// Whether memory is so fast and scarce that running a kernel twice is better than keeping its
  /// result from forward to backward.
  virtual bool repeats_kernels() const { return false; }
  /// Number of feed slots. Two if the device copies the feeds of the next step while a step runs.
  virtual int feed_slots() const { return 1; }
  /// Scratch bytes of the generated kernel of a `fused` op. Throws BatchTooLarge.
  virtual int64_t scratch(const ir::Op& fused, int64_t batch) const = 0;
};

}  // namespace fluid
