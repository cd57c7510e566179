#pragma once

#include <map>
#include <memory>

#include "executor/device/place_memory.h"
#include "executor/device/step_report.h"
#include "executor/host/arena.h"

namespace fluid {

/// A session's memory on the CPU: one arena that the host addresses directly.
class HostMemory : public PlaceMemory {
 public:
  explicit HostMemory(const RegionSizes& regions);
  int64_t resident_bytes() const override { return arena_.resident_bytes(); }
  /// Bytes of the memory from prepare_for() that are backed by physical memory.
  int64_t prepared_bytes() const { return prepared_.resident_bytes(); }
  bool is_host_accessible() const override { return true; }
  void read(void* to, const std::byte* from, int64_t bytes) const override;
  void write(std::byte* to, const void* from, int64_t bytes) override;
  void fetch(int, int64_t, int64_t) const override {}
  void clear_rejection_flag() override {}
  std::shared_ptr<PlaceMemory> reallocate(const RegionSizes& regions) override;
  void prepare_for(const RegionSizes& regions, bool maps_state) override;
  bool map_state(const StateRange& range, std::shared_ptr<const StateFile> file) override;
  void detach_state_file(int64_t offset) override { files_.erase(offset); }

 private:
  struct MappedFile {
    StateRange range;
    std::shared_ptr<const StateFile> file;
  };
  HostMemory(const RegionSizes& regions, Arena arena);
  void copy_state_to(HostMemory& memory) const;

  Arena arena_;
  Arena prepared_;  ///< memory for reallocate(), from prepare_for(); empty: none
  std::array<StepReport, 2> reports_ = {};
  std::map<int64_t, MappedFile> files_;  ///< offset in the state region -> file with its values
};

}  // namespace fluid
