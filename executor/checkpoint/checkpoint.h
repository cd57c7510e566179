#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/snapshot.h"
#include "ir/error.h"

namespace fluid {

class Executor;

/// Where a training loop is; what a checkpoint holds besides a snapshot of the executor.
struct TrainingState {
  /// What an output has come to in the epoch that goes on.
  struct Sum {
    std::string name;
    double sum = 0;
    double weight = 0;
  };
  /// The best figure of the epochs so far.
  struct Best {
    double figure = 0;
    int64_t epoch = 0;
  };

  int64_t steps = 0;     ///< run so far
  int64_t position = 0;  ///< Reader::position() after them
  int64_t samples = 0;   ///< Reader::samples(), of an epoch
  int64_t epochs = 0;    ///< done and dealt with
  std::vector<Sum> figures = {};
  std::optional<Best> best = {};
  /// The loop's options that change results, as text: "batch", "data".
  std::map<std::string, std::string> options = {};
};

/// A checkpoint as it is read.
struct Checkpoint {
  std::string path;
  Snapshot snapshot;
  TrainingState state;
  bool best = false;                          ///< of the epochs until then
  std::vector<std::string> passed_over = {};  ///< newer ones that are damaged: each, and why
};

/// The system refuses to write a checkpoint.
class CheckpointNotWritten : public UserError {
 public:
  using UserError::UserError;
};

/// The newest whole checkpoint in `directory`; nothing when there is none, or no such directory.
/// Throws UserError when all that are there are damaged.
std::optional<Checkpoint> newest_checkpoint(const std::string& directory);

/// The checkpoint at `path`. Throws UserError that says what is wrong with it.
Checkpoint read_checkpoint(const std::string& path);

struct CheckpointOptions {
  int64_t keep = 3;  ///< the newest so many are kept, and the best
};

/// A directory of one training run's checkpoints, which one process writes at a time:
///
///   step-0000001200/   parameters.safetensors (what Executor::load reads), training.safetensors,
///                      manifest.json
///   last, best         links to the newest, and to the one of the best figure
///
/// A checkpoint appears under its name when all of it is on the disk, so that one which loads is
/// there at any moment, whatever ends the process.
///
///   Checkpoints checkpoints("run");
///   const std::optional<Checkpoint> from = newest_checkpoint("run");
///   if (from) reader.seek(from->state.position);
///   exe.prepare({.train = reader.batch_sizes()});
///   if (from) exe.restore(from->snapshot, from->path);
class Checkpoints {
 public:
  /// Makes the directory where there is none. Throws UserError when it cannot be written, or when
  /// another process has it.
  explicit Checkpoints(std::string directory, CheckpointOptions options = {});
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;

  /// Writes a checkpoint of `snapshot` and returns its path. Throws CheckpointNotWritten when the
  /// system refuses, and another UserError when a parameter is nan or infinite: what came before a
  /// divergence is kept.
  std::string save(const Snapshot& snapshot, const TrainingState& state, bool best = false);

  /// Makes `best` link to the checkpoint at `path`, as save() does: for one that was resumed, whose
  /// process may have been ended before it could.
  void mark_best(const std::string& path);

  const std::string& directory() const { return directory_; }
  bool empty() const;

 private:
  std::string write(const Snapshot& snapshot, const TrainingState& state, bool best);
  std::string make_temporary();
  void link(const std::string& link, const std::string& name);
  void remove_old(const std::string& newest);
  void remove(const std::string& name);

  std::string directory_;
  CheckpointOptions options_;
  bool made_ = false;  ///< the directory
  int lock_ = -1;
};

}  // namespace fluid
