#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "codegen/object_cache.h"
#include "executor/gpu/gpu_task.h"
#include "executor/options/place.h"
#include "ir/graph.h"

namespace fluid {

struct ExecutorOptions;

/// How a task is computed, since it was chosen.
struct KeptChoice {
  FluidGpuChoice choice = {};
  float ms = 0;  ///< that it took; 0: it was not timed
};

/// How long something holds: in this process, and in what is resumed from its checkpoints; or also
/// for who comes later and finds it on disk.
enum class Lasts : uint8_t { here, later };

/// What was chosen for which task, in this process and on disk.
class ChoiceRecord {
 public:
  /// All that a choice depends on besides the task.
  struct Terms {
    std::string machine;    ///< see machine_of()
    int64_t workspace = 0;  ///< bytes that a task may have
    bool tune = true;       ///< the fastest was chosen; else the library's favourite
  };
  using Decisions = std::map<std::string, std::string>;  ///< choices as text, by key

  /// `decided`: what holds before what is on disk.
  ChoiceRecord(Terms terms, ObjectCache cache, Decisions decided = {})
      : terms_(std::move(terms)), cache_(std::move(cache)), decided_(std::move(decided)) {}

  const Terms& terms() const { return terms_; }
  std::optional<KeptChoice> find(const GpuTask& task) const;
  /// What find() said holds in this process.
  void decide(const GpuTask& task, const KeptChoice& found);
  void keep(const GpuTask& task, const KeptChoice& kept, Lasts lasts = Lasts::later);
  /// The library has no way to compute it, because of `why`, in one line; "": it knows of none.
  void refuse(const GpuTask& task, const std::string& why, Lasts lasts = Lasts::later);
  /// Why the task was refused; empty where it was not.
  std::optional<std::string> refusal(const GpuTask& task) const;
  /// What refusal() said holds in this process.
  void decide_refusal(const GpuTask& task, const std::string& found);
  /// From now on it is as in `decisions`, also for who comes later, where it is for them. Whether
  /// anything changed of what held here.
  bool take(const Decisions& decisions);
  /// What holds in this process.
  const Decisions& decided() const { return decided_; }

 private:
  std::string key_of(const GpuTask& task) const;
  std::string refusal_key_of(const GpuTask& task) const;
  std::optional<std::string> text_at(const std::string& key) const;
  void set(const std::string& key, const std::string& text, Lasts lasts);

  Terms terms_;
  ObjectCache cache_;
  Decisions decided_;
};

/// All that the speed of a library's algorithms depends on, and which there are.
std::string machine_of(const FluidGpuDescription& gpu, const FluidGpuVersions& versions);

/// What is known of the way in which the library of a GPU computes `fused`, for `plan`: "chosen at
/// 0.012 ms, with 4.00 MiB", or that nothing was chosen yet.
std::string choice_text(Place place, const ir::Op& fused, int64_t batch,
                        const ExecutorOptions& options);

}  // namespace fluid
