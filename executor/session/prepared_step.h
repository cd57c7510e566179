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
#include "executor/device/step_report.h"
#include "executor/profile/step_recorder.h"
#include "executor/session/feeds.h"
#include "executor/session/outputs.h"
#include "ir/error.h"
#include "ir/graph.h"
#include "passes/options.h"

namespace fluid {

/// A micro-batch: `samples` consecutive samples of a batch, starting at sample `first`. `kind`
/// selects the program that runs on the micro-batch.
struct MicroBatch {
  MicroBatchKind kind = MicroBatchKind::whole;
  int64_t first = 0;
  int64_t samples = 0;
  /// Returns the compile options of the micro-batch. `step_options`: options of the whole step.
  Options options(Options step_options) const;
};

/// Splits `batch` samples into `count` micro-batches whose sizes differ by at most one, with the
/// larger micro-batches first. If `count` exceeds `batch`, returns one micro-batch per sample. If
/// `batch` is 0, returns one empty micro-batch.
std::vector<MicroBatch> split_into_micro_batches(int64_t batch, int64_t count);

/// A compiled program for a whole step, or for the micro-batches of one MicroBatchKind.
struct CompiledProgram {
  Options options;
  std::string cache_key;                 ///< in the ProgramCache; empty: none
  std::unique_ptr<ir::Program> program;  ///< the program after the pass pipeline
  /// Program that computes the precomputed weights of a predict program. Null if there are no
  /// precomputed weights, and after the weight program has been compiled.
  std::unique_ptr<ir::Program> weight_program;
  MemoryPlan plan;
  /// Null until StepCache::require_executable() if the program computes precomputed weights that
  /// the WeightCache may have.
  std::unique_ptr<Executable> executable;
  /// For a program of precomputed weights: a hash of all that determines their bits for given
  /// values of variables. Empty for another program, and if the place does not know it.
  std::string values_key;
  std::vector<Feed> feeds;
};

/// A compiled step for one mode, batch size, length and set of feeds. It runs one executable per
/// micro-batch.
class PreparedStep {
 public:
  struct Run {
    MicroBatch micro_batch;
    CompiledProgram* compiled = nullptr;
  };

  /// `options`: options of the whole step. `recorded` must outlive this object.
  PreparedStep(Options options, std::vector<Run> runs, const ir::Program& recorded);

  const Options& options() const { return options_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Feed>& feeds() const { return runs_.front().compiled->feeds; }
  /// Required size of a feed slot and of an output slot, in bytes. The output slot includes the
  /// outputs of the whole batch, gathered from the micro-batches.
  int64_t feed_bytes() const { return feed_bytes_; }
  int64_t output_bytes() const { return output_bytes_; }
  size_t num_outputs() const { return output_views_[0].size(); }
  std::optional<size_t> index_of_output(std::string_view output) const;
  std::vector<std::string> output_names() const;
  /// The error for a step without output `name`. The message also tells whether another recipe
  /// computes the output.
  UserError no_output_error(std::string_view name) const;
  /// Finds the variables that the step copies to its StepReport. Must be called after each
  /// change of `variables`.
  void find_reported_variables(const Variables& variables) {
    reported_ = variables_to_report(variables, options_.recipe);
  }
  const std::vector<ReportedVariable>& reported_variables() const { return reported_; }

  /// Points the output views at both output slots of `memory`. Updates the views in place, because
  /// a user may still hold views of a completed step.
  void bind_outputs(const std::shared_ptr<PlaceMemory>& memory);
  /// Marks the outputs in `slot` as not yet copied to the host. Must be called before a step runs.
  void mark_outputs_pending(size_t slot);
  /// Copies the outputs of run `run` into the gathered outputs of the whole batch. Skips outputs
  /// without a batch dimension.
  void gather_outputs(size_t run, size_t slot, const PlaceMemory& memory) const;
  /// Returns the outputs in `slot` once all runs are complete, and computes the metrics' values.
  /// Large outputs that are not metrics are valid only after fetch_output().
  const std::vector<OutputView>& finish_outputs(size_t slot, const PlaceMemory& memory);
  /// Copies output `output_index` in `slot` to the host, if it is not there yet.
  void fetch_output(size_t slot, size_t output_index, const PlaceMemory& memory);

  /// Enables profiling: preallocates a recorder for the times of steps. Must precede bind() of the
  /// executables.
  void enable_profiling(const ProfileOptions& options);
  std::optional<StepRecorder>& recorder() { return recorder_; }

 private:
  /// An output with a batch dimension, gathered from the runs of all micro-batches.
  struct GatheredOutput {
    std::string name;
    int64_t offset = 0;  ///< in bytes, from the start of the output slot
    int64_t ranges = 1;  ///< separate memory ranges of a run's samples; 1 if the batch is first
    int64_t stride = 0;  ///< distance in bytes of the ranges in the gathered output
    /// Byte offsets in the output slot, indexed by run. `from`: start of the run's output. `to`:
    /// destination of its first range in the gathered output.
    std::vector<int64_t> from, to;
    std::vector<int64_t> bytes;
  };
  /// Location of an output in its slot.
  struct OutputLocation {
    int64_t offset = 0, bytes = 0;
    bool on_host = false;  ///< whether the host can read the value
  };
  void plan_gathering();
  OutputLocation location_of(const ir::Output& output) const;
  Tensor view(const ir::Output& output, std::byte* slot,
              const std::shared_ptr<PlaceMemory>& memory) const;

  Options options_;
  std::vector<Run> runs_;
  const ir::Program& recorded_;
  int64_t feed_bytes_ = 0, output_bytes_ = 0;
  std::vector<GatheredOutput> gathered_;
  std::array<std::vector<OutputView>, 2> output_views_;   ///< indexed by slot, then by output
  std::array<std::vector<OutputLocation>, 2> locations_;  ///< indexed by slot, then by output
  /// Indexed by slot: whether the metrics' values have been computed from their statistics.
  std::array<bool, 2> has_metric_values_ = {};
  std::optional<StepRecorder> recorder_;
  std::vector<ReportedVariable> reported_;
};

/// Returns the size in bytes of the gathered outputs of a batch of `batch` samples. Only outputs
/// with a batch dimension are gathered. `program`: program of a micro-batch.
int64_t gathered_bytes(const ir::Program& program, int64_t batch);

/// Returns the extents of `shape` at batch size `batch`.
std::vector<int64_t> extents(const Shape& shape, int64_t batch);

}  // namespace fluid
