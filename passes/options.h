#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// The purpose for which the recorded program is compiled.
enum class Mode : uint8_t {
  train,    ///< forward, backward, update
  eval,     ///< computes all outputs; dropout and batch norm in eval mode
  predict,  ///< like eval, but only for the outputs that need no feed outside Options::feeds
  init,     ///< the startup program, which initialises the variables
};

/// Which micro-batch of a training step the program computes. With gradient accumulation, a batch
/// is split into micro-batches that run one after the other.
enum class MicroBatchKind : uint8_t {
  whole,   ///< no gradient accumulation: the whole step
  first,   ///< the first micro-batch: forward and backward; initialises the accumulated gradients
  middle,  ///< a micro-batch between the first and the last: adds to the accumulated gradients
  last,    ///< the last micro-batch: adds to the accumulated gradients and updates the parameters
  empty,   ///< for a rank without samples: contributes zero gradients and updates the parameters
};

/// Settings of loss scaling for f16 gradients. The defaults are those of PyTorch's GradScaler,
/// except `floor` and `ceiling`, which GradScaler lacks.
struct LossScale {
  double initial = 65536;
  /// Factor applied to the scale after `interval` consecutive steps with finite gradients.
  double growth = 2;
  double backoff = 0.5;  ///< factor applied to the scale after a step with non-finite gradients
  int64_t interval = 2000;
  double floor = 1;           ///< minimum loss scale
  double ceiling = 16777216;  ///< maximum loss scale
  bool dynamic = true;        ///< false: the scale stays at `initial`
};

/// Level of automatic mixed precision.
enum class AmpLevel : uint8_t {
  o1,  ///< casts around ops; parameters in f32
  o2,  ///< like o1, but with half-precision weights beside f32 master weights
};

/// Automatic mixed precision: compute-bound ops in half precision, range-sensitive ops in f32.
struct AmpOptions {
  DType dtype = DType::bf16;  ///< the half-precision dtype: bf16 or f16
  LossScale loss_scale = {};  ///< used only with f16, because bf16 has the range of f32
  AmpLevel level = AmpLevel::o1;
  /// Names of ops and layers that run in f32 (`in_f32`) or in half precision (`in_half`) instead of
  /// the default precision of the op. A name is an op ("softmax") or a layer ("fc0"; "encoder"
  /// includes the layers inside it). A layer takes precedence over an op, and an inner layer over
  /// an outer layer. A NoAmp scope takes precedence over both lists.
  std::vector<std::string> in_f32 = {};
  std::vector<std::string> in_half = {};
  bool has_half_weights() const { return level == AmpLevel::o2; }
  bool scales_loss() const { return dtype == DType::f16; }
};

/// How gradients are grouped into buckets for collectives. The default sizes are PyTorch DDP's.
struct Buckets {
  /// Size in bytes of the first bucket: small, so that its collective starts early.
  int64_t first_bytes = int64_t{1} << 20;
  /// Size in bytes of each bucket after the first.
  int64_t bytes = int64_t{25} << 20;
  /// Dtype of the collectives, f16 or bf16; nullopt: the dtype of the gradients.
  std::optional<DType> dtype = {};
};

/// Options of the compiler passes. The result of a pass depends only on the program, these options
/// and the Target.
struct Options {
  Mode mode = Mode::train;
  std::string recipe = {};        ///< name of the recipe to train; empty: the only recipe
  int64_t batch = 1;              ///< samples per step; > 0
  int64_t sequence_length = 1;    ///< the value of kLength; > 0; may be unused
  std::optional<DType> dtype;     ///< f64: all float tensors become f64; nullopt: no conversion
  std::optional<AmpOptions> amp;  ///< automatic mixed precision; nullopt: off
  MicroBatchKind micro_batch = MicroBatchKind::whole;
  /// Whether to scale the loss and outputs of a micro-batch or shard. Their sums over all
  /// micro-batches or shards are then the values of the whole batch.
  bool scale_partial_loss = false;
  /// Number of samples of the global batch; 0: `batch` times `world`. Affects only programs with
  /// sparse parameters, whose gradients hold the rows of the whole global batch.
  int64_t global_batch = 0;
  int64_t world = 1;               ///< number of data-parallel processes
  bool force_collectives = false;  ///< whether to run collectives even if `world` is 1
  bool uses_collectives() const { return world > 1 || force_collectives; }
  int64_t global_samples() const { return global_batch > 0 ? global_batch : batch * world; }
  /// Whether the program processes only a micro-batch or a shard, not the whole batch.
  bool processes_part_of_batch() const {
    return micro_batch != MicroBatchKind::whole || uses_collectives();
  }
  /// Rank of this process. Affects the compiled program only if `shard_optimizer` is true.
  int64_t rank = 0;
  bool shard_optimizer = false;  ///< whether to shard optimizer states over the ranks (ZeRO-1)
  Buckets buckets = {};
  bool sync_bn = false;  ///< whether batch_norm uses the statistics of all processes
  /// Names of the feeds that the user supplies; empty: all feeds. Used by Mode::predict.
  std::set<std::string> feeds;
  /// Names of the variables to initialise; empty: all variables. Used by Mode::init.
  std::set<std::string> init_variables = {};
  bool fuse = true;           ///< whether to fuse ops into kernels
  bool use_libraries = true;  ///< whether to use library kernels where they are faster
  bool tf32 = false;  ///< whether GPU libraries may compute f32 matmuls and convolutions in TF32
  /// Whether to skip the update of a step whose loss is not finite (--check-finite).
  bool check_finite = false;
  /// Debugging option (--verify-plan): puts guard bytes between the ranges of the arena and poisons
  /// dead ranges.
  bool guard_plan = false;
  bool verify_each = true;  ///< whether to verify after each pass, not only after the last
};

}  // namespace fluid
