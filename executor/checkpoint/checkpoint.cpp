#include "executor/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "executor/checkpoint/checkpoint_file.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
const std::string kTemporary = ".temporary";

/// The name of a checkpoint's directory: "step-0000001200", or "step-0000001200.1" for a later
/// checkpoint of the same step.
struct CheckpointName {
  int64_t steps = 0;
  int64_t repetition = 0;
  auto operator<=>(const CheckpointName&) const = default;
  std::string str() const {
    return fmt::format("{}{:010}{}", kPrefix, steps,
                       repetition > 0 ? fmt::format(".{}", repetition) : "");
  }
};

std::optional<CheckpointName> name_in(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  const size_t dot = text.find('.');
  const bool has_repetition = dot != std::string_view::npos;
  const std::optional<int64_t> steps = parse_number<int64_t>(text.substr(0, dot));
  const std::optional<int64_t> repetition =
      has_repetition ? parse_number<int64_t>(text.substr(dot + 1)) : 0;
  if (!steps || !repetition) return std::nullopt;
  return CheckpointName{*steps, *repetition};
}

[[noreturn]] void fail(const std::string& path, const std::error_code& error) {
  throw UserError(fmt::format("cannot write '{}': {}", path, error.message()));
}

/// Returns the names of the checkpoints in `directory`, newest first.
std::vector<CheckpointName> names_in(const std::string& directory) {
  std::vector<CheckpointName> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (const auto name = name_in(entry.path().filename().string())) names.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw UserError(fmt::format("cannot read '{}': {}", directory, error.message()));
  }
  std::ranges::sort(names, std::greater<>());
  return names;
}

void check_finite(const Snapshot& snapshot, const std::string& directory) {
  for (const SnapshotVariable& saved : snapshot.variables) {
    if (saved.kind != VariableKind::recorded || !is_float(saved.value.dtype())) continue;
    for (int64_t i = 0; i < saved.value.numel(); ++i) {
      const double x = saved.value.at(i);
      if (std::isfinite(x)) continue;
      throw UserError(fmt::format(
          "'{}' holds {}: training diverged, and no checkpoint of it is written to '{}'",
          saved.name, ir::float_text(x), directory));
    }
  }
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint(const std::string& directory) {
  std::vector<std::string> damaged;
  for (const CheckpointName& name : names_in(directory)) {
    try {
      Checkpoint checkpoint = read_checkpoint(directory + "/" + name.str());
      checkpoint.skipped_checkpoints = std::move(damaged);
      return checkpoint;
    } catch (const UserError& e) {
      damaged.emplace_back(e.what());
    }
  }
  if (damaged.empty()) return std::nullopt;
  throw UserError(
      fmt::format("no checkpoint in '{}' is intact: {}", directory, fmt::join(damaged, "; ")));
}

ColumnTablePtr newest_column_table(const std::string& directory) {
  for (const CheckpointName& name : names_in(directory)) {
    try {
      return read_column_table_metadata(directory + "/" + name.str() + "/" + kCheckpointParameters);
    } catch (const UserError&) {
      continue;  // damaged: newest_checkpoint() reports the error
    }
  }
  return nullptr;
}

CheckpointDirectory::CheckpointDirectory(std::string directory, CheckpointOptions options)
    : directory_(std::move(directory)), options_(options) {
  if (options_.keep < 1) throw UserError("at least one checkpoint must be kept");
  std::error_code error;
  created_directory_ = fs::create_directories(directory_, error);
  if (error) fail(directory_, error);
  lock_ = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) fail(directory_, {errno, std::generic_category()});
  // Only EWOULDBLOCK means that another process holds the lock. Other errors are ignored, because
  // some file systems have no locks.
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw UserError(fmt::format("another process writes checkpoints into '{}'", directory_));
  }
  remove_entry(kTemporary);  // a killed process may have left this directory
  create_temporary();
  remove_entry(kTemporary);
}

CheckpointDirectory::~CheckpointDirectory() {
  if (created_directory_) rmdir(directory_.c_str());  // removes the directory only if it is empty
  close(lock_);
}

