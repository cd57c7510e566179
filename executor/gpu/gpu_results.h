#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/step_report.h"
#include "executor/gpu/gpu_feeds.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// Outputs of up to so many bytes are sent to the host by the step itself; larger ones stay on the
/// GPU, in their slot, until they are fetched.
inline constexpr int64_t kSentByStep = int64_t{1} << 20;

/// Of an operand whose data may be refused: two error words.
inline constexpr int64_t kErrorBytes = 2 * sizeof(int64_t);

/// What the host gets of a program's steps: their outputs, their report, and which data kernels
/// refused. Those of two steps are under way at once, one for each slot for outputs.
class GpuResults {
 public:
  /// `operands`: those whose data may be refused, each with two error words. `shares`: other
  /// processes tell of data that they refused.
  GpuResults(std::shared_ptr<const OpenGpu> gpu, const MemoryPlan& plan,
             std::vector<std::pair<const ir::Op*, int>> operands, bool shares);
  void bind(const Memory& memory, const Variables& variables);

  bool may_refuse() const { return !operands_.empty(); }
  int64_t operands() const { return static_cast<int64_t>(operands_.size()); }
  std::byte* errors() const { return errors_.data(); }  ///< {1, index} or zeros, of each operand

  /// Queues what comes before a step's calls.
  void clear_errors() const;
  /// Queues what comes after them.
  void send(int outputs) const;
  /// The step queued last ends with all that is queued by now.
  void note_end(int outputs) const;
  /// The end noted last.
  const GpuEvent& end(int outputs) const { return ends_[static_cast<size_t>(outputs)]; }
  /// What kernels refused, of a step that is done.
  Status status(int outputs) const;
  /// Of a step whose status() is good: whether another process refused it.
  bool was_refused_elsewhere(int outputs) const;

 private:
  std::byte* host_errors(int outputs) const {
    return host_errors_.data() + outputs * (errors_.bytes() + kRefusedBytes);
  }
  std::byte* host_refused(int outputs) const { return host_errors(outputs) + errors_.bytes(); }
  static constexpr int64_t kRefusedBytes = sizeof(int64_t);  ///< of Memory::refused

  std::shared_ptr<const OpenGpu> gpu_;
  std::vector<std::pair<const ir::Op*, int>> operands_;
  std::vector<Stretch> outputs_;
  bool shares_;
  GpuMemory errors_, host_errors_;  ///< the host's twice, each with the word of refused data
  std::array<GpuEvent, 2> ends_;
  Memory memory_;
  std::vector<Reported> reported_;
};

}  // namespace fluid
