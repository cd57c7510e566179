#include "frontend/layers.h"

#include <type_traits>

#include "frontend/layer_parameters.h"
#include "frontend/random.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

/// Returns the kernel size of a layer along each of `dims` spatial dimensions.
Ints kernel_size(const Ints& kernel, size_t dims, const char* op, const Loc& loc) {
  const std::string accepted = dims == 1 ? "1" : "1 or " + std::to_string(dims);
  require(kernel.size() == 1 || kernel.size() == dims, loc,
          std::string(op) + ": kernel has " + std::to_string(kernel.size()) + " numbers, not " +
              accepted);
  Ints sizes = kernel;
  sizes.resize(dims, kernel[0]);
  return sizes;
}

/// Returns the attributes of a convolution op from the options of the layer.
Attrs conv_layer_attrs(Value x, const Conv& layer, const Loc& loc) {
  return {{"stride", layer.stride},
          {"padding", layer.padding.resolve(x, *layer.kernel, layer.stride, layer.dilation, loc)},
          {"dilation", layer.dilation},
          {"groups", layer.groups}};
}

Attrs conv_layer_attrs(Value x, const ConvTranspose& layer, const Loc& loc) {
  const TransposedPadding resolved = layer.padding.resolve_transposed(
      x, *layer.kernel, layer.stride, layer.dilation, layer.output_padding, loc);
  return {{"stride", layer.stride},
          {"padding", resolved.padding},
          {"output_padding", resolved.output_padding},
          {"dilation", layer.dilation},
          {"groups", layer.groups}};
}

/// Records a layer that applies the convolution op `op` to x. `shape_text`: the required shape of
/// x, such as "[N, C, H, W]", for error messages.
template <class Layer>
Value convolution(Value x, const Layer& layer, const char* op, const char* shape_text, size_t dims,
                  const Loc& loc) {
  constexpr bool kTransposed = std::is_same_v<Layer, ConvTranspose>;
  ir::Graph& graph = input_graph(x, op, loc);
  const Ints kernel = kernel_size(*layer.kernel, dims, op, loc);
  const std::string subject = std::string(op) + ": ";
  const int64_t filters = *layer.filters;
  require(filters > 0, loc, subject + "filters must be positive, not " + std::to_string(filters));
  require_float_type(x.type(), x.shape().size() == dims + 2 && x.shape()[1].is_constant(),
                     subject + "the input", shape_text, loc);
  const int64_t channels = x.shape()[1].size;
  require(layer.groups > 0 && channels % layer.groups == 0 && filters % layer.groups == 0, loc,
          subject + std::to_string(layer.groups) + " groups do not divide " +
              std::to_string(channels) + " input channels and " + std::to_string(filters) +
              " filters");
  ir::ScopedRecording as(
      graph, layer_recording(graph, kTransposed ? "conv_transpose" : "conv", layer.name));
  Shape shape = kTransposed ? Shape{channels, filters / layer.groups}
                            : Shape{filters, channels / layer.groups};
  int64_t fan_in = shape[1].size;
  for (const int64_t taps : kernel) {
    shape.emplace_back(taps);
    fan_in *= taps;
  }
  LayerParameters parameters(graph, op, layer, loc);
  const Value w = parameters.get("weight", "w", Type{x.dtype(), shape, {}}, layer.weight,
                                 layer.weight_init, default_weight());
  Value y = record(graph, op, {x, w}, conv_layer_attrs(x, layer, loc), loc)[0];
  if (layer.bias.present()) {
    const Value b = parameters.get("bias", "b", Type{x.dtype(), {filters}, {}}, layer.bias.given(),
                                   layer.bias_init, default_bias(fan_in));
    Type per_channel{x.dtype(), {filters}, {}};
    per_channel.shape.resize(dims + 1, Dim(1));
    y = add(y, reshape(b, {.to = per_channel}, loc), loc);
  }
  parameters.check_options();
  return activate(y, layer.act, loc);
}

