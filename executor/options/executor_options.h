#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "executor/options/precision.h"
#include "executor/options/profile_options.h"
#include "executor/options/sample_finder.h"
#include "executor/options/world.h"
#include "passes/options.h"

namespace fluid {

struct PrecisionOptions {
  std::optional<DType> dtype = {};     ///< f64: the whole program in f64
  std::optional<AmpOptions> amp = {};  ///< mixed precision
  /// Times training steps of `batch` samples on rank 0 to choose between f32 and `amp` (bf16 when
  /// absent), and the level. All ranks use the choice.
  bool choose_amp = false;
  std::optional<Precision> chosen_amp = {};  ///< the choice of an earlier run, instead of timing
};

/// Training by several processes, each with its shard of every batch.
struct DistributedOptions {
  /// With several ranks, run() is a collective and returns the outputs of the whole batch. All
  /// ranks start with rank 0's parameters.
  World world = {};
  /// Runs the collectives in a world of one process: to test NCCL on one GPU.
  bool force_collectives = false;
  /// How long ranks wait for a late rank before they fail. On GPUs this bounds a whole step.
  std::chrono::milliseconds comm_timeout{60'000};
  /// Replaces comm_timeout where ranks arrive at different times: in the first step, and while one
  /// rank saves for all. For a rank that sends no heartbeats, comm_timeout still applies.
  std::chrono::milliseconds first_timeout{300'000};
  Buckets buckets = {};  ///< of gradients for all-reduce
  bool sync_bn = false;  ///< batch_norm uses the statistics of the samples of all ranks
  /// 1: ZeRO-1. Each rank keeps and updates its shard of the optimizer's state, then the parameters
  /// are gathered. parameter("fc0.w.m") is this rank's shard then, a vector, and snapshot() is a
  /// collective.
  int zero = 0;
};

struct GpuOptions {
  /// Matrix products and convolutions in f32 may round their operands to TF32, as PyTorch's
  /// allow_tf32 does.
  bool tf32 = false;
  /// Copies the feeds of a step while the step before runs, into a second feed slot. Without it a
  /// new batch waits for the step before, which costs nothing where all steps use one batch.
  bool prefetch = true;
  int64_t workspace = 0;  ///< bytes for library kernels; 0: 64 MiB
  /// Chooses a library's algorithms by timing them once; `cache_dir` keeps the choice. Without it,
  /// or without `cache_dir`, the library's first choice is used.
  bool tune = true;
};

struct DebugOptions {
  /// Allows first_nonfinite(): a step whose loss is not finite is not applied. Where the loss is
  /// scaled, only the gradients decide, as without this option.
  bool check_finite = false;
  /// Guards between memory ranges, dead ranges filled with NaN, the program verified after each
  /// pass.
  bool verify_plan = false;
  bool fuse = true;
  bool libraries = true;  ///< let library kernels claim ops
};

struct ExecutorOptions {
  int64_t batch = 0;  ///< samples of the first prepared step; 0: none is prepared
  uint64_t seed = 0;  ///< of initialisers and random ops
  int threads = 0;    ///< 0: OpenMP's default
  /// Micro-batches per training step: run one after the other in the same memory, with gradients
  /// accumulated and one optimizer update. Fewer where the batch has fewer samples.
  int64_t micro_batches = 1;
  /// Rejects a batch whose size was not prepared. By default its step is compiled when it comes.
  bool strict_shapes = false;
  /// Allows Executor::set_learning_rate() for a program without a schedule, as if Manual was
  /// recorded.
  bool settable_lr = false;
  /// Folder of compiled kernels and of choices made by timing. Empty: neither is kept, but for
  /// kernels in $FLUID_KERNEL_CACHE if that is set.
  std::string cache_dir = {};
  /// Bytes the arena may take; 0: the memory of the machine. When a step makes the arena grow, the
  /// old one stays until the variables have moved and no output tensor from it is held.
  int64_t memory_limit = 0;
  PrecisionOptions precision = {};
  DistributedOptions distributed = {};
  GpuOptions gpu = {};
  DebugOptions debug = {};
  std::optional<ProfileOptions> profile = {};         ///< which steps profile() records
  std::map<std::string, std::string> decisions = {};  ///< Snapshot::decisions of a resumed run
  /// Names the sample of a value that a step rejects, as Dataset::place_of() does. Without it the
  /// message gives the sample's index in the batch.
  SampleFinder find_sample = {};
};

}  // namespace fluid
