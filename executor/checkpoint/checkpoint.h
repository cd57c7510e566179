#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/snapshot.h"
#include "frontend/readers/reader_position.h"
#include "ir/error.h"

namespace fluid {

class Executor;

/// The state of a training loop. A checkpoint stores this state together with the executor's
/// snapshot.
struct TrainingState {
  /// The accumulated statistics of a scalar output in the current epoch. An output that is not a
  /// metric has two statistics: the sum of its values and the number of samples. Covers the samples
  /// of all ranks.
  struct OutputStatistics {
    std::string name;
    std::vector<double> statistics;
  };
  /// The best value of the monitored output in the completed epochs, and its epoch (from 1).
  struct BestValue {
    double value = 0;
    int64_t epoch = 0;
  };

  int64_t steps = 0;             ///< number of training steps run so far
  ReaderPosition position = {};  ///< result of Reader::position()
  int64_t epochs = 0;            ///< number of completed epochs whose callbacks have run
  std::vector<OutputStatistics> output_statistics = {};
  std::optional<BestValue> best = {};
  /// BestEpoch::criterion() that selected `best`, such as "accuracy:max". Runs without validation
  /// keep both. Empty: no run has selected a best epoch.
  std::string best_criterion = {};
  /// Number of completed epochs when the runs began to monitor `best_criterion` in each epoch.
  int64_t monitored_since = 0;
  /// Name of a recipe -> number of its training steps so far. May be empty if all steps followed
  /// one cycle of recipes.
  std::map<std::string, int64_t> recipe_steps = {};
  /// The options of the training loop that affect results: option name ("batch", "data") -> value
  /// as text.
  std::map<std::string, std::string> options = {};
};

/// A checkpoint read from disk.
struct Checkpoint {
  std::string path;
  Snapshot snapshot;
  TrainingState state;
  bool best = false;  ///< whether this checkpoint was the best one when written
  /// Error messages of newer checkpoints that newest_checkpoint() skipped because they are damaged.
  std::vector<std::string> skipped_checkpoints = {};
};

/// The error that CheckpointDirectory::save() throws when the operating system fails to write a
/// file.
class CheckpointNotWritten : public UserError {
 public:
  using UserError::UserError;
};

/// Reads the newest intact checkpoint in `directory`; nullopt when there is none. Throws UserError
/// when all checkpoints are damaged.
std::optional<Checkpoint> newest_checkpoint(const std::string& directory);

/// Reads the checkpoint at `path`. Throws UserError with the reason when the checkpoint is damaged.
Checkpoint read_checkpoint(const std::string& path);

/// Returns the column table (Executor::column_table()) of the newest checkpoint in `directory` with
/// a readable parameter file; null if there is none. Reads only the file's metadata.
ColumnTablePtr newest_column_table(const std::string& directory);

struct CheckpointOptions {
  int64_t keep = 3;  ///< number of newest checkpoints to keep, in addition to the best one
};

/// The directory with the checkpoints of one training run. One process at a time may write to it.
///
///   step-0000001200/   parameters.safetensors (read by Executor::load), training.safetensors,
///                      manifest.json
///   last, best         links to the newest and to the best checkpoint
///
/// A checkpoint is written to a temporary directory, which is renamed after all files are on disk.
/// If the process is killed during save(), the newest intact checkpoint therefore survives.
///
///   CheckpointDirectory checkpoints("run");
///   const std::optional<Checkpoint> from = newest_checkpoint("run");
///   if (from) reader.seek(from->state.position);
///   exe.prepare({.train = reader.batch_sizes()});
///   if (from) exe.restore(from->snapshot, from->path);
class CheckpointDirectory {
 public:
  /// Creates the directory if needed. Throws UserError when the directory is not writable, or
  /// another process writes to it.
  explicit CheckpointDirectory(std::string directory, CheckpointOptions options = {});
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;

  /// Writes a checkpoint and returns its path. Throws CheckpointNotWritten when the operating
  /// system fails to write a file. Throws UserError, and keeps the earlier checkpoints, when a
  /// parameter is not finite.
  std::string save(const Snapshot& snapshot, const TrainingState& state, bool best = false);

  /// Points the link `best` to the checkpoint of the best epoch of `resumed`. Must be called after
  /// resuming from a checkpoint: the previous process may have been killed before it updated the
  /// link, or the link may name a newer, damaged checkpoint. Removes the link if no intact
  /// checkpoint holds the best epoch.
  void restore_best_link(const Checkpoint& resumed);

  const std::string& directory() const { return directory_; }
  bool empty() const;

 private:
  std::string write(const Snapshot& snapshot, const TrainingState& state, bool best);
  /// Creates an empty directory for the next checkpoint and returns its path.
  std::string create_temporary();
  /// Name of the intact checkpoint of the best epoch of `resumed`; "" if there is none.
  std::string find_best(const Checkpoint& resumed) const;
  void replace_link(const std::string& link, const std::string& name);
  void remove_old_checkpoints(const std::string& newest);
  void remove_entry(const std::string& name);

  std::string directory_;
  CheckpointOptions options_;
  /// Whether this process created the directory. If true, the destructor removes the directory when
  /// it is empty.
  bool created_directory_ = false;
  int lock_ = -1;
};

}  // namespace fluid
