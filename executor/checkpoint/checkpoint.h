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

/// The state of a training loop, which a checkpoint holds besides the executor's snapshot.
struct TrainingState {
  /// An output's value accumulated over the current epoch.
  struct Sum {
    std::string name;
    double sum = 0;
    double weight = 0;
  };
  /// The best monitored value of the completed epochs.
  struct Best {
    double figure = 0;
    int64_t epoch = 0;
  };

  int64_t steps = 0;     ///< number of steps run
  int64_t position = 0;  ///< Reader::position() after these steps
  int64_t samples = 0;   ///< Reader::samples() per epoch
  int64_t epochs = 0;    ///< completed epochs, including their callbacks
  std::vector<Sum> figures = {};
  std::optional<Best> best = {};
  /// The loop's options that affect results, as text: "batch", "data".
  std::map<std::string, std::string> options = {};
};

/// A checkpoint read from disk.
struct Checkpoint {
  std::string path;
  Snapshot snapshot;
  TrainingState state;
  bool best = false;  ///< whether it was the best when written
  /// Newer but damaged checkpoints, each with the reason.
  std::vector<std::string> passed_over = {};
};

/// The operating system failed to write a checkpoint.
class CheckpointNotWritten : public UserError {
 public:
  using UserError::UserError;
};

/// Reads the newest intact checkpoint in `directory`; nullopt when there is none. Throws UserError
/// when all checkpoints are damaged.
std::optional<Checkpoint> newest_checkpoint(const std::string& directory);

/// Reads the checkpoint at `path`. Throws UserError with the reason when it is damaged.
Checkpoint read_checkpoint(const std::string& path);

struct CheckpointOptions {
  int64_t keep = 3;  ///< number of newest checkpoints to keep, besides the best one
};

/// The directory with the checkpoints of one training run. One process at a time may write to it.
///
///   step-0000001200/   parameters.safetensors (read by Executor::load), training.safetensors,
///                      manifest.json
///   last, best         links to the newest and to the best checkpoint
///
/// A checkpoint is renamed to its final name after all its files are on disk. So an intact
/// checkpoint exists at any time, even if the process is killed.
///
///   Checkpoints checkpoints("run");
///   const std::optional<Checkpoint> from = newest_checkpoint("run");
///   if (from) reader.seek(from->state.position);
///   exe.prepare({.train = reader.batch_sizes()});
///   if (from) exe.restore(from->snapshot, from->path);
class Checkpoints {
 public:
  /// Creates the directory if needed. Throws UserError when it is not writable, or another process
  /// uses it.
  explicit Checkpoints(std::string directory, CheckpointOptions options = {});
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;

  /// Writes a checkpoint and returns its path. Throws CheckpointNotWritten when the system fails to
  /// write it. Throws UserError when a parameter is not finite, so that earlier checkpoints are
  /// kept.
  std::string save(const Snapshot& snapshot, const TrainingState& state, bool best = false);

  /// Links `best` to the checkpoint at `path`. For a resumed checkpoint whose process may have
  /// ended before save() made the link.
  void mark_best(const std::string& path);

  const std::string& directory() const { return directory_; }
  bool empty() const;

 private:
  std::string write(const Snapshot& snapshot, const TrainingState& state, bool best);
  /// Creates an empty directory for the next checkpoint and returns its path.
  std::string make_temporary();
  void link(const std::string& link, const std::string& name);
  void remove_old(const std::string& newest);
  void remove(const std::string& name);

  std::string directory_;
  CheckpointOptions options_;
  bool made_ = false;  ///< this process created the directory
  int lock_ = -1;
};

}  // namespace fluid
