#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "codegen/object_cache.h"
#include "executor/gpu_driver/gpu_task.h"
#include "executor/options/place.h"
#include "ir/graph.h"

namespace fluid {

struct ExecutorOptions;

/// The library algorithm recorded for a task.
struct RecordedAlgorithm {
  FluidGpuAlgorithm algorithm = {};
  float ms = 0;  ///< measured time of the task in milliseconds; 0 if not timed
};

/// Lifetime of an entry of AlgorithmRecord:
/// - process: used by this process, and by runs resumed from its checkpoints.
/// - persistent: also written to disk, and used by later runs.
enum class EntryLifetime : uint8_t { process, persistent };

/// Records the library algorithm chosen for each task, in this process and on disk.
class AlgorithmRecord {
 public:
  /// The settings that affect the choice of an algorithm, besides the task.
  struct Settings {
    std::string machine;    ///< GPU model and library versions, from gpu_fingerprint()
    int64_t workspace = 0;  ///< maximum workspace of a task in bytes
    /// Whether to choose the fastest algorithm by timing. If false, chooses the first algorithm
    /// that works.
    bool tune = true;
  };
  /// Hash of the task and settings -> serialised algorithm or rejection.
  using Entries = std::map<std::string, std::string>;

  /// `entries`: initial entries of this process, which take precedence over the entries on disk.
  AlgorithmRecord(Settings settings, ObjectCache cache, Entries entries = {})
      : settings_(std::move(settings)), cache_(std::move(cache)), entries_(std::move(entries)) {}

  const Settings& settings() const { return settings_; }
  /// Returns the recorded algorithm of a task, from this process or else from disk.
  std::optional<RecordedAlgorithm> find(const GpuTask& task) const;
  /// Adds `found`, a result of find(), to the entries of this process.
  void add_entry(const GpuTask& task, const RecordedAlgorithm& found);
  /// Records the chosen algorithm of a task.
  void store(const GpuTask& task, const RecordedAlgorithm& chosen,
             EntryLifetime lifetime = EntryLifetime::persistent);
  /// Records that the library has no algorithm for the task. `why`: the library's reason in one
  /// line, or "".
  void record_rejection(const GpuTask& task, const std::string& why,
                        EntryLifetime lifetime = EntryLifetime::persistent);
  /// Returns the recorded reason why the library has no algorithm for the task; nullopt if no
  /// rejection is recorded.
  std::optional<std::string> rejection_reason(const GpuTask& task) const;
  /// Adds `found`, a result of rejection_reason(), to the entries of this process.
  void add_rejection_entry(const GpuTask& task, const std::string& found);
  /// Merges `entries` into the entries of this process. Replaces entries with equal keys. Writes
  /// entries with EntryLifetime::persistent to disk. Returns whether an existing entry changed.
  bool adopt_tuning_record(const Entries& entries);
  /// The entries of this process.
  const Entries& entries() const { return entries_; }

 private:
  std::string key_of(const GpuTask& task) const;
  std::string rejection_key_of(const GpuTask& task) const;
  std::optional<std::string> find_text(const std::string& key) const;
  void set(const std::string& key, const std::string& text, EntryLifetime lifetime);

  Settings settings_;
  ObjectCache cache_;
  Entries entries_;
};

/// Identifies the GPU model and the library versions. Recorded algorithms are valid only for an
/// equal fingerprint.
std::string gpu_fingerprint(const FluidGpuDescription& gpu, const FluidGpuVersions& versions);

/// Describes the recorded algorithm of `fused` for `fluidrun plan`, such as "chosen at 0.0120 ms,
/// with 4.00 MiB". Returns "chosen when it is prepared" if no algorithm is recorded.
std::string recorded_algorithm_text(Place place, const ir::Op& fused, int64_t batch,
                                    const ExecutorOptions& options);

}  // namespace fluid