/// Records ops that update the running statistics `mean` and `var` at the end of a training step.
/// `normalised` holds the results of batch_norm: the output, the batch mean and the batch variance.
void update_running_statistics(Value x, const Values& normalised, Value mean, Value var,
                               double momentum, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::ScopedRecording as(graph, {ir::Role::optimize, loc, graph.recording.scope, ""});
  // The type of one channel of x, [N, 1, ...]. bn_update needs the number of elements per channel.
  Type channel{mean.dtype(), x.shape(), {}};
  channel.shape[1] = 1;
  const Value count = internal::numel(graph, {.of = channel}, loc);
  const Values moved = record(graph, "bn_update", {mean, var, normalised[1], normalised[2], count},
                              {{"momentum", momentum}}, loc);
  record_store(graph, mean.op()->symbol, moved[0], loc);
  record_store(graph, var.op()->symbol, moved[1], loc);
}

/// Returns the operands of a normalisation op: x, then the layer's scale and bias, both of type
/// `type`.
template <class Layer>
Values normalization_operands(Value x, const char* kind, const Layer& layer, const Type& type,
                              const Loc& loc) {
  LayerParameters parameters(*x.op()->graph(), kind, layer, loc);
  Values operands = {x};
  bool given = layer.scale.has_value();
  if constexpr (requires { layer.bias; }) given |= layer.bias.given().has_value();
  require(layer.affine || !given, loc,
          std::string(kind) + ": affine is false, so a given scale or bias has no effect");
  if (layer.affine) {
    operands.push_back(parameters.get("scale", "scale", type, layer.scale, {}, Init::constant(1)));
    if constexpr (requires { layer.bias; }) {
      if (layer.bias.present()) {
        operands.push_back(
            parameters.get("bias", "bias", type, layer.bias.given(), {}, Init::zeros()));
      }
    }
  }
  parameters.check_options();
  return operands;
}

/// Records a layer that applies the normalisation op `op`. `scope`: prefix of the names of unnamed
/// layers. `scale`: type of the layer's scale and bias.
template <class Layer>
Value normalization(Value x, const char* op, const char* scope, const Layer& layer,
                    const Type& scale, const Attrs& attrs, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::ScopedRecording as(graph, layer_recording(graph, scope, layer.name));
  const Values operands = normalization_operands(x, op, layer, scale, loc);
  return activate(record(graph, op, operands, attrs, loc)[0], layer.act, loc);
}

/// Returns the type of a scale that covers the dimensions of x from `axis` to the last.
Type trailing_scale(Value x, const char* kind, int64_t axis, const Loc& loc) {
  const int64_t rank = x.shape().rank(), first = axis < 0 ? axis + rank : axis;
  const bool exists = first >= 0 && first < rank;
  const Shape shape = exists ? Shape(x.shape().begin() + first, x.shape().end()) : Shape();
  require_float_type(x.type(), exists && shape.is_constant(), std::string(kind) + ": the input",
                     "tensor with fixed extents from axis " + std::to_string(axis) + " on", loc);
  return {compute_dtype(x.dtype()), shape, {}};
}

/// Returns the type of a scale with one element per channel of x. `shape_text`: the required shape
/// of x, such as "[N, C, ...]", for error messages.
Type channel_scale(Value x, const char* kind, int64_t min_rank, const char* shape_text,
                   const Loc& loc) {
  require_float_type(x.type(), x.shape().rank() >= min_rank && x.shape()[1].is_constant(),
                     std::string(kind) + ": the input", shape_text, loc);
  return {compute_dtype(x.dtype()), {x.shape()[1]}, {}};
}

}  // namespace

