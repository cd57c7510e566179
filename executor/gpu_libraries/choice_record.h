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

/// The algorithm chosen for a task.
struct KeptChoice {
  FluidGpuChoice choice = {};
  float ms = 0;  ///< measured time; 0: not timed
};

/// How long a decision holds. here: in this process and in runs resumed from its checkpoints.
/// later: also in later runs, which read the decision from disk.
enum class DecisionScope : uint8_t { here, later };

/// The algorithm choices by task, in this process and on disk.
class ChoiceRecord {
 public:
  /// Everything that a choice depends on besides the task.
  struct Terms {
    std::string machine;    ///< see machine_of()
    int64_t workspace = 0;  ///< bytes available to a task
    bool tune = true;       ///< the choice is the fastest measured; else the library's first choice
  };
  using Decisions = std::map<std::string, std::string>;  ///< serialised choices, by key

  /// `decided`: takes precedence over the choices on disk.
  ChoiceRecord(Terms terms, ObjectCache cache, Decisions decided = {})
      : terms_(std::move(terms)), cache_(std::move(cache)), decided_(std::move(decided)) {}

  const Terms& terms() const { return terms_; }
  std::optional<KeptChoice> find(const GpuTask& task) const;
  /// Makes `found`, a result of find(), the decision of this process.
  void decide(const GpuTask& task, const KeptChoice& found);
  void keep(const GpuTask& task, const KeptChoice& kept,
            DecisionScope lasts = DecisionScope::later);
  /// Records that the library has no algorithm for the task. `why`: reason in one line, or "" if
  /// the library gave none.
  void record_rejection(const GpuTask& task, const std::string& why,
                        DecisionScope lasts = DecisionScope::later);
  /// The recorded reason why the library has no algorithm for the task; nullopt when none is
  /// recorded.
  std::optional<std::string> refusal(const GpuTask& task) const;
  /// Makes `found`, a result of refusal(), the decision of this process.
  void decide_rejection(const GpuTask& task, const std::string& found);
  /// Replaces decisions by `decisions`, and stores those with DecisionScope::later on disk. Returns
  /// whether a decision of this process changed.
  bool adopt_tuning_record(const Decisions& decisions);
  /// The decisions of this process.
  const Decisions& decided() const { return decided_; }

 private:
  std::string key_of(const GpuTask& task) const;
  std::string rejection_key_of(const GpuTask& task) const;
  std::optional<std::string> text_at(const std::string& key) const;
  void set(const std::string& key, const std::string& text, DecisionScope lasts);

  Terms terms_;
  ObjectCache cache_;
  Decisions decided_;
};

/// Identifies the GPU model and the library versions, on which the algorithms and their speeds
/// depend.
std::string machine_of(const FluidGpuDescription& gpu, const FluidGpuVersions& versions);

/// Describes the recorded algorithm of `fused` for `plan`: "chosen at 0.012 ms, with 4.00 MiB", or
/// that nothing has been chosen yet.
std::string choice_text(Place place, const ir::Op& fused, int64_t batch,
                        const ExecutorOptions& options);

}  // namespace fluid
