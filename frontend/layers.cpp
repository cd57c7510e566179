#include "frontend/layers.h"

#include <algorithm>
#include <cmath>

#include "frontend/random.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

std::string scoped_name(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "." + name;
}

/// Returns the first of the names kind0, kind1... that is not the scope of an op in the graph.
std::string fresh_name(const ir::Graph& graph, const std::string& kind) {
  for (int n = 0;; ++n) {
    std::string name = scoped_name(graph.recording.scope, kind + std::to_string(n));
    const bool taken =
        std::ranges::any_of(graph.ops, [&](const auto& op) { return op->scope == name; });
    if (!taken) return name;
  }
}

ir::Graph::Recording recording_for(const ir::Graph& graph, const std::string& kind,
                                   const std::string& name) {
  ir::Graph::Recording recording = graph.recording;
  recording.scope = name.empty() ? fresh_name(graph, kind) : scoped_name(recording.scope, name);
  return recording;
}

ir::Graph& input_graph(Value x, const char* layer, const Loc& loc) {
  if (!x) throw UserError(loc, std::string(layer) + ": the input is an empty value");
  return *x.op()->graph();
}

void require(bool condition, const Loc& loc, const std::string& what) {
  if (!condition) throw UserError(loc, what);
}

/// Creates the parameters of one layer. For a parameter that the user gives as a Value, creates
/// none and returns the Value.
class Parameters {
 public:
  template <class Layer>
  Parameters(ir::Graph& graph, const char* kind, const Layer& layer, const Loc& loc)
      : graph_(graph),
        kind_(kind),
        options_{.trainable = layer.trainable,
                 .lr_scale = layer.lr_scale,
                 .weight_decay = layer.weight_decay},
        loc_(loc) {}

  /// Returns `given`, or adds a parameter `name` of `type` to the graph. `role` ("weight") names
  /// the parameter in messages.
  Value get(const char* role, const std::string& name, const Type& type,
            const std::optional<Value>& given, const std::optional<Init>& init,
            const Init& fallback) {
    if (given) return checked(role, type, *given, init.has_value());
    added_ = true;
    options_.dtype = type.dtype;
    return record_parameter(graph_, name, type.shape, init.value_or(fallback), options_, loc_);
  }

  /// Throws UserError if trainable, lr_scale or weight_decay is set but the layer added no
  /// parameter to which the option applies.
  void check_options() const {
    const bool set = !options_.trainable || options_.lr_scale != 1 || !options_.weight_decay;
    require(added_ || !set, loc_,
            std::string(kind_) +
                ": trainable, lr_scale and weight_decay have no effect on given parameters; set "
                "them where the parameters are made");
  }

 private:
  Value checked(const char* role, const Type& type, Value given, bool has_init) const {
    const std::string subject = std::string(kind_) + ": the " + role;
    require(static_cast<bool>(given), loc_, subject + " is an empty value");
    require(given.op()->graph() == &graph_, loc_, subject + " belongs to another program");
    require(given.type() == type, loc_,
            subject + " is " + given.type().str() + ", but the layer needs " + type.str());
    require(!has_init, loc_, subject + " is given, so its initialiser has no effect");
    return given;
  }

  ir::Graph& graph_;
  const char* kind_;
  ParameterOptions options_;
  const Loc& loc_;
  bool added_ = false;
};

Init default_weight() { return Init::kaiming_uniform(std::sqrt(5.0)); }

Init default_bias(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1)));
  return Init::uniform(-bound, bound);
}

/// Returns the height and width of a kernel that is given as one or two numbers.
std::array<int64_t, 2> kernel_size(const Ints& kernel, const Loc& loc) {
  require(kernel.size() == 1 || kernel.size() == 2, loc,
          "conv2d: kernel has " + std::to_string(kernel.size()) + " numbers, not 1 or 2");
  return {kernel.front(), kernel.back()};
}

/// Records ops that update the running `mean` and `var` from the batch statistics in the results of
/// batch_norm. The ops run at the end of a training step.
void update_running_statistics(Value x, const Values& normalised, Value mean, Value var,
                               double momentum, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::ScopedRecording as(graph, {ir::Role::optimize, loc, graph.recording.scope, ""});
  // The type of one channel of x. Its number of elements is the number of values that a batch mean
  // averages.
  Type channel{mean.dtype(), x.shape(), {}};
  channel.shape[1] = 1;
  const Value count = internal::numel(graph, {.of = channel}, loc);
  const Values moved = record(graph, "bn_update", {mean, var, normalised[1], normalised[2], count},
                              {{"momentum", momentum}}, loc);
  record_store(graph, mean.op()->symbol, moved[0], loc);
  record_store(graph, var.op()->symbol, moved[1], loc);
}

