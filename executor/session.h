#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "executor/arena.h"
#include "executor/device.h"
#include "executor/feeds.h"
#include "executor/outputs.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// Where an output's metric is read: views of one slot.
struct MetricView {
  size_t output = 0;  ///< its number
  Tensor sum;
  Tensor weight;
};

/// A step compiled for one mode, batch size and set of feeds.
struct Prepared {
  Options options;
  std::unique_ptr<ir::Program> program;  ///< after the pipeline
  MemoryPlan plan;
  std::unique_ptr<Executable> executable;
  std::vector<Feed> feeds;
  std::array<std::vector<Output>, 2> outputs;  ///< views of each slot
  std::array<std::vector<MetricView>, 2> metrics;
};

/// Bytes of each region of the arena.
struct Regions {
  int64_t state = 0;
  int64_t slot = 0;
  int64_t transient = 0;
  int64_t total() const { return state + 2 * slot + transient; }
  bool operator==(const Regions&) const = default;
};

/// The variables of a program on a device, its compiled steps, and the one arena they live in:
/// [variables | slot 0 | slot 1 | transient].
class Session {
 public:
  /// `base`: what all steps have in common. `memory_limit`: bytes of the arena.
  Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device, uint64_t seed,
          Options base, int64_t memory_limit);

  /// Compiles a step, or finds it. Grows the arena when needed, keeping the variables and what the
  /// slots hold. Throws UserError, before any code is generated, when the arena would pass the
  /// memory limit, and DeviceError when the system has no such memory; the session is then as
  /// before.
  Prepared& prepare(const Options& options);
  /// The step for these, or null.
  Prepared* find(Mode mode, int64_t batch, const std::set<std::string>& feeds);

  /// The predict step that uses most of the batch's columns and needs no other, or null.
  Prepared* find_predict(const Batch& batch);

  /// Fills the variables from the seed, once.
  void initialise();

  /// Runs a prepared step on checked feeds. Throws UserError when a kernel met bad data.
  Outputs run(Prepared& step, const Batch& batch);

  const ir::Program& recorded() const { return *recorded_; }
  const Variables& variables() const { return variables_; }
  Tensor view(const Variable& variable);
  const Device& device() const { return *device_; }
  int64_t slot_bytes() const { return regions_.slot; }
  int64_t transient_bytes() const { return regions_.transient; }
  const Arena& arena() const { return *arena_; }
  double passes_ms() const { return passes_ms_; }

 private:
  /// What a feed slot holds: a batch's id, or 0.
  struct Held {
    const Prepared* step = nullptr;
    uint64_t id = 0;
  };
  std::unique_ptr<Prepared> compile(const Options& options);
  void check_memory(const MemoryPlan& plan, int64_t batch) const;
  Variables variables_with(const Prepared& step) const;
  Regions regions_with(const MemoryPlan& plan, int64_t state) const;
  void move_to(std::shared_ptr<Arena> arena, const Regions& regions);
  Memory memory() const;
  void bind(Prepared& step);
  void copy_feeds(Prepared& step, const Batch& batch);
  void bind_outputs(Prepared& step, size_t slot, const Memory& memory);

  std::unique_ptr<ir::Program> recorded_;
  std::unique_ptr<Device> device_;
  uint64_t seed_;
  Options base_;
  int64_t memory_limit_;
  Variables variables_;
  std::vector<std::unique_ptr<Prepared>> steps_;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();  ///< shared with outputs' views
  Regions regions_;                                           ///< of the arena
  std::array<Held, 2> held_;
  Slots slots_;  ///< of the next step
  bool initialised_ = false;
  double passes_ms_ = 0;
};

}  // namespace fluid
