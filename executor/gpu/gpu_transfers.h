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

/// A byte range within a feed or output slot.
struct ByteRange {
  int64_t offset = 0, bytes = 0;
};

/// Sorts `ranges` by offset, and merges neighbouring ranges that are separated only by alignment
/// padding.
std::vector<ByteRange> merge_ranges(std::vector<ByteRange> ranges);

/// Copies feeds to the GPU on a dedicated stream, concurrently with the previous step. All steps on
/// a GPU use the same GpuFeeds.
class GpuFeeds {
 public:
  explicit GpuFeeds(std::shared_ptr<const OpenGpu> gpu);

  /// Queues a copy of feed slot `slot` from the host to the GPU. The copy waits for the last step
  /// that reads this slot on the GPU. Steps queued later wait for the copy. Until one of these
  /// steps is complete, the host must not change the slot in host memory.
  void copy(const MemoryAddresses& memory, int slot, std::span<const ByteRange> feeds) const;
  /// Must be called after a step that reads feed slot `slot` is queued. Later copies to this slot
  /// wait for the step.
  void record_slot_read(int slot) const;

 private:
  std::shared_ptr<const OpenGpu> gpu_;
  GpuStream stream_;
  /// Events by feed slot: after the last copy to the slot, and after the last step that reads the
  /// slot.
  std::array<GpuEvent, 2> copied_, read_;
};

/// Maximum size in bytes of an output that every step copies to the host. Larger outputs stay on
/// the GPU until they are fetched.
inline constexpr int64_t kMaxCopiedByStep = int64_t{1} << 20;

/// Size in bytes of the two error words of one checked operand.
inline constexpr int64_t kErrorBytes = 2 * sizeof(int64_t);

/// Copies the outputs, StepReport and error words of each step to the host. Two steps can be in
/// flight, one per output slot.
class GpuResults {
 public:
  /// `operands[i]`: the op and the operand index to which error words 2i and 2i + 1 belong.
  /// `has_error_sync`: whether steps all-reduce the rejection flag.
  GpuResults(std::shared_ptr<const OpenGpu> gpu, const MemoryPlan& plan, std::string recipe,
             std::vector<std::pair<const ir::Op*, int>> operands, bool has_error_sync);
  void bind(const MemoryAddresses& memory, const Variables& variables);

  bool has_error_words() const { return !checked_operands_.empty(); }
  int64_t operand_count() const { return static_cast<int64_t>(checked_operands_.size()); }
  /// Device address of the error words, two per checked operand: {1, the out-of-range index} if the
  /// operand was rejected, else {0, 0}.
  std::byte* error_words() const { return error_words_.data(); }

  /// Queues a fill of the error words with zeros. Must be called before the calls of a step are
  /// queued.
  void clear_error_words() const;
  /// Queues the copies to the host, for output slot `output_slot`. Must be called after the calls
  /// of a step are queued.
  void copy_to_host(int output_slot) const;
  /// Records the end event of output slot `output_slot` after the last queued step.
  void record_end(int output_slot) const;
  /// The event that record_end() recorded for output slot `output_slot`.
  const GpuEvent& end_event(int output_slot) const {
    return ends_[static_cast<size_t>(output_slot)];
  }
  /// Status of the completed step with output slot `output_slot`, from this rank's error words.
  StepStatus status(int output_slot) const;
  /// Whether another rank has rejected the completed step with output slot `output_slot`. Requires
  /// status(output_slot).good().
  bool rejected_by_other_rank(int output_slot) const;

 private:
  std::byte* host_error_words(int output_slot) const {
    return host_error_words_.data() + output_slot * (error_words_.bytes() + kRejectionFlagBytes);
  }
  std::byte* host_rejection_flag(int output_slot) const {
    return host_error_words(output_slot) + error_words_.bytes();
  }
  /// Size in bytes of the flag at MemoryAddresses::rejection_flag.
  static constexpr int64_t kRejectionFlagBytes = sizeof(int64_t);

  std::shared_ptr<const OpenGpu> gpu_;
  std::string recipe_;
  std::vector<std::pair<const ir::Op*, int>> checked_operands_;
  std::vector<ByteRange> outputs_;
  bool has_error_sync_;
  GpuMemory error_words_,
      host_error_words_;  ///< host copies per output slot: the error words, then the rejection flag
  std::array<GpuEvent, 2> ends_;
  MemoryAddresses memory_;
  std::vector<ReportedVariable> reported_;
};

}  // namespace fluid
