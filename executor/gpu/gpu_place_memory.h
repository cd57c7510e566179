#pragma once

#include <array>
#include <memory>

#include "executor/device/place_memory.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// A session's memory on a GPU: one arena, and pinned host copies of the slots.
class GpuPlaceMemory : public PlaceMemory {
 public:
  GpuPlaceMemory(std::shared_ptr<const OpenGpu> gpu, const Regions& regions);
  int64_t touched() const override { return regions().total(); }
  bool is_host() const override { return false; }
  void read(void* to, const std::byte* from, int64_t bytes) const override;
  void write(std::byte* to, const void* from, int64_t bytes) override;
  void fetch(int slot, int64_t offset, int64_t bytes) const override;
  void allow_updates() override;
  std::shared_ptr<PlaceMemory> grown(const Regions& regions) override;

 private:
  void allocate_arena();
  /// A pinned staging cell for a small asynchronous write.
  std::byte* next_cell();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuMemory arena_, rejected_, host_slots_, reports_, staging_;
  std::array<GpuEvent, 2> copied_;  ///< the copies from each half of the cells are done
  int64_t cell_ = 0;                ///< offset of the next cell
};

}  // namespace fluid
