#pragma once

#include <array>
#include <memory>

#include "executor/device/place_memory.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// A session's memory on a GPU: one stretch of its memory, and the slots once more on the host.
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
  /// Where the host's bytes lie while they are copied to or from the GPU.
  std::byte* next_cell();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuMemory arena_, refused_, host_slots_, reports_, staging_;
  std::array<GpuEvent, 2> copied_;  ///< from a half of the cells
  int64_t cell_ = 0;                ///< the next for a write that nobody waits for
};

}  // namespace fluid
