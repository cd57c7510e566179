#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/place_memory.h"
#include "executor/profile/step_recorder.h"
#include "executor/session/feeds.h"
#include "executor/session/outputs.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// A micro-batch: consecutive samples of a batch, and the part of the step that runs on them.
struct MicroBatch {
  MicroBatchKind slice = MicroBatchKind::whole;
  int64_t first = 0;
  int64_t samples = 0;
  /// The options of the micro-batch's executable. `step`: options of the whole step.
  Options options(Options step) const;
};

/// Splits `batch` samples into `count` micro-batches whose sizes differ by at most one, larger ones
/// first. There are fewer when `count` exceeds `batch`. Zero samples give one empty micro-batch.
std::vector<MicroBatch> split_into_micro_batches(int64_t batch, int64_t count);

/// A compiled program: a whole step, or the part of it that runs for one kind of micro-batch.
struct Part {
  Options options;
  std::unique_ptr<ir::Program> program;  ///< the final program, after the pipeline
  MemoryPlan plan;
  std::unique_ptr<Executable> executable;
  std::vector<Feed> feeds;
};

/// Views of a metric's sum and weight in one output slot.
struct MetricView {
  size_t output = 0;  ///< index of the metric among the step's outputs
  Tensor sum;
  Tensor weight;
};

/// A step compiled for one mode, batch size and set of feeds.
class PreparedStep {
 public:
  struct Run {
    MicroBatch slice;
    Part* part = nullptr;
  };

  /// `options`: of the whole step. `recorded` must outlive this object.
  PreparedStep(Options options, std::vector<Run> runs, const ir::Program& recorded);

  const Options& options() const { return options_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Feed>& feeds() const { return runs_.front().part->feeds; }
  /// Bytes of one feed slot and of one output slot: the maximum over all parts. The output slot
  /// also holds the outputs gathered from the micro-batches.
  int64_t feed_bytes() const { return feed_bytes_; }
  int64_t output_bytes() const { return output_bytes_; }
  size_t outputs() const { return bound_[0].size(); }  ///< number of outputs
  std::optional<size_t> number_of(std::string_view output) const;
  std::vector<std::string> output_names() const;

  /// Points the outputs at both output slots of `memory`. Updates them in place, because a user may
  /// still hold them with the metrics of a completed step.
  void bind_outputs(const std::shared_ptr<PlaceMemory>& memory);
  /// Marks the outputs in `slot` as not yet on the host. Must precede the runs of a step.
  void begin(size_t slot);
  /// Copies the per-sample outputs of run number `run` to their position in the batch's outputs.
  void gather(size_t run, size_t slot, const PlaceMemory& memory) const;
  /// The outputs in `slot` after the last run, with the sums and weights of metrics filled in.
  /// Large outputs are valid only after fetch().
  const std::vector<OutputView>& read(size_t slot);
  /// Makes output `number` in `slot` available on the host.
  void fetch(size_t slot, size_t number, const PlaceMemory& memory);

  /// Preallocates a recorder for the times of steps. Must precede bind() of the parts.
  void record(const ProfileOptions& options);
  std::optional<StepRecorder>& recorder() { return recorder_; }

 private:
  /// An output with a batch dimension, assembled from the runs of all micro-batches.
  struct Gathered {
    std::string name;
    int64_t offset = 0;  ///< of the assembled output, from the start of the slot
    /// Offsets of each run's samples: where the run writes them, and in the assembled output.
    std::vector<int64_t> from, to;
    std::vector<int64_t> bytes;
  };
  /// Position of an output in its slot.
  struct Place {
    int64_t offset = 0, bytes = 0;
    bool here = false;  ///< the host's slot holds the value
  };
  void plan_gathering();
  Place place_of(const ir::Output& output) const;
  Tensor view(const ir::Output& output, std::byte* slot,
              const std::shared_ptr<PlaceMemory>& memory) const;

  Options options_;
  std::vector<Run> runs_;
  const ir::Program& recorded_;
  int64_t feed_bytes_ = 0, output_bytes_ = 0;
  std::vector<Gathered> gathered_;
  std::array<std::vector<OutputView>, 2> bound_;
  std::array<std::vector<Place>, 2> places_;  ///< by output
  std::array<std::vector<MetricView>, 2> metrics_;
  std::optional<StepRecorder> recorder_;
};

/// Bytes needed to gather the outputs of `part`, a micro-batch's program, that have a batch
/// dimension, for a batch of `batch` samples.
int64_t gathered_bytes(const ir::Program& part, int64_t batch);

/// The concrete extents of `shape` for `batch` samples.
std::vector<int64_t> extents(const Shape& shape, int64_t batch);

}  // namespace fluid
