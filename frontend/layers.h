#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "frontend/init.h"
#include "frontend/parameter.h"
#include "ops/functions.h"
#include "ops/nn/same_padding.h"
#include "ops/required.h"

namespace fluid {

/// The activation function at the end of a layer.
enum class Act : uint8_t {
  none,
  relu,
  sigmoid,
  tanh,
  gelu,
  relu6,
  leaky_relu,
  elu,
  selu,
  celu,
  silu,
  mish,
  softplus,
  softsign,
  hard_sigmoid,
  hard_swish,
  log_sigmoid
};
/// Applies an activation function to `x`, with the default attributes of the activation op.
Value activate(Value x, Act act, const Loc& loc = Loc::here());

/// The bias option of a layer. `true` adds a bias parameter, `false` adds none, and a Value is used
/// as the bias.
class Bias {
 public:
  Bias(bool present) : present_(present) {}             // NOLINT: implicit, for `.bias = false`
  Bias(Value given) : present_(true), given_(given) {}  // NOLINT: implicit, for `.bias = b`

  bool present() const { return present_; }
  const std::optional<Value>& given() const { return given_; }

 private:
  bool present_;
  std::optional<Value> given_;
};

/// The padding of a convolution: one number, one number per spatial dimension, two numbers per
/// spatial dimension ({top, left, bottom, right}), or Same::upper or Same::lower.
class Padding {
 public:
  Padding(int value) : given_(value) {}                               // NOLINT: implicit conversion
  Padding(int64_t value) : given_(value) {}                           // NOLINT: implicit conversion
  Padding(std::initializer_list<int64_t> values) : given_(values) {}  // NOLINT: implicit conversion
  Padding(const std::vector<int64_t>& values) : given_(values) {}     // NOLINT: implicit conversion
  Padding(Same same) : same_(same) {}                                 // NOLINT: implicit conversion

  /// Returns the padding in elements. The arguments are used only for Same::upper and Same::lower.
  Ints resolve(Value x, const Ints& kernel, const Ints& stride, const Ints& dilation,
               const Loc& loc) const;
  /// Like resolve(), for a transposed convolution. Returns `output_padding` unchanged, except for
  /// Same::upper and Same::lower, which determine it.
  TransposedPadding resolve_transposed(Value x, const Ints& kernel, const Ints& stride,
                                       const Ints& dilation, const Ints& output_padding,
                                       const Loc& loc) const;

