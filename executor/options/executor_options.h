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

/// Floating-point precision of the steps.
struct PrecisionOptions {
  /// The dtype, such as f64, to which all float values of the program are converted. Absent: no
  /// conversion.
  std::optional<DType> dtype = {};
  std::optional<AmpOptions> amp = {};  ///< mixed-precision settings; absent: no mixed precision
  /// Whether to choose between f32, O1 and O2 by timing training steps of ExecutorOptions::batch
  /// samples on rank 0. O1 and O2 use the settings in `amp`, or bf16 if `amp` is absent. All ranks
  /// use rank 0's choice.
  bool choose_amp = false;
  std::optional<Precision> chosen_amp = {};  ///< choice of an earlier run, used instead of timing
};

/// Data-parallel training: each process trains on its shard of every batch.
struct DistributedOptions {
  /// With several ranks, run() is a collective and returns the outputs of the global batch. All
  /// ranks start with rank 0's parameters. A process may have only one executor of a world at a
  /// time.
  World world = {};
  /// Runs the collectives even in a world of one process, for example to test NCCL on one GPU.
  bool force_collectives = false;
  /// Timeout of a collective: how long a rank waits for other ranks before it fails. On GPUs, this
  /// is the timeout of a whole step.
  std::chrono::milliseconds comm_timeout{60'000};
  /// Timeout of the rendezvous, of the first step, and of the wait while rank 0 saves. Ranks may
  /// reach these points at very different times. If a rank's heartbeats stop, the wait ends after
  /// comm_timeout.
  std::chrono::milliseconds rendezvous_timeout{300'000};
  Buckets buckets = {};  ///< sizes and dtype of the gradient buckets for all-reduce
  bool sync_bn = false;  ///< whether batch_norm uses the statistics of the global batch
  /// ZeRO stage, 0 or 1. In stage 1, each rank keeps and updates its shard of the optimizer state,
  /// and the updated parameters are all-gathered. parameter("fc0.w.m") then returns this rank's
  /// shard as a vector.
  int zero = 0;
};

/// Options of the place cpu; ignored on GPUs.
struct CpuOptions {
  /// Autotunes the kernels of matmuls and convolutions: when a step is compiled, times the library
  /// kernels and generated code for each op, and uses the fastest. Stores the times in `cache_dir`;
  /// snapshots contain them, too. Steps in f32 then give results that depend on the times, because
  /// kernels round differently. If `tune` is false, a cost model predicts the times.
  bool tune = false;
};

/// Options of places cuda:N; ignored on the CPU.
struct GpuOptions {
  /// Whether f32 matmuls and convolutions may round their operands to TF32, as with PyTorch's
  /// allow_tf32.
  bool tf32 = false;
  /// Whether to copy the feeds of a step to the GPU while the previous step runs. Needs a second
  /// feed slot. If false, the copy waits for the previous step.
  bool prefetch = true;
  int64_t workspace = 0;  ///< maximum workspace of a library kernel in bytes; 0: 64 MiB
  /// Autotunes the algorithms of library kernels and stores the result in `cache_dir`. If `tune` is
  /// false or `cache_dir` is empty, uses the first working algorithm of the library's heuristics.
  bool tune = true;
};

/// Options that help to find bugs.
struct DebugOptions {
  /// Makes Executor::first_nonfinite() available, and skips the update of a step whose loss is not
  /// finite. If the loss is scaled, this option does not affect updates: an update is skipped only
  /// if gradients are not finite.
  bool check_finite = false;
  /// Checks the memory plan: puts guard bytes between buffers and fills dead buffers with NaN. Also
  /// verifies the program after each pass.
  bool verify_plan = false;
  bool fuse = true;       ///< fuse ops into kernels
  bool libraries = true;  ///< use library kernels for the ops that a library supports
};

/// Options of an Executor.
struct ExecutorOptions {
  int64_t batch = 0;  ///< batch size of the training step that the constructor prepares; 0: none
  /// Sequence length (kLength) of the training step that the constructor prepares, and of the steps
  /// timed for choose_amp; 0 for a program without kLength.
  int64_t length = 0;
  uint64_t seed = 0;  ///< seed of initialisers and random ops
  int threads = 0;    ///< CPU threads; 0: OpenMP's default
  /// Micro-batches per training step. The micro-batches run one after the other in the same memory;
  /// gradients are accumulated, and the optimizer updates once. A batch of fewer samples than
  /// `micro_batches` is split into micro-batches of one sample.
  int64_t micro_batches = 1;
  /// If true, run() throws UserError for a batch whose size or length was not prepared. If false,
  /// run() compiles a step for the new size and length.
  bool strict_shapes = false;
  /// Whether to add the schedule Manual to a program that has no learning-rate schedule, so that
  /// Executor::set_learning_rate() works.
  bool settable_lr = false;
  /// Cache folder of compiled kernels, precomputed weights and autotuning results. Empty: no cache.
  /// $FLUID_KERNEL_CACHE, if set, replaces the folder for kernels and weights.
  std::string cache_dir = {};
  /// Maximum size of the arena in bytes; 0: the memory of the place. When the arena grows, the
  /// variables are copied. The old arena is then freed as soon as no output tensor refers to it.
  int64_t memory_limit = 0;
  PrecisionOptions precision = {};
  DistributedOptions distributed = {};
  CpuOptions cpu = {};
  GpuOptions gpu = {};
  DebugOptions debug = {};
  std::optional<ProfileOptions> profile = {};  ///< the steps that profile() records
  /// Tuning choices of an earlier run; used instead of autotuning.
  std::map<std::string, std::string> tuning_record = {};
  /// Finds the sample that contains a rejected value, so that the error message can name its
  /// location; see Dataset::find_location(). If null, the message gives the index of the sample in
  /// the batch.
  SampleFinder find_sample = {};
};

}  // namespace fluid
