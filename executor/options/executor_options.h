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

struct ExecutorOptions {
  int64_t batch = 0;                ///< samples of the first prepared step; 0: prepare() says later
  uint64_t seed = 0;                ///< of initialisers and random ops
  int threads = 0;                  ///< 0: as many as OpenMP would use
  std::optional<DType> dtype = {};  ///< f64: the whole program in f64
  std::optional<AmpOptions> amp = {};  ///< mixed precision
  /// Whether `amp`, bf16 where it is absent, is better than f32, and at which level, is found by
  /// timing steps of `batch` samples: rank 0 does it for all.
  bool choose_amp = false;
  std::optional<Precision> chosen_amp = {};  ///< what rank 0 chose in an earlier run, which holds
  /// Slices that a training step cuts its batch into, one after the other through the same memory:
  /// activations are those of a slice, gradients add up, and the optimizer comes once. Fewer where
  /// the batch has fewer samples.
  int64_t micro_batches = 1;
  /// The processes that train together, each on its part of every batch: run() is then a call of
  /// all of them, and gives the losses and metrics of the whole batch. Parameters start as rank
  /// 0's.
  World world = {};
  /// One process does all that several would: what it exchanges goes through the place's means for
  /// that, as NCCL, and comes back. To try these where there is one GPU.
  bool force_collectives = false;
  /// After it a rank that is late is given up. On GPUs a step has so long in all.
  std::chrono::milliseconds comm_timeout{60'000};
  /// The same where ranks come at different times, in the first step, as others still compile, and
  /// where one saves for all. One that is stopped is given up after comm_timeout there too.
  std::chrono::milliseconds first_timeout{300'000};
  Buckets buckets = {};  ///< of gradients on their way
  bool sync_bn = false;  ///< batch_norm takes the statistics of the samples of all ranks
  /// 1: each process keeps and updates its part of the optimizer's state alone, then gives the
  /// others the parameters (ZeRO-1). parameter("fc0.w.m") is that part then, a vector, and
  /// snapshot() a call of all ranks.
  int zero = 0;
  /// A batch of a size that was not prepared is a UserError; by default its step is compiled when
  /// it comes.
  bool strict_shapes = false;
  /// For first_nonfinite(): a step whose loss is not finite is not applied. Where the loss is
  /// scaled the gradients alone decide, as without, and they may be finite all the same.
  bool check_finite = false;
  bool fuse = true;
  bool libraries = true;  ///< let library kernels take the ops they are better at
  /// On a GPU: products and convolutions in f32 may round their operands to TF32, which has 10
  /// bits, as PyTorch's do where allow_tf32 is set.
  bool tf32 = false;
  /// On a GPU: the feeds of a step are copied while the step before runs, into a second slot for
  /// feeds. Without it a new batch waits for the step before: it costs nothing where one batch
  /// stays.
  bool prefetch = true;
  int64_t workspace = 0;  ///< bytes that a GPU's library kernels may have; 0: 64 MiB
  /// On a GPU: choose among a library's algorithms by timing them, once: what was chosen is kept in
  /// `cache_dir`. Else, and where there is no such directory, its first choices are taken.
  bool tune = true;
  std::map<std::string, std::string> decisions = {};  ///< Snapshot's, of a run that goes on
  /// Guards between memory ranges; dead ranges filled with NaN; the program verified after each
  /// pass.
  bool verify_plan = false;
  std::string cache_dir = {};                  ///< of compiled kernels; empty: none
  std::optional<ProfileOptions> profile = {};  ///< the steps whose times profile() gives
  /// Names the sample of a value that a step rejects, as Dataset::place_of() does; without it the
  /// message gives the sample's index in the batch.
  SampleFinder find_sample = {};
  /// Bytes the arena may take; 0: as much as the machine has. Where a step makes it grow, the old
  /// arena is there besides until the variables have moved and no output tensor from it is kept.
  int64_t memory_limit = 0;
};

}  // namespace fluid