 private:
  Ints given_;
  std::optional<Same> same_;
};

/// Options of a convolution layer. This comment also applies to the other layers.
///
/// Parameters are named after the layer: "conv0.w" and "conv0.b". A layer without a `name` is named
/// after its kind and numbered: conv0, conv1, fc0... The default initialisers are PyTorch's:
/// weights are Kaiming-uniform with negative slope sqrt(5), biases uniform within ±1/sqrt(fan-in).
///
/// `weight`, `bias`, `gamma` and `beta` pass a value that is used instead of a new parameter. If
/// several layers share a parameter, its gradient is the sum of the gradients from all layers.
///
/// Throws UserError when a passed value has the wrong type, or when initialisers or
/// ParameterOptions are set but the layer adds no parameter.
struct Conv {
  Required<int64_t> filters;  ///< output channels
  Required<Ints> kernel;      ///< kernel size: one number, or one per spatial dimension
  Ints stride = 1;
  Padding padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;
  Bias bias = true;
  Act act = Act::none;
  /// Weight [filters, C / groups, ...] supplied by the caller, with x's dtype. If absent, the layer
  /// adds a parameter.
  std::optional<Value> weight = {};
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  double l1 = 0, l2 = 0, max_norm = 0;  ///< weight penalties, norm limit: see ParameterOptions
  std::string name = {};
};
using Conv1d = Conv;
using Conv2d = Conv;
using Conv3d = Conv;
/// Convolution: x [N, C, L] -> [N, filters, L']. Weights are [filters, C / groups, k].
Value conv1d(Value x, const Conv1d& layer, const Loc& loc = Loc::here());
/// Convolution: x [N, C, H, W] -> [N, filters, H', W']. Weights are [filters, C / groups, kh, kw].
Value conv2d(Value x, const Conv2d& layer, const Loc& loc = Loc::here());
/// Convolution: x [N, C, D, H, W] -> [N, filters, D', H', W']. Weights are [filters, C / groups,
/// kd, kh, kw].
Value conv3d(Value x, const Conv3d& layer, const Loc& loc = Loc::here());

/// Options of a transposed convolution layer, like torch.nn.ConvTranspose2d. See Conv.
struct ConvTranspose {
  Required<int64_t> filters;  ///< output channels
  Required<Ints> kernel;      ///< kernel size: one number, or one per spatial dimension
  Ints stride = 1;
  /// Same::upper and Same::lower: the result has extent * stride elements along each spatial
  /// dimension, as with auto_pad in ONNX.
  Padding padding = 0;
  /// Extra size at the end of each spatial dimension of the result, as in PyTorch. Must be 0 with
  /// Same padding.
  Ints output_padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;
  Bias bias = true;
  Act act = Act::none;
  /// Weight [C, filters / groups, ...] supplied by the caller, with x's dtype.
  std::optional<Value> weight = {};
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  double l1 = 0, l2 = 0, max_norm = 0;  ///< weight penalties, norm limit: see ParameterOptions
  std::string name = {};
};
/// Transposed convolution: x [N, C, L] -> [N, filters, L']. Adds the parameters conv_transpose0.w
/// [C, filters / groups, k] and conv_transpose0.b [filters].
Value conv1d_transpose(Value x, const ConvTranspose& layer, const Loc& loc = Loc::here());
/// Like conv1d_transpose() for x [N, C, H, W].
Value conv2d_transpose(Value x, const ConvTranspose& layer, const Loc& loc = Loc::here());
/// Like conv1d_transpose() for x [N, C, D, H, W].
Value conv3d_transpose(Value x, const ConvTranspose& layer, const Loc& loc = Loc::here());

/// Options of a fully connected layer. See Conv for parameter names and initialisers.
struct Linear {
  Required<int64_t> units;  ///< output features
  Bias bias = true;
  Act act = Act::none;
  /// Weight [in, units] supplied by the caller, with x's dtype. If absent, the layer adds a
  /// parameter.
  std::optional<Value> weight = {};
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  double l1 = 0, l2 = 0, max_norm = 0;  ///< weight penalties, norm limit: see ParameterOptions
  std::string name = {};
};
/// Fully connected layer: x [..., in] -> [..., units]. Weights are [in, units].
Value linear(Value x, const Linear& layer, const Loc& loc = Loc::here());

/// Options of dropout.
struct Dropout {
  double p = 0.5;  ///< probability that an element is zeroed, in [0, 1]
};
/// Zeroes random elements and multiplies the other elements by 1 / (1 - p). With p = 1, the result
/// and the gradient of x are zero. In eval and predict steps, dropout() returns x unchanged.
Value dropout(Value x, const Dropout& layer, const Loc& loc = Loc::here());
/// Like dropout(), but zeroes whole channels of [N, C, H, W].
Value dropout2d(Value x, const Dropout& layer, const Loc& loc = Loc::here());

/// Options of stochastic depth.
struct StochasticDepth {
  enum class Mode { row, batch };
  double p = 0.1;         ///< probability that a branch is dropped, in [0, 1]
  Mode mode = Mode::row;  ///< row: drops each sample's branch independently; batch: all or none
};
/// Stochastic depth (Huang et al., "Deep networks with stochastic depth", 2016; drop path), like
/// torchvision.ops.StochasticDepth. Zeroes random samples of x [N, ...], the output of a residual
/// branch, and multiplies the others by 1 / (1 - p). In eval and predict steps, returns x
/// unchanged.
Value stochastic_depth(Value x, const StochasticDepth& layer, const Loc& loc = Loc::here());

/// Options of batch normalisation. See Conv for parameter names.
struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the current batch in the running statistics
  Act act = Act::none;
  /// Scale [C] supplied by the caller: f32 if x is f16 or bf16, else x's dtype. If absent, the
  /// layer adds a parameter.
  std::optional<Value> gamma = {};
  /// Shift [C] supplied by the caller, with gamma's dtype. If absent, the layer adds a parameter.
  std::optional<Value> beta = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Batch normalisation: normalises each channel of x [N, C, ...] over all other dimensions.
/// Training steps use the batch's mean and variance, and update the running statistics. Eval and
/// predict steps use the running statistics. Adds the parameters bn0.gamma and bn0.beta [C], and
/// the buffers bn0.running_mean and bn0.running_var [C]. Parameter files contain the buffers, too.
Value batch_norm(Value x, const BatchNorm& layer = {}, const Loc& loc = Loc::here());

/// Options of layer normalisation. See Conv for parameter names. Scale and bias are f32 if x is f16
/// or bf16; else they have x's dtype.
struct LayerNorm {
  int64_t axis = -1;  ///< first normalised axis; negative: counted from the end
  double eps = 1e-5;
  bool affine = true;  ///< false: the layer has neither scale nor bias
  Bias bias = true;    ///< a bias supplied by the caller has scale's shape
  Act act = Act::none;
  /// Scale supplied by the caller, with the shape of x's dimensions from `axis` to the last. If
  /// absent and `affine` is true, the layer adds a parameter.
  std::optional<Value> scale = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Layer normalisation: normalises x over its dimensions from `axis` on, multiplies by scale and
/// adds bias. Adds the parameters ln0.scale (ones) and ln0.bias (zeros).
Value layer_norm(Value x, const LayerNorm& layer = {}, const Loc& loc = Loc::here());

/// Options of root mean square normalisation. See LayerNorm.
struct RmsNorm {
  int64_t axis = -1;  ///< first normalised axis; negative: counted from the end
  double eps = 1e-5;
  bool affine = true;  ///< false: the layer has no scale
  Act act = Act::none;
  /// Scale supplied by the caller, with the shape of x's dimensions from `axis` to the last. If
  /// absent and `affine` is true, the layer adds a parameter.
  std::optional<Value> scale = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// RMSNorm: divides x by its root mean square over the dimensions from
/// `axis` on and multiplies by scale. Adds the parameter rms0.scale (ones).
Value rms_norm(Value x, const RmsNorm& layer = {}, const Loc& loc = Loc::here());

/// Options of group normalisation. See LayerNorm.
struct GroupNorm {
  Required<int64_t> groups;  ///< number of groups; must divide the number of channels
  double eps = 1e-5;
  bool affine = true;  ///< false: the layer has neither scale nor bias
  Bias bias = true;
  Act act = Act::none;
  /// Scale [C] supplied by the caller. If absent and `affine` is true, the layer adds a parameter.
  std::optional<Value> scale = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Group normalisation: divides the channels of x [N, C, ...] into groups, and normalises each
/// group of each sample. Adds the parameters gn0.scale and gn0.bias [C].
Value group_norm(Value x, const GroupNorm& layer, const Loc& loc = Loc::here());

/// Options of instance normalisation. See LayerNorm.
struct InstanceNorm {
  double eps = 1e-5;
  bool affine = false;  ///< true: the layer has a scale and a bias
  Bias bias = true;     ///< applies only if `affine` is true
  Act act = Act::none;
  /// Scale [C] supplied by the caller. If absent and `affine` is true, the layer adds a parameter.
  std::optional<Value> scale = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Instance normalisation: normalises each channel of each sample of x [N, C, L, ...]. If `affine`,
/// adds the parameters in0.scale and in0.bias [C]. There are no running statistics.
Value instance_norm(Value x, const InstanceNorm& layer = {}, const Loc& loc = Loc::here());

}  // namespace fluid
