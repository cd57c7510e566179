#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/object_cache.h"
#include "executor/comm/communicator.h"
#include "executor/device/kernel_cache.h"
#include "executor/host/target_description.h"
#include "passes/target.h"

namespace fluid {

/// The kernels that can compute an op and its epilogue, with predicted or measured times.
struct KernelTimes {
  const ir::Op& op;
  const EpilogueOps& epilogue;
  std::vector<KernelCandidate> libraries;
  double generated = 0;  ///< time of generated code for `op` alone, in seconds
};

/// Times the kernels that can compute a matmul or a convolution, once: the times are kept in a
/// tuning record and on disk. Thread-safe.
class KernelTuner {
 public:
  struct Settings {
    /// Whether to time ops that have no entry in the record. If false, only the ops of the record
    /// get measured times.
    bool measures = false;
    std::string cache_dir;  ///< directory of the disk cache; empty: no disk cache
    /// Entries of an earlier run, which take precedence over the disk. Entries of other kinds are
    /// ignored.
    std::map<std::string, std::string> record = {};
    /// Communicator of all ranks, which agree on the times; null in a single process.
    Communicator* communicator = nullptr;
  };

  /// `cpu`: this machine's CPU.
  KernelTuner(const TargetDescription& cpu, Settings settings);

  /// Returns `kernels` with measured times, library kernels sorted fastest first. Times that
  /// differ by less than 3 % count as equal: library kernels then keep the order in which the op's
  /// definition lists them, and generated code comes last. Returns `kernels` itself for an op
  /// that is not timed: one of few FLOPs, one whose operands are not floats, one for which memory
  /// is lacking, and one without an entry if Settings::measures is not set. Drops library kernels
  /// that fail.
  ///
  /// Generated code is timed only where it was predicted to take less than four times as long as
  /// the fastest library kernel, and never with an epilogue.
  KernelTimes measured(KernelTimes kernels);

  /// Returns the entries that this process used or measured.
  std::map<std::string, std::string> record() const;
  int timed_ops() const;  ///< number of ops that this process timed
  double ms() const;      ///< time that timing took in ms

 private:
  using Seconds = std::map<std::string, double>;  ///< kernel -> time
  std::optional<Seconds> seconds_of(const KernelTimes& kernels);
  std::optional<std::string> cached_or_measured(const std::string& key, const KernelTimes& kernels);
  std::optional<std::string> measure(const KernelTimes& kernels);

  TargetDescription cpu_;
  Settings settings_;
  ObjectCache cache_;
  KernelCache kernels_;
  std::optional<Compiler> compiler_;  ///< created when generated code is first timed
  mutable std::mutex mutex_;
  std::map<std::string, std::string> used_;  ///< the result of record()
  int timed_ops_ = 0;
  double ms_ = 0;
};

/// Whether the tuning record `record` contains times of kernels.
bool has_kernel_times(const std::map<std::string, std::string>& record);

}  // namespace fluid
