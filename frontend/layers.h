#pragma once

#include <optional>
#include <string>

#include "frontend/init.h"
#include "frontend/parameter.h"
#include "ops/functions.h"
#include "ops/required.h"

namespace fluid {

/// The activation at the end of a layer.
enum class Act : uint8_t { none, relu, sigmoid, tanh, gelu };
Value activate(Value x, Act act, const Loc& loc = Loc::here());

/// The bias of a layer: `true` adds one, `false` leaves it out, a Value is the bias.
class Bias {
 public:
  Bias(bool present) : present_(present) {}             // NOLINT: implicit, so that `.bias = false`
  Bias(Value given) : present_(true), given_(given) {}  // NOLINT: or `.bias = b` says it

  bool present() const { return present_; }
  const std::optional<Value>& given() const { return given_; }

 private:
  bool present_;
  std::optional<Value> given_;
};

/// Parameters are named after the layer's scope: "conv0.w" and "conv0.b". A layer without a `name`
/// is named after its kind and numbered in its program: conv0, conv1, fc0...
/// The default initialisers are PyTorch's: weights Kaiming-uniform with slope sqrt(5), biases
/// uniform within 1/sqrt(fan in).
/// `weight`, `bias`, `gamma` and `beta` take a value instead of adding a parameter. A parameter
/// that several layers share gets the sum of their gradients. UserError: the value's type does not
/// fit, or the layer sets an initialiser or options (see ParameterOptions) and adds no parameter
/// for them.
struct Conv2d {
  Required<int64_t> filters;  ///< output channels
  Required<Ints> kernel;      ///< one number, or {height, width}
  Ints stride = 1;
  Ints padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;
  Bias bias = true;
  Act act = Act::none;
  std::optional<Value> weight = {};  ///< [filters, C / groups, kh, kw], of x's dtype
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Convolution: x [N, C, H, W] -> [N, filters, H', W']. Weights are [filters, C / groups, kh, kw].
Value conv2d(Value x, const Conv2d& layer, const Loc& loc = Loc::here());

struct Linear {
  Required<int64_t> units;
  Bias bias = true;
  Act act = Act::none;
  std::optional<Value> weight = {};  ///< [in, units], of x's dtype
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Fully connected layer: x [..., in] -> [..., units]. Weights are [in, units].
Value linear(Value x, const Linear& layer, const Loc& loc = Loc::here());

struct Dropout {
  double p = 0.5;  ///< fraction of elements that are zeroed, in [0, 1]; 1 zeroes the gradient too
};
/// Zeroes random elements and scales the others by 1 / (1 - p). The identity in eval and predict.
Value dropout(Value x, const Dropout& layer, const Loc& loc = Loc::here());
/// Like dropout(), but zeroes whole channels of [N, C, H, W].
Value dropout2d(Value x, const Dropout& layer, const Loc& loc = Loc::here());

struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the current batch in the running statistics
  Act act = Act::none;
  std::optional<Value> gamma = {};  ///< [C], of x's dtype, f32 for halves
  std::optional<Value> beta = {};   ///< like gamma
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Normalises each channel of x [N, C, ...] over all other dims. Training uses the batch's mean and
/// variance and updates the running ones; eval and predict use the running ones. Parameters:
/// bn0.gamma and bn0.beta [C]. States, saved with the parameters: bn0.running_mean and
/// bn0.running_var.
Value batch_norm(Value x, const BatchNorm& layer = {}, const Loc& loc = Loc::here());

}  // namespace fluid