/// Returns the operands of a normalisation op: x, and the layer's scale and bias of type `type`.
template <class Layer>
Values normalization_operands(Value x, const char* kind, const Layer& layer, const Type& type,
                              const Loc& loc) {
  Parameters parameters(*x.op()->graph(), kind, layer, loc);
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

/// Returns the type of a scale of x's dimensions from `axis` on.
Type trailing_scale(Value x, const char* kind, int64_t axis, const Loc& loc) {
  const int64_t rank = x.shape().rank(), first = axis < 0 ? axis + rank : axis;
  const bool exists = is_float(x.dtype()) && first >= 0 && first < rank;
  const Shape shape = exists ? Shape(x.shape().begin() + first, x.shape().end()) : Shape();
  require(exists && !shape.has_batch(), loc,
          std::string(kind) + ": the input is " + x.type().str() +
              ", not a float tensor with fixed extents from axis " + std::to_string(axis) + " on");
  return {compute_dtype(x.dtype()), shape, {}};
}

/// Returns the type of a scale of x's channels. `form` describes x in the message.
Type channel_scale(Value x, const char* kind, int64_t min_rank, const char* form, const Loc& loc) {
  require(is_float(x.dtype()) && x.shape().rank() >= min_rank && !x.shape()[1].batch, loc,
          std::string(kind) + ": the input is " + x.type().str() + ", not a float " + form);
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

Value conv2d(Value x, const Conv2d& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "conv2d", loc);
  const auto [height, width] = kernel_size(*layer.kernel, loc);
  const int64_t filters = *layer.filters;
  require(filters > 0, loc, "conv2d: filters must be positive");
  require(x.shape().rank() == 4 && !x.shape()[1].batch, loc,
          "conv2d: the input is " + x.type().str() + ", not [N, C, H, W]");
  const int64_t channels = x.shape()[1].size;
  require(layer.groups > 0 && channels % layer.groups == 0 && filters % layer.groups == 0, loc,
          "conv2d: " + std::to_string(layer.groups) + " groups do not divide " +
              std::to_string(channels) + " input channels and " + std::to_string(filters) +
              " filters");
  ir::ScopedRecording as(graph, recording_for(graph, "conv", layer.name));
  const int64_t in = channels / layer.groups;
  Parameters parameters(graph, "conv2d", layer, loc);
  const Value w = parameters.get("weight", "w", Type{x.dtype(), {filters, in, height, width}, {}},
                                 layer.weight, layer.weight_init, default_weight());
  const Conv2dAttrs attrs{.stride = layer.stride,
                          .padding = layer.padding,
                          .dilation = layer.dilation,
                          .groups = layer.groups};
  Value y = conv2d(x, w, attrs, loc);
  if (layer.bias.present()) {
    const Value b = parameters.get("bias", "b", Type{x.dtype(), {filters}, {}}, layer.bias.given(),
                                   layer.bias_init, default_bias(in * height * width));
    y = add(y, reshape(b, {.to = Type{x.dtype(), {filters, 1, 1}, {}}}, loc), loc);
  }
  parameters.check_options();
  return activate(y, layer.act, loc);
}

Value linear(Value x, const Linear& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "linear", loc);
  const int64_t units = *layer.units;
  require(units > 0, loc, "linear: units must be positive");
  require(x.shape().rank() >= 2 && !x.shape().back().batch, loc,
          "linear: the input is " + x.type().str() + ", not [..., features]; flatten it first");
  ir::ScopedRecording as(graph, recording_for(graph, "fc", layer.name));
  const int64_t in = x.shape().back().size;
  Parameters parameters(graph, "linear", layer, loc);
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
  require(is_float(x.dtype()) && x.shape().rank() >= 2 && !x.shape()[1].batch, loc,
          "batch_norm: the input is " + x.type().str() + ", not a float [N, C, ...]");
  ir::ScopedRecording as(graph, recording_for(graph, "bn", layer.name));
  const Type statistics{compute_dtype(x.dtype()), {x.shape()[1]}, {}};
  Parameters parameters(graph, "batch_norm", layer, loc);
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
  ir::Graph& graph = input_graph(x, "layer_norm", loc);
  const Type scale = trailing_scale(x, "layer_norm", layer.axis, loc);
  ir::ScopedRecording as(graph, recording_for(graph, "ln", layer.name));
  const Values operands = normalization_operands(x, "layer_norm", layer, scale, loc);
  const Attrs attrs = {{"axis", layer.axis}, {"eps", layer.eps}};
  return activate(record(graph, "layer_norm", operands, attrs, loc)[0], layer.act, loc);
}

Value rms_norm(Value x, const RmsNorm& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "rms_norm", loc);
  const Type scale = trailing_scale(x, "rms_norm", layer.axis, loc);
  ir::ScopedRecording as(graph, recording_for(graph, "rms", layer.name));
  const Values operands = normalization_operands(x, "rms_norm", layer, scale, loc);
  const Attrs attrs = {{"axis", layer.axis}, {"eps", layer.eps}};
  return activate(record(graph, "rms_norm", operands, attrs, loc)[0], layer.act, loc);
}

Value group_norm(Value x, const GroupNorm& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "group_norm", loc);
  const Type scale = channel_scale(x, "group_norm", 2, "[N, C, ...]", loc);
  ir::ScopedRecording as(graph, recording_for(graph, "gn", layer.name));
  const Values operands = normalization_operands(x, "group_norm", layer, scale, loc);
  const Attrs attrs = {{"groups", *layer.groups}, {"eps", layer.eps}};
  return activate(record(graph, "group_norm", operands, attrs, loc)[0], layer.act, loc);
}

Value instance_norm(Value x, const InstanceNorm& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "instance_norm", loc);
  const Type scale = channel_scale(x, "instance_norm", 3, "[N, C, L, ...]", loc);
  ir::ScopedRecording as(graph, recording_for(graph, "in", layer.name));
  const Values operands = normalization_operands(x, "instance_norm", layer, scale, loc);
  return activate(record(graph, "instance_norm", operands, {{"eps", layer.eps}}, loc)[0], layer.act,
                  loc);
}

Value dropout(Value x, const Dropout& layer, const Loc& loc) {
  const Value rng = random_state(input_graph(x, "dropout", loc), loc);
  return internal::dropout(x, rng, {.p = layer.p}, loc);
}

Value dropout2d(Value x, const Dropout& layer, const Loc& loc) {
  const Value rng = random_state(input_graph(x, "dropout2d", loc), loc);
  return internal::dropout2d(x, rng, {.p = layer.p}, loc);
}

}  // namespace fluid
