#pragma once

#include <optional>
#include <string>

#include "frontend/init.h"
#include "ops/functions.h"

namespace fluid {

/// The activation at the end of a layer.
enum class Act : uint8_t { none, relu, sigmoid, tanh, gelu };
Value activate(Value x, Act act, const Loc& loc = Loc::here());

/// Parameters of a layer are named after its scope: "conv0.w" and "conv0.b". A layer without a
/// `name` is called after its kind and counted in its program: conv0, conv1, fc0...
/// Without initialisers a layer starts as PyTorch's does: weights Kaiming-uniform with slope sqrt
/// 5, biases uniform within 1/sqrt(fan in).
struct Conv2d {
  int64_t filters = 0;  ///< output channels
  Ints kernel = {};     ///< one number, or {height, width}
  Ints stride = 1;
  Ints padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Act act = Act::none;
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  std::string name = {};
};
/// x [N, C, H, W] -> [N, filters, H', W']. Weights are [filters, C / groups, kh, kw].
Value conv2d(Value x, const Conv2d& layer, const Loc& loc = Loc::here());

struct Linear {
  int64_t units = 0;
  bool bias = true;
  Act act = Act::none;
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  std::string name = {};
};
/// x [..., in] -> [..., units]. Weights are [in, units].
Value linear(Value x, const Linear& layer, const Loc& loc = Loc::here());

struct Dropout {
  double p = 0.5;  ///< the share that is zeroed, in [0, 1]; with 1 all is 0, and the gradient too
};
/// Zeroes elements at random and scales the others by 1 / (1 - p); nothing in eval and predict.
Value dropout(Value x, const Dropout& layer, const Loc& loc = Loc::here());
/// As dropout, for whole channels of [N, C, H, W].
Value dropout2d(Value x, const Dropout& layer, const Loc& loc = Loc::here());

struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;  ///< the weight of a new batch in the running statistics
  Act act = Act::none;
  std::string name = {};
};
/// x [N, C, ...], each channel normalised over the others: in training by the batch's mean and
/// variance, which move the running ones; in eval and predict by those. Parameters bn0.gamma and
/// bn0.beta [C]; states bn0.running_mean and bn0.running_var, which are saved with them.
Value batch_norm(Value x, const BatchNorm& layer = {}, const Loc& loc = Loc::here());

/// A trainable variable of the graph that is being recorded; the name gets the current scope.
Value parameter(ir::Graph& graph, const std::string& name, const Type& type, const Init& init,
                const Loc& loc = Loc::here());

}  // namespace fluid
