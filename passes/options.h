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
  eval,     ///< all outputs; inference mode of dropout and batch norm
  predict,  ///< only the outputs that the given feeds determine
  init,     ///< the startup graph: initialises the variables
};

/// Part of a training step that an executable runs. A batch may be split into micro-batches that
/// run one after the other.
enum class MicroBatchKind : uint8_t {
  whole,   ///< the whole step
  first,   ///< first micro-batch: forward, backward; starts the gradient sums
  middle,  ///< a later micro-batch: adds to the gradient sums
  last,    ///< last micro-batch: adds to the gradient sums and updates
  empty,   ///< rank without samples: updates with zero gradients of its own
};

/// Settings of loss scaling for f16 gradients. The defaults follow PyTorch's GradScaler, which has
/// no floor and no ceiling.
struct LossScale {
  double initial = 65536;
  double growth = 2;     ///< after `interval` consecutive steps with finite gradients
  double backoff = 0.5;  ///< after a step with non-finite gradients
  int64_t interval = 2000;
  double floor = 1;
  double ceiling = 16777216;
  bool dynamic = true;  ///< false: the scale stays at `initial`
};

/// Level of automatic mixed precision.
enum class AmpLevel : uint8_t {
  o1,  ///< casts around ops; parameters in f32
  o2,  ///< o1 with half-precision weights beside f32 master weights
};

/// Automatic mixed precision: compute-bound ops in half precision, range-sensitive ops in f32.
struct AmpOptions {
  DType dtype = DType::bf16;  ///< or f16
  LossScale loss_scale = {};  ///< only for f16; bf16 has the range of f32
  AmpLevel level = AmpLevel::o1;
  /// Ops and layers that run in f32, or in half, regardless of their class. A name is an op
  /// ("softmax") or a layer ("fc0", or "encoder" for all layers inside). A layer's name takes
  /// precedence over an op's name, an inner layer over an outer layer, NoAmp over both lists.
  std::vector<std::string> in_f32 = {};
  std::vector<std::string> in_half = {};
  bool has_half_weights() const { return level == AmpLevel::o2; }
  bool scales_loss() const { return dtype == DType::f16; }
};

/// How gradients are grouped into buckets for collectives.
struct Buckets {
  int64_t first_bytes = int64_t{1} << 20;  ///< small, so that it starts early
  int64_t bytes = int64_t{25} << 20;       ///< both sizes are PyTorch's
  std::optional<DType> dtype = {};         ///< f16 or bf16: gradients are reduced in half precision
};

/// Everything on which a pass may depend, besides the program and the target.
struct Options {
  Mode mode = Mode::train;
  int64_t batch = 1;              ///< samples per step; > 0
  std::optional<DType> dtype;     ///< f64: the whole program runs in f64
  std::optional<AmpOptions> amp;  ///< mixed precision
  MicroBatchKind slice = MicroBatchKind::whole;
  /// Gradients and outputs are sums over parts of a batch, weighted by their numbers of samples.
  bool weighted = false;
  int64_t world = 1;               ///< number of processes that train together
  bool force_collectives = false;  ///< run the collectives in a world of one process
  bool exchanges() const { return world > 1 || force_collectives; }
  /// Rank of this process. The program depends on it only with `shard_optimizer`.
  int64_t rank = 0;
  bool shard_optimizer = false;
  Buckets buckets = {};
  bool sync_bn = false;             ///< batch_norm uses the statistics of all processes
  std::set<std::string> feeds;      ///< predict: the feeds that will be given; empty: all
  std::set<std::string> fill = {};  ///< init: the variables to initialise; empty: all
  bool fuse = true;
  bool libraries = true;      ///< let library kernels claim ops
  bool tf32 = false;          ///< let GPU libraries round operands of f32 products to TF32
  bool check_finite = false;  ///< --check-finite: see decides_by_loss()
  bool guard_plan = false;    ///< --verify-plan: guards between ranges, dead ranges poisoned
  bool verify_each = true;    ///< verify the program after every pass; false: after the last pass
};

}  // namespace fluid
