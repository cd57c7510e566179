#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/object_cache.h"
#include "executor/comm/communicator.h"
#include "executor/cpu/kernel_trial.h"
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

  /// Returns `kernels` with measured times, library kernels sorted fastest first. Kernels that are
  /// at most 3 % slower than another get its time: library kernels then have the order in which the
  /// op's definition lists them, and generated code comes last. Drops library kernels that fail.
  /// Returns `kernels` itself for an op that is not timed: one of few FLOPs, one whose operands are
  /// neither floats nor 8-bit integers, one for which memory is lacking, and one without an entry
  /// if Settings::measures is not set.
  ///
  /// Generated code is timed only where it was predicted to take less than four times as long as
  /// the fastest library kernel, and never with an epilogue.
  KernelTimes measured(KernelTimes kernels);

  /// Returns the entries of Settings::record, and those that this process read or measured.
  std::map<std::string, std::string> record() const;
  int timed_ops() const;  ///< number of ops that this process timed
  double ms() const;      ///< time that timing took in ms

 private:
  using Seconds = std::map<std::string, double>;  ///< kernel -> time; infinite if the kernel fails
  struct NamedTrial {
    std::string label;                        ///< kernel and layouts
    std::unique_ptr<KernelTrial> trial = {};  ///< null if the library cannot prepare the kernel
  };
  std::optional<Seconds> seconds_of(const KernelTimes& kernels);
  std::optional<std::string> cached_or_measured(const std::string& key, const KernelTimes& kernels);
  std::vector<NamedTrial> trials_of(const KernelTimes& kernels);
  std::optional<std::string> measure(const KernelTimes& kernels);

  TargetDescription cpu_;
  Settings settings_;
  ObjectCache cache_;
  KernelCache kernels_;
  std::optional<Compiler> compiler_;  ///< created when generated code is first timed
  mutable std::mutex mutex_;
  std::map<std::string, std::string> entries_;  ///< the result of record()
  std::set<std::string> not_timed_;             ///< keys of ops for which memory was lacking
  int timed_ops_ = 0;
  double ms_ = 0;
};

/// Whether the tuning record `record` contains times of kernels.
bool has_kernel_times(const std::map<std::string, std::string>& record);

}  // namespace fluid
