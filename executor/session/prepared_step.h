#pragma once

#include <array>
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
#include "executor/session/slices.h"
#include "ir/graph.h"

namespace fluid {

/// What runs at once: a step, or the part of it that slices of a batch go through.
struct Part {
  Options options;
  std::unique_ptr<ir::Program> program;  ///< after the pipeline
  MemoryPlan plan;
  std::unique_ptr<Executable> executable;
  std::vector<Feed> feeds;
};

/// Where an output's metric is read: views of one slot.
struct MetricView {
  size_t output = 0;  ///< its number
  Tensor sum;
  Tensor weight;
};

/// A step for one mode, batch size and set of feeds.
class PreparedStep {
 public:
  struct Run {
    SliceOfBatch slice;
    Part* part = nullptr;
  };

  /// `options`: of the whole step. `recorded` must live as long.
  PreparedStep(Options options, std::vector<Run> runs, const ir::Program& recorded);

  const Options& options() const { return options_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Feed>& feeds() const { return runs_.front().part->feeds; }
  /// Bytes of a slot for feeds, and of one for outputs: what every part needs there, and the
  /// outputs gathered from the slices.
  int64_t feed_bytes() const { return feed_bytes_; }
  int64_t output_bytes() const { return output_bytes_; }
  size_t outputs() const { return bound_[0].size(); }  ///< how many there are
  std::optional<size_t> number_of(std::string_view output) const;
  std::vector<std::string> output_names() const;

  /// Points the outputs at the memory of each slot for outputs, in `memory`. In place: a user may
  /// hold them, with the figures of a step that has run.
  void bind_outputs(const std::shared_ptr<PlaceMemory>& memory);
  /// The slot's outputs are to be computed anew.
  void begin(size_t slot);
  /// Moves what run number `run` left in a slot to its place among the outputs of the batch.
  void gather(size_t run, size_t slot, const PlaceMemory& memory) const;
  /// The outputs in a slot after the last run, with the figures of metrics read; those alone have
  /// their values that were small or fetched.
  const std::vector<Output>& read(size_t slot);
  /// Makes sure that output `number` of a slot is on the host.
  void fetch(size_t slot, size_t number, const PlaceMemory& memory);

  /// Takes memory for the times of some steps. Before the parts are bound.
  void record(const ProfileOptions& options);
  std::optional<StepRecorder>& recorder() { return recorder_; }

 private:
  /// An output with a row or more a sample: the slices' parts of it are put together.
  struct Gathered {
    std::string name;
    int64_t offset = 0;             ///< of the whole in the slot
    std::vector<int64_t> from, to;  ///< of each run's part
    std::vector<int64_t> bytes;
  };
  /// Where an output lies in its slot.
  struct Place {
    int64_t offset = 0, bytes = 0;
    bool here = false;  ///< the host has it for certain
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
  std::array<std::vector<Output>, 2> bound_;
  std::array<std::vector<Place>, 2> places_;  ///< of the outputs
  std::array<std::vector<MetricView>, 2> metrics_;
  std::optional<StepRecorder> recorder_;
};

/// Bytes of the outputs with a row a sample that `part`, a slice's program, has, for a whole batch:
/// they are gathered behind the slices' own.
int64_t gathered_bytes(const ir::Program& part, int64_t batch);

std::vector<int64_t> extents(const Shape& shape, int64_t batch);

}  // namespace fluid
