#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// What an executable does with the recorded program.
enum class Mode : uint8_t {
  train,    ///< forward, backward, update
  eval,     ///< all outputs; inference mode of dropout and batch norm
  predict,  ///< only the outputs that the given feeds determine
  init,     ///< the startup graph: fills the variables
};

/// Which part of a training step an executable runs, where the batch is cut into slices that go
/// through one after the other (micro-batches).
enum class Slice : uint8_t {
  whole,   ///< all of it
  first,   ///< forward and backward, starts the sums of gradients
  middle,  ///< adds to them
  last,    ///< adds to them and updates
  empty,   ///< no sample of a batch that others have: updates with zero gradients of its own
};

/// How a loss is scaled so that its gradients fit f16. The defaults are those of PyTorch's
/// GradScaler, but for floor and ceiling, of which it has none.
struct LossScale {
  double initial = 65536;
  double growth = 2;     ///< after `interval` steps in a row whose gradients are all finite
  double backoff = 0.5;  ///< after one whose gradients are not
  int64_t interval = 2000;
  double floor = 1;
  double ceiling = 16777216;
  bool dynamic = true;  ///< false: it stays at `initial`
};

/// How far automatic mixed precision goes.
enum class AmpLevel : uint8_t {
  o1,  ///< casts around ops; parameters in f32
  o2,  ///< as o1, with parameters kept in half besides their f32 masters
};

/// Automatic mixed precision: compute-bound ops in half precision, range-sensitive ones in f32.
struct AmpOptions {
  DType dtype = DType::bf16;  ///< or f16
  LossScale loss_scale = {};  ///< with f16; bf16 has the range of f32
  AmpLevel level = AmpLevel::o1;
  /// What runs in f32, or in half, whatever its class: names of ops ("softmax"), and of layers
  /// ("fc0"; "encoder", for all within). A layer's name goes before an op's, an inner layer's
  /// before an outer one's, and a scope of NoAmp before all.
  std::vector<std::string> in_f32 = {};
  std::vector<std::string> in_half = {};
  bool keeps_halves() const { return level == AmpLevel::o2; }
  bool scales_loss() const { return dtype == DType::f16; }
};

/// How gradients are put together for messages between processes.
struct Buckets {
  int64_t first_bytes = int64_t{1} << 20;  ///< the first leaves early
  int64_t bytes = int64_t{25} << 20;       ///< PyTorch's, as the first
  std::optional<DType> dtype = {};         ///< f16 or bf16: gradients travel in half precision
};

/// Everything a pass may depend on besides the program and the target.
struct Options {
  Mode mode = Mode::train;
  int64_t batch = 1;              ///< samples a step; > 0
  std::optional<DType> dtype;     ///< f64: the whole program in f64
  std::optional<AmpOptions> amp;  ///< mixed precision
  Slice slice = Slice::whole;
  /// Gradients and outputs are sums over parts of a batch, weighted by their samples.
  bool weighted = false;
  int64_t world = 1;               ///< processes that add up their gradients
  bool force_collectives = false;  ///< one process does as if it were several
  bool exchanges() const { return world > 1 || force_collectives; }
  /// Which of them this is; only where each keeps a share of the optimizer's state (ZeRO-1) does
  /// its program depend on it.
  int64_t rank = 0;
  bool shard_optimizer = false;
  Buckets buckets = {};
  bool sync_bn = false;             ///< batch_norm's statistics are those of all processes
  std::set<std::string> feeds;      ///< predict: the feeds that will be given; empty: all
  std::set<std::string> fill = {};  ///< init: the variables that are filled; empty: all
  bool fuse = true;
  bool libraries = true;      ///< let library kernels claim ops
  bool tf32 = false;          ///< let a GPU's libraries round the operands of f32 products to TF32
  bool check_finite = false;  ///< --check-finite: see decides_by_loss()
  bool guard_plan = false;    ///< --verify-plan: guards between ranges, dead ranges poisoned
  bool verify_each = true;    ///< verify the program after every pass, not after the last alone
};

}  // namespace fluid