Value activate(Value x, Act act, const Loc& loc) {
  switch (act) {
    case Act::none:
      return x;
    case Act::relu:
      return relu(x, loc);
    case Act::sigmoid:
      return sigmoid(x, loc);
    case Act::tanh:
      return tanh(x, loc);
    case Act::gelu:
      return gelu(x, {}, loc);
    case Act::relu6:
      return relu6(x, loc);
    case Act::leaky_relu:
      return leaky_relu(x, {}, loc);
    case Act::elu:
      return elu(x, {}, loc);
    case Act::selu:
      return selu(x, loc);
    case Act::celu:
      return celu(x, {}, loc);
    case Act::silu:
      return silu(x, loc);
    case Act::mish:
      return mish(x, loc);
    case Act::softplus:
      return softplus(x, {}, loc);
    case Act::softsign:
      return softsign(x, loc);
    case Act::hard_sigmoid:
      return hard_sigmoid(x, {}, loc);
    case Act::hard_swish:
      return hard_swish(x, loc);
    case Act::log_sigmoid:
      return log_sigmoid(x, loc);
  }
  throw InternalError("no such activation");
}

Ints Padding::resolve(Value x, const Ints& kernel, const Ints& stride, const Ints& dilation,
                      const Loc& loc) const {
  if (!same_) return given_;
  return same_padding(x, {.kernel = kernel, .stride = stride, .dilation = dilation, .same = *same_},
                      loc);
}

TransposedPadding Padding::resolve_transposed(Value x, const Ints& kernel, const Ints& stride,
                                              const Ints& dilation, const Ints& output_padding,
                                              const Loc& loc) const {
  if (!same_) return {given_, output_padding};
  for (const int64_t added : output_padding) {
    require(added == 0, loc,
            "conv_transpose: Same padding determines output_padding; it must be 0, not " +
                std::to_string(added));
  }
  return same_transposed_padding(
      x, {.kernel = kernel, .stride = stride, .dilation = dilation, .same = *same_}, loc);
}

Value conv1d(Value x, const Conv1d& layer, const Loc& loc) {
  return convolution(x, layer, "conv1d", "[N, C, L]", 1, loc);
}

Value conv2d(Value x, const Conv2d& layer, const Loc& loc) {
  return convolution(x, layer, "conv2d", "[N, C, H, W]", 2, loc);
}

Value conv3d(Value x, const Conv3d& layer, const Loc& loc) {
  return convolution(x, layer, "conv3d", "[N, C, D, H, W]", 3, loc);
}

Value conv1d_transpose(Value x, const ConvTranspose& layer, const Loc& loc) {
  return convolution(x, layer, "conv1d_transpose", "[N, C, L]", 1, loc);
}

Value conv2d_transpose(Value x, const ConvTranspose& layer, const Loc& loc) {
  return convolution(x, layer, "conv2d_transpose", "[N, C, H, W]", 2, loc);
}

Value conv3d_transpose(Value x, const ConvTranspose& layer, const Loc& loc) {
  return convolution(x, layer, "conv3d_transpose", "[N, C, D, H, W]", 3, loc);
}

Value linear(Value x, const Linear& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "linear", loc);
  const int64_t units = *layer.units;
  require(units > 0, loc, "linear: units must be positive, not " + std::to_string(units));
  require_float_type(x.type(), x.shape().rank() >= 2 && x.shape().back().is_constant(),
                     "linear: the input", "[..., features]", loc);
  ir::ScopedRecording as(graph, layer_recording(graph, "fc", layer.name));
  const int64_t in = x.shape().back().size;
  LayerParameters parameters(graph, "linear", layer, loc);
  const Value w = parameters.get("weight", "w", Type{x.dtype(), {in, units}, {}}, layer.weight,
                                 layer.weight_init, default_weight());
  Value y = matmul(x, w, {}, loc);
  if (layer.bias.present()) {
    const Value b = parameters.get("bias", "b", Type{x.dtype(), {units}, {}}, layer.bias.given(),
                                   layer.bias_init, default_bias(in));
    y = add(y, b, loc);
  }
  parameters.check_options();
  return activate(y, layer.act, loc);
}

