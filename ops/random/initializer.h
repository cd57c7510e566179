#pragma once

#include <optional>
#include <string>

#include "ir/tensor.h"
#include "ops/op_def.h"

namespace fluid {

/// Name of a bool attribute of a `state` op. It marks a state whose value later steps do not read.
/// Checkpoints omit such states.
inline constexpr const char* kScratchAttribute = "scratch";
/// Name of a bool attribute of a `state` op. It marks a state that only predict steps write, such
/// as the key-value cache of a decoder. Checkpoints and parameter files omit such states.
inline constexpr const char* kCacheAttribute = "cache";
/// Names of the attributes of a `state` op that contains one rank's shard of a tensor. kFullShape:
/// the shape of the full tensor. kShardBounds: the index of the first element of each rank's shard,
/// then the number of elements of the tensor.
inline constexpr const char* kFullShape = "whole";
inline constexpr const char* kShardBounds = "cuts";

/// Fan-in and fan-out of a weight (Glorot and Bengio, 2010; He et al., 2015). A matrix has shape
/// [in, out], and a convolution filter has shape [out, in, taps...].
struct Fan {
  int64_t in = 1, out = 1;
};
/// Computes fan-in and fan-out of a weight of rank 2 or more. Throws UserError with location `loc`
/// for other shapes.
Fan calculate_fan(const Shape& shape, const Loc& loc);

/// Records ops in `graph` that compute the initial value of variable `name`, and returns the value.
/// `attrs` selects an initialiser, with its settings in braces:
///   init = "zeros" | "ones" | "constant" {value} | "uniform" {low, high} | "normal" {mean, std}
///        | "xavier_uniform" | "xavier_normal" {gain = 1}
///        | "kaiming_uniform" | "kaiming_normal" {slope = 0, mode = "fan_in" | "fan_out"}
///        | "truncated_normal" {mean = 0, std = 1, low = mean - 2 std, high = mean + 2 std}
///        | "orthogonal" {gain = 1} | "dirac" {groups = 1} | "array" {values}
/// The formulas are PyTorch's. Xavier: std = gain * sqrt(2 / (fan_in + fan_out)). Kaiming: std =
/// sqrt(2 / (1 + slope^2) / fan). The bound of xavier_uniform and kaiming_uniform is sqrt(3) * std.
/// PyTorch's default for linear and convolution layers is kaiming_uniform with slope sqrt(5).
/// Ignores the attributes of ParameterOptions and attributes that compiler passes set. `seed` is an
/// i64 scalar. A random number depends only on the seed, the name and the linear index of the
/// element. Throws UserError naming `loc` for an unknown initialiser, setting or mode.
Value record_initializer(ir::Graph& graph, Value seed, const std::string& name, const Type& type,
                         const Attrs& attrs, const Loc& loc);

/// Returns the values of initialiser "array" in f64; nullopt for every other initialiser.
/// record_initializer() records zeros instead of these values.
std::optional<Tensor> initial_values(const Type& type, const Attrs& attrs);

/// Whether the initialiser that `attrs` selects is "zeros".
bool is_zero_initialized(const Attrs& attrs, const Loc& loc);

/// Checks `attrs` without recording ops. Throws the same UserErrors as record_initializer().
void check_initializer(const std::string& name, const Type& type, const Attrs& attrs,
                       const Loc& loc);

/// Replaces the initialiser of the `param` op by the one that `init` selects. `init` contains only
/// attributes of the initialiser. On an error, throws UserError like record_initializer() and
/// leaves `param` unchanged.
void set_initializer(ir::Op& param, const Attrs& init, const Loc& loc);

/// Type inference of a random op: returns the value of attribute `type`. Throws UserError unless
/// this is a float type and operand 0, the seed, is an i64 scalar.
Type infer_random(const InferCtx& c);

}  // namespace fluid
