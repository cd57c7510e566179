#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// Bool attribute of a `state`: the state has no meaning between steps, so checkpoints omit it.
inline constexpr const char* kScratch = "scratch";
/// Attributes of a `state` that holds one process's shard of a tensor. kWhole: the tensor's shape.
/// kCuts: the first element of each process's shard, then the number of elements.
inline constexpr const char* kWhole = "whole";
inline constexpr const char* kCuts = "cuts";

/// Inputs per output of a weight, and outputs per input. A matrix is [in, out], a filter [out, in,
/// taps...], as in Glorot and Bengio (2010) and He et al. (2015).
struct Fan {
  int64_t in = 1, out = 1;
};
/// Computes the fan of a weight of rank 2 or more. Throws UserError naming `loc` for other shapes.
Fan fan_of(const Shape& shape, const Loc& loc);

/// Records the initial value of variable `name` in `graph` and returns it. `attrs` selects it:
///   init = "zeros" | "ones" | "constant" {value} | "uniform" {low, high} | "normal" {mean, std}
///        | "xavier_uniform" | "xavier_normal" {gain = 1}
///        | "kaiming_uniform" | "kaiming_normal" {slope = 0, mode = "fan_in" | "fan_out"}
/// Formulas are PyTorch's. Xavier: std = gain * sqrt(2 / (in + out)). Kaiming: std =
/// sqrt(2 / (1 + slope^2) / fan). Uniform initialisers have the bound sqrt(3) * std. PyTorch's
/// default for linear and convolution layers is kaiming_uniform with slope sqrt(5). Ignores the
/// attributes of ParameterOptions and attributes that passes set. `seed` is an i64 scalar. Random
/// numbers are keyed by (seed, name, logical index). Throws UserError naming `loc` for an unknown
/// initialiser, setting or mode.
Value record_initializer(ir::Graph& graph, Value seed, const std::string& name, const Type& type,
                         const Attrs& attrs, const Loc& loc);

/// Whether record_initializer() records zeros for these attributes.
bool is_zero_initialized(const Attrs& attrs, const Loc& loc);

/// Throws the errors of record_initializer(), without recording anything.
void check_initializer(const std::string& name, const Type& type, const Attrs& attrs,
                       const Loc& loc);

/// Result type of a random op: attribute `type`. Fails unless it is a float type and operand 0, the
/// seed, is an i64 scalar.
Type random_result_type(const InferCtx& c);

}  // namespace fluid