Value batch_norm(Value x, const BatchNorm& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "batch_norm", loc);
  const Type statistics = channel_scale(x, "batch_norm", 2, "[N, C, ...]", loc);
  ir::ScopedRecording as(graph, layer_recording(graph, "bn", layer.name));
  LayerParameters parameters(graph, "batch_norm", layer, loc);
  const Value gamma =
      parameters.get("gamma", "gamma", statistics, layer.gamma, {}, Init::constant(1));
  const Value beta = parameters.get("beta", "beta", statistics, layer.beta, {}, Init::zeros());
  parameters.check_options();
  const std::string mean_name = scoped_name(graph.recording.scope, "running_mean");
  const std::string var_name = scoped_name(graph.recording.scope, "running_var");
  const Value mean =
      record_source(graph, "state", mean_name, statistics, Init::zeros().attrs(), loc);
  const Value var =
      record_source(graph, "state", var_name, statistics, Init::constant(1).attrs(), loc);
  const Values normalised =
      record(graph, "batch_norm", {x, gamma, beta, mean, var}, {{"eps", layer.eps}}, loc);
  update_running_statistics(x, normalised, mean, var, layer.momentum, loc);
  return activate(normalised[0], layer.act, loc);
}

Value layer_norm(Value x, const LayerNorm& layer, const Loc& loc) {
  input_graph(x, "layer_norm", loc);
  const Type scale = trailing_scale(x, "layer_norm", layer.axis, loc);
  return normalization(x, "layer_norm", "ln", layer, scale,
                       {{"axis", layer.axis}, {"eps", layer.eps}}, loc);
}

Value rms_norm(Value x, const RmsNorm& layer, const Loc& loc) {
  input_graph(x, "rms_norm", loc);
  const Type scale = trailing_scale(x, "rms_norm", layer.axis, loc);
  return normalization(x, "rms_norm", "rms", layer, scale,
                       {{"axis", layer.axis}, {"eps", layer.eps}}, loc);
}

Value group_norm(Value x, const GroupNorm& layer, const Loc& loc) {
  input_graph(x, "group_norm", loc);
  const Type scale = channel_scale(x, "group_norm", 2, "[N, C, ...]", loc);
  return normalization(x, "group_norm", "gn", layer, scale,
                       {{"groups", *layer.groups}, {"eps", layer.eps}}, loc);
}

Value instance_norm(Value x, const InstanceNorm& layer, const Loc& loc) {
  input_graph(x, "instance_norm", loc);
  const Type scale = channel_scale(x, "instance_norm", 3, "[N, C, L, ...]", loc);
  return normalization(x, "instance_norm", "in", layer, scale, {{"eps", layer.eps}}, loc);
}

Value dropout(Value x, const Dropout& layer, const Loc& loc) {
  const Value rng = random_state(input_graph(x, "dropout", loc), loc);
  return internal::dropout(x, rng, {.p = layer.p}, loc);
}

Value stochastic_depth(Value x, const StochasticDepth& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "stochastic_depth", loc);
  require(x.shape().rank() > 0, loc, "stochastic_depth: x is a scalar, not [N, ...]");
  Shape shape(x.shape().size(), Dim{1});
  if (layer.mode == StochasticDepth::Mode::row) shape[0] = x.shape()[0];
  const Value ones = fill(graph, {.type = Type{x.dtype(), shape, {}}, .value = 1}, loc);
  return x * dropout(ones, {.p = layer.p}, loc);
}

Value dropout2d(Value x, const Dropout& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "dropout2d", loc);
  require_float_type(x.type(), x.shape().rank() == 4, "dropout2d: the input", "[N, C, H, W]", loc);
  const Value rng = random_state(graph, loc);
  return internal::dropout2d(x, rng, {.p = layer.p}, loc);
}

}  // namespace fluid
