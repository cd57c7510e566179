#pragma once

#include <string>

#include "ops/op_def.h"

namespace fluid {

/// An attribute of a `state` beside its initialiser's, true where the state means nothing between
/// steps: no checkpoint holds it.
inline constexpr const char* kScratch = "scratch";
/// Of a `state` that holds one process's part of a tensor: the tensor's extents, and where each
/// process's part of its elements begins, and their number.
inline constexpr const char* kWhole = "whole";
inline constexpr const char* kCuts = "cuts";

/// How many inputs feed one output of a weight, and how many outputs one input feeds. A matrix is
/// [in, out], a filter [out, in, taps...], as in Glorot and Bengio (2010) and He et al. (2015).
struct Fan {
  int64_t in = 1, out = 1;
};
/// Of a shape of rank 2 or more; throws UserError naming `loc` otherwise.
Fan fan_of(const Shape& shape, const Loc& loc);

/// Records in `graph` the initial value of variable `name` and returns it. `attrs` says how:
///   init = "zeros" | "ones" | "constant" {value} | "uniform" {low, high} | "normal" {mean, std}
///        | "xavier_uniform" | "xavier_normal" {gain = 1}
///        | "kaiming_uniform" | "kaiming_normal" {slope = 0, mode = "fan_in" | "fan_out"}
/// with PyTorch's formulas: Xavier's deviation is gain * sqrt(2 / (in + out)), Kaiming's
/// sqrt(2 / (1 + slope^2) / fan); a uniform one has the bound sqrt(3) * deviation. PyTorch's own
/// default of linear and convolution layers is kaiming_uniform with slope sqrt(5). An
/// attribute `trainable` and those of passes are left alone. `seed` is an i64 scalar; the random
/// numbers are keyed by (seed, name, logical index). Throws UserError naming `loc` for an unknown
/// initialiser, setting or mode.
Value record_initializer(ir::Graph& graph, Value seed, const std::string& name, const Type& type,
                         const Attrs& attrs, const Loc& loc);

/// Whether record_initializer() would record zeros.
bool begins_as_zeros(const Attrs& attrs, const Loc& loc);

/// Throws what record_initializer would.
void check_initializer(const std::string& name, const Type& type, const Attrs& attrs,
                       const Loc& loc);

/// The result type of an op that draws numbers: attribute `type`, a float type. Operand 0 must be
/// an i64 scalar.
Type drawn_type(const InferCtx& c);

}  // namespace fluid
