#pragma once

// Random numbers that differ in each training step. They depend on the executor's seed, the step,
// the recorded op, the sample's index in the global batch, and the element's index in the sample.
// They do not depend on how the batch is divided into micro-batches, or on the ranks or devices
// used. Eval and predict steps draw the same numbers until the next training step.

#include <optional>

#include "ir/graph.h"

namespace fluid {

/// Returns the random number generator state that all random ops of a graph share. Adds the state
/// if the graph has none.
Value random_state(ir::Graph& graph, const Loc& loc);

/// Options of random_uniform().
struct RandomUniform {
  double low = 0, high = 1;       ///< the numbers are in [low, high)
  std::optional<Type> type = {};  ///< a float type; absent: the type of `like`
};
/// Draws uniform numbers, like torch.rand_like. Throws UserError if the type is not a float type.
Value random_uniform(Value like, const RandomUniform& options = {}, const Loc& loc = Loc::here());

/// Options of random_normal().
struct RandomNormal {
  double mean = 0, std = 1;       ///< std >= 0
  std::optional<Type> type = {};  ///< a float type; absent: the type of `like`
};
/// Draws normally distributed numbers, like torch.randn_like. Throws UserError if the type is not a
/// float type.
Value random_normal(Value like, const RandomNormal& options = {}, const Loc& loc = Loc::here());

/// Samples from a Bernoulli distribution, like torch.bernoulli: each element is 1 with probability
/// p[i], else 0. p is a float tensor. The op is not differentiable.
Value bernoulli(Value p, const Loc& loc = Loc::here());

/// Samples a class from softmax(logits) along the last axis: float logits [..., C] -> i64 [...].
Value categorical(Value logits, const Loc& loc = Loc::here());

}  // namespace fluid