bool CheckpointDirectory::empty() const { return names_in(directory_).empty(); }

std::string CheckpointDirectory::save(const Snapshot& snapshot, const TrainingState& state,
                                      bool best) {
  check_finite(snapshot, directory_);
  try {
    return write(snapshot, state, best);
  } catch (const UserError& e) {
    throw CheckpointNotWritten(e.what());
  }
}

std::string CheckpointDirectory::write(const Snapshot& snapshot, const TrainingState& state,
                                       bool best) {
  const std::vector<CheckpointName> known = names_in(directory_);
  CheckpointName name{state.steps};
  while (std::ranges::find(known, name) != known.end()) ++name.repetition;
  const std::string path = directory_ + "/" + name.str();
  const std::string temporary = create_temporary();
  try {
    write_checkpoint(temporary, snapshot, state, best);
  } catch (...) {
    std::error_code ignored;  // if removing fails, the next save() removes the directory
    fs::remove_all(temporary, ignored);
    throw;
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) fail(path, error);
  flush_directory(directory_);
  replace_link("last", name.str());
  if (best) replace_link("best", name.str());
  remove_old_checkpoints(name.str());
  return path;
}

void CheckpointDirectory::restore_best_link(const Checkpoint& resumed) {
  const std::string name = fs::path(resumed.path).filename().string();
  if (resumed.best) return replace_link("best", name);
  std::error_code ignored;  // reading fails if the link does not exist
  const auto linked = name_in(fs::read_symlink(directory_ + "/best", ignored).string());
  // All checkpoints that are newer than `resumed` are damaged.
  if (!linked || *linked < *name_in(name)) return;
  const std::string best = find_best(resumed);
  if (best.empty()) return remove_entry("best");
  replace_link("best", best);
}

std::string CheckpointDirectory::find_best(const Checkpoint& resumed) const {
  const std::optional<TrainingState::BestValue>& best = resumed.state.best;
  const CheckpointName newest = *name_in(fs::path(resumed.path).filename().string());
  for (const CheckpointName& name : names_in(directory_)) {
    if (!best || name >= newest) continue;
    try {
      const Checkpoint read = read_checkpoint(directory_ + "/" + name.str());
      if (read.best && read.state.epochs == best->epoch) return name.str();
    } catch (const UserError&) {
      continue;  // damaged
    }
  }
  return "";
}

std::string CheckpointDirectory::create_temporary() {
  remove_entry(kTemporary);
  const std::string path = directory_ + "/" + kTemporary;
  std::error_code error;
  fs::create_directory(path, error);
  if (error) fail(path, error);
  return path;
}

void CheckpointDirectory::replace_link(const std::string& link, const std::string& name) {
  const std::string path = directory_ + "/" + link;
  const std::string temporary = directory_ + "/" + kTemporary;
  std::error_code error;
  fs::create_directory_symlink(name, temporary, error);
  if (!error) fs::rename(temporary, path, error);
  if (error) fail(path, error);
  flush_directory(directory_);
}

void CheckpointDirectory::remove_old_checkpoints(const std::string& newest) {
  std::error_code ignored;  // reading fails if the link `best` does not exist
  const std::string best = fs::read_symlink(directory_ + "/best", ignored).string();
  int64_t newer = 0;
  for (const CheckpointName& name : names_in(directory_)) {
    // Keep checkpoints whose names sort after `newest`: they are damaged, and newest_checkpoint()
    // skipped them.
    if (name > *name_in(newest) || ++newer <= options_.keep || name.str() == best) continue;
    remove_entry(name.str());
  }
}

void CheckpointDirectory::remove_entry(const std::string& name) {
  const std::string temporary = directory_ + "/" + kTemporary;
  const std::string path = directory_ + "/" + name;
  std::error_code error;
  // Rename before removing, so that an interrupted removal leaves no partial checkpoint `name`.
  if (path != temporary) fs::rename(path, temporary, error);
  if (!error) fs::remove_all(temporary, error);
  if (error) fail(path, error);
}

}  // namespace fluid
