#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"

namespace fluid {

/// A library kernel (of oneDNN, cuDNN, ...) that can run an op and its epilogue, and its run time.
struct KernelCandidate {
  std::string kernel;          ///< name of the library kernel, such as "onednn.conv"
  double seconds = 0;          ///< predicted or measured run time
  bool measured = false;       ///< whether `seconds` was measured
  int64_t workspace = 0;       ///< bytes of scratch memory
  bool propagates_nan = true;  ///< whether a NaN in an operand gives a NaN in the result
  /// Whether the values of one sample can affect the results of other samples. Finite values then
  /// change only the rounding of other results; an inf or NaN can change other results entirely.
  bool mixes_samples = false;
  /// Whether the result may overwrite the addend of the last epilogue op.
  bool overwrites_addend = false;
  /// Layouts that the kernel requires for its operands and results; nullopt: the plain (row-major)
  /// layout.
  std::vector<std::optional<Layout>> operands;
  std::vector<std::optional<Layout>> results;

  /// Whether the operands of `head` and the result of `last` have the required layouts. `last` is
  /// the last epilogue op, or `head` if there is no epilogue.
  bool accepts_layouts(const ir::Op& head, const ir::Op& last) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] != head.operands.at(i).type().layout) return false;
    }
    return results.at(0) == last.results.at(0).type.layout;
  }
};

/// Epilogue of an op: elementwise ops such as bias and relu, in order. Each epilogue op reads the
/// result of the previous op.
using EpilogueOps = std::vector<const ir::Op*>;

/// Thrown if the batch size exceeds a limit of the target's kernels. Not thrown for lack of memory.
class BatchTooLarge : public UserError {
 public:
  using UserError::UserError;
};

/// Interface through which passes query the hardware that they compile for. Ops passed to the
/// functions must have concrete shapes.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< name of the target, such as "cpu"
  virtual int threads() const = 0;
  /// Library kernels that can run `op` followed by `epilogue`, fastest first.
  virtual std::vector<KernelCandidate> candidates(const ir::Op& op,
                                                  const EpilogueOps& epilogue) const = 0;
  /// Predicted run time, in seconds, of a generated kernel that computes `op`.
  virtual double generated_seconds(const ir::Op& op) const = 0;
  /// One message per op that a library rejected in a call of candidates().
  virtual std::vector<std::string> rejection_messages() const { return {}; }
  /// Whether library kernels may write directly to variables. True if the executor can prevent
  /// library kernels from running in a rejected step.
  virtual bool libraries_may_write_variables() const { return true; }
  /// Whether to run the repeat_kernels pass. The pass pays off on a device with fast but scarce
  /// memory: recomputing a forward result in backward then takes little time and saves memory.
  virtual bool runs_repeat_kernels() const { return false; }
  /// Whether to run the combine_ops pass. Combined ops have few blocks, too few for a GPU.
  virtual bool runs_combine_ops() const { return false; }
  /// Number of slots in Region::feeds: 2 if the device copies the feeds of the next step while a
  /// step runs, else 1.
  virtual int feed_slots() const { return 1; }
  /// Bytes of scratch memory that the generated kernel of `fused` needs. Throws BatchTooLarge.
  virtual int64_t scratch_bytes(const ir::Op& fused, int64_t batch) const = 0;
};

}  // namespace fluid
