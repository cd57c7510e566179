#include "frontend/layers.h"

#include <algorithm>
#include <cmath>

#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

std::string below(const std::string& scope, const std::string& name) {
  return scope.empty() ? name : scope + "." + name;
}

/// Returns the first of kind0, kind1... that is not the scope of any op.
std::string fresh_name(const ir::Graph& graph, const std::string& kind) {
  for (int n = 0;; ++n) {
    std::string name = below(graph.recording.scope, kind + std::to_string(n));
    const bool taken =
        std::ranges::any_of(graph.ops, [&](const auto& op) { return op->scope == name; });
    if (!taken) return name;
  }
}

ir::Graph::Recording recording_for(const ir::Graph& graph, const std::string& kind,
                                   const std::string& name) {
  ir::Graph::Recording recording = graph.recording;
  recording.scope = name.empty() ? fresh_name(graph, kind) : below(recording.scope, name);
  return recording;
}

ir::Graph& input_graph(Value x, const char* layer, const Loc& loc) {
  if (!x) throw UserError(loc, std::string(layer) + ": the input is an empty value");
  return *x.op()->graph();
}

void require(bool condition, const Loc& loc, const std::string& what) {
  if (!condition) throw UserError(loc, what);
}

Init default_weight() { return Init::kaiming_uniform(std::sqrt(5.0)); }

Init default_bias(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1)));
  return Init::uniform(-bound, bound);
}

/// Returns height and width of a kernel given as one or two numbers.
std::array<int64_t, 2> both(const Ints& kernel, const Loc& loc) {
  require(kernel.size() == 1 || kernel.size() == 2, loc,
          "conv2d: kernel has " + std::to_string(kernel.size()) + " numbers, not 1 or 2");
  return {kernel.front(), kernel.back()};
}

/// Returns the state of the random number generator, shared by all random ops of a program.
Value random_state(ir::Graph& graph, const Loc& loc) {
  if (ir::Op* known = graph.find("state", "rng")) return known->result();
  return record_source(graph, "state", "rng", Type{DType::i64, {3}, {}}, {}, loc);
}

/// Records the updates of the running `mean` and `var` from batch_norm's results at the end of a
/// step.
void update_running_statistics(Value x, const Values& normalised, Value mean, Value var,
                               double momentum, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  ir::RecordAs as(graph, {ir::Role::optimize, loc, graph.recording.scope, ""});
  // The shape of one channel of x.
  Type channel{mean.dtype(), x.shape(), {}};
  channel.shape[1] = 1;
  const Value count = numel(graph, {.of = channel}, loc);
  const Values moved = record(graph, "bn_update", {mean, var, normalised[1], normalised[2], count},
                              {{"momentum", momentum}}, loc);
  record_store(graph, mean.op()->symbol, moved[0], loc);
  record_store(graph, var.op()->symbol, moved[1], loc);
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
  }
  throw InternalError("no such activation");
}

Value parameter(ir::Graph& graph, const std::string& name, const Type& type, const Init& init,
                const Loc& loc) {
  return record_source(graph, "param", below(graph.recording.scope, name), type, init.attrs(), loc);
}

Value conv2d(Value x, const Conv2d& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "conv2d", loc);
  const auto [height, width] = both(layer.kernel, loc);
  require(layer.filters > 0, loc, "conv2d: filters must be positive");
  require(x.shape().rank() == 4 && !x.shape()[1].batch, loc,
          "conv2d: the input is " + x.type().str() + ", not [N, C, H, W]");
  const int64_t channels = x.shape()[1].size;
  require(layer.groups > 0 && channels % layer.groups == 0 && layer.filters % layer.groups == 0,
          loc,
          "conv2d: " + std::to_string(layer.groups) + " groups do not divide " +
              std::to_string(channels) + " input channels and " + std::to_string(layer.filters) +
              " filters");
  ir::RecordAs as(graph, recording_for(graph, "conv", layer.name));
  const int64_t in = channels / layer.groups;
  const Value w = parameter(graph, "w", Type{x.dtype(), {layer.filters, in, height, width}, {}},
                            layer.weight_init.value_or(default_weight()), loc);
  const Conv2dAttrs attrs{.stride = layer.stride,
                          .padding = layer.padding,
                          .dilation = layer.dilation,
                          .groups = layer.groups};
  Value y = conv2d(x, w, attrs, loc);
  if (layer.bias) {
    const Value b = parameter(graph, "b", Type{x.dtype(), {layer.filters}, {}},
                              layer.bias_init.value_or(default_bias(in * height * width)), loc);
    y = add(y, reshape(b, {.to = Type{x.dtype(), {layer.filters, 1, 1}, {}}}, loc), loc);
  }
  return activate(y, layer.act, loc);
}

Value linear(Value x, const Linear& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "linear", loc);
  require(layer.units > 0, loc, "linear: units must be positive");
  require(x.shape().rank() >= 2 && !x.shape().back().batch, loc,
          "linear: the input is " + x.type().str() + ", not [..., features]; flatten it first");
  ir::RecordAs as(graph, recording_for(graph, "fc", layer.name));
  const int64_t in = x.shape().back().size;
  const Value w = parameter(graph, "w", Type{x.dtype(), {in, layer.units}, {}},
                            layer.weight_init.value_or(default_weight()), loc);
  Value y = matmul(x, w, {}, loc);
  if (layer.bias) {
    const Value b = parameter(graph, "b", Type{x.dtype(), {layer.units}, {}},
                              layer.bias_init.value_or(default_bias(in)), loc);
    y = add(y, b, loc);
  }
  return activate(y, layer.act, loc);
}

Value batch_norm(Value x, const BatchNorm& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "batch_norm", loc);
  require(is_float(x.dtype()) && x.shape().rank() >= 2 && !x.shape()[1].batch, loc,
          "batch_norm: the input is " + x.type().str() + ", not a float [N, C, ...]");
  ir::RecordAs as(graph, recording_for(graph, "bn", layer.name));
  const Type statistics{compute_dtype(x.dtype()), {x.shape()[1]}, {}};
  const Value gamma = parameter(graph, "gamma", statistics, Init::constant(1), loc);
  const Value beta = parameter(graph, "beta", statistics, Init::zeros(), loc);
  const std::string mean_name = below(graph.recording.scope, "running_mean");
  const std::string var_name = below(graph.recording.scope, "running_var");
  const Value mean =
      record_source(graph, "state", mean_name, statistics, Init::zeros().attrs(), loc);
  const Value var =
      record_source(graph, "state", var_name, statistics, Init::constant(1).attrs(), loc);
  const Values normalised =
      record(graph, "batch_norm", {x, gamma, beta, mean, var}, {{"eps", layer.eps}}, loc);
  update_running_statistics(x, normalised, mean, var, layer.momentum, loc);
  return activate(normalised[0], layer.act, loc);
}

Value dropout(Value x, const Dropout& layer, const Loc& loc) {
  const Value rng = random_state(input_graph(x, "dropout", loc), loc);
  return dropout(x, rng, DropoutAttrs{.p = layer.p}, loc);
}

Value dropout2d(Value x, const Dropout& layer, const Loc& loc) {
  const Value rng = random_state(input_graph(x, "dropout2d", loc), loc);
  return dropout2d(x, rng, Dropout2dAttrs{.p = layer.p}, loc);
}

}  // namespace fluid
