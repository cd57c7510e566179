#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/place_memory.h"
#include "executor/device/step_report.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// A byte range of a slot.
struct ByteRange {
  int64_t offset = 0, bytes = 0;
};

/// Sorts `stretches` and merges neighbours that are separated only by padding.
std::vector<ByteRange> joined(std::vector<ByteRange> stretches);

/// Copies feeds to the GPU on a stream of its own, concurrently with the previous step. One per
/// GPU.
class GpuFeeds {
 public:
  explicit GpuFeeds(std::shared_ptr<const OpenGpu> gpu);

  /// Queues the copy of the host's feed slot, after the last step that reads the GPU's slot. Later
  /// steps wait for the copy. The host must not change its slot before one of these steps is done.
  void copy(const Memory& memory, int slot, std::span<const ByteRange> feeds) const;
  /// Records that the step queued last reads `slot`.
  void note_reader(int slot) const;

 private:
  std::shared_ptr<const OpenGpu> gpu_;
  GpuStream stream_;
  std::array<GpuEvent, 2> copied_, read_;  ///< by feed slot
};

/// Bytes. A step copies outputs up to this size to the host; larger ones stay in their slot on the
/// GPU until they are fetched.
inline constexpr int64_t kMaxCopiedByStep = int64_t{1} << 20;

/// Bytes of the two error words of one operand.
inline constexpr int64_t kErrorBytes = 2 * sizeof(int64_t);

/// Copies a step's outputs, report and error words to the host. Two steps can be in flight, one per
/// output slot.
class GpuResults {
 public:
  /// `operands`: the operands with error words. `shares`: ranks exchange the rejection flag.
  GpuResults(std::shared_ptr<const OpenGpu> gpu, const MemoryPlan& plan,
             std::vector<std::pair<const ir::Op*, int>> operands, bool shares);
  void bind(const Memory& memory, const Variables& variables);

  bool checks_data() const { return !operands_.empty(); }
  int64_t operands() const { return static_cast<int64_t>(operands_.size()); }
  /// {1, index} for a rejected operand, else zeros.
  std::byte* errors() const { return errors_.data(); }

  /// Queues clearing the error words, before a step's calls.
  void clear_errors() const;
  /// Queues the copies to the host, after a step's calls.
  void send(int outputs) const;
  /// Records the end of the step queued last.
  void note_end(int outputs) const;
  /// The event recorded by note_end().
  const GpuEvent& end(int outputs) const { return ends_[static_cast<size_t>(outputs)]; }
  /// Status of a completed step, from its error words.
  Status status(int outputs) const;
  /// Whether another rank rejected a completed step whose status() is good.
  bool rejected_by_other_rank(int outputs) const;

 private:
  std::byte* host_errors(int outputs) const {
    return host_errors_.data() + outputs * (errors_.bytes() + kRejectionFlagBytes);
  }
  std::byte* host_rejection_flag(int outputs) const {
    return host_errors(outputs) + errors_.bytes();
  }
  static constexpr int64_t kRejectionFlagBytes = sizeof(int64_t);  ///< size of Memory::refused

  std::shared_ptr<const OpenGpu> gpu_;
  std::vector<std::pair<const ir::Op*, int>> operands_;
  std::vector<ByteRange> outputs_;
  bool has_error_sync_;
  GpuMemory errors_, host_errors_;  ///< the host's copy has two slots, each with the rejection flag
  std::array<GpuEvent, 2> ends_;
  Memory memory_;
  std::vector<Reported> reported_;
};

}  // namespace fluid
