#pragma once

#include <array>
#include <memory>

#include "executor/device/place_memory.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// A session's memory on a GPU: an arena in GPU memory, and host copies of the feed and output
/// slots in pinned memory.
class GpuPlaceMemory : public PlaceMemory {
 public:
  GpuPlaceMemory(std::shared_ptr<const OpenGpu> gpu, const RegionSizes& regions);
  int64_t resident_bytes() const override { return regions().total_bytes(); }
  bool is_host_accessible() const override { return false; }
  void read(void* to, const std::byte* from, int64_t bytes) const override;
  void write(std::byte* to, const void* from, int64_t bytes) override;
  void fetch(int slot, int64_t offset, int64_t bytes) const override;
  void clear_rejection_flag() override;
  std::shared_ptr<PlaceMemory> reallocate(const RegionSizes& regions) override;

 private:
  void allocate_arena();
  /// Returns the next cell of the staging buffer, for a small asynchronous write.
  std::byte* next_cell();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuMemory arena_, rejection_flag_, host_slots_, reports_, staging_;
  /// copied_[i]: event recorded after the copies from half i of staging_.
  std::array<GpuEvent, 2> copied_;
  int64_t next_cell_offset_ = 0;  ///< offset of the next cell in staging_, in bytes
};

}  // namespace fluid
