#include "tests/support/onnx_recurrent.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/recurrent.h"
#include "ops/functions.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;

/// A kind of layer.
struct Kind {
  RecurrentResult (*layer)(Value x, const Recurrent& layer, const Loc& loc);
  std::vector<int64_t> gates;  ///< ONNX's index of each gate of the layer
  size_t states;               ///< number of states of a direction
};

const std::map<std::string, Kind> kKinds = {
    {"RNN", {rnn, {0}, 1}}, {"GRU", {gru, {1, 0, 2}, 1}}, {"LSTM", {lstm, {0, 2, 3, 1}, 2}}};

/// The inputs W [directions, gates * H, features], R [directions, gates * H, H] and
/// B [directions, 2 * gates * H] of a node.
struct Weights {
  const Kind& kind;
  int64_t units;
  Tensor w, r, b;

  /// W or R of a direction, [gates * H, columns], with the layer's order of gates.
  Tensor matrix(const Tensor& from, int64_t direction) const {
    const int64_t columns = from.shape().at(2), rows = from.shape().at(1);
    Tensor to(f32, {rows, columns});
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = (direction * rows + onnx_row(row)) * columns;
      std::copy_n(from.as<float>().begin() + at, columns, to.as<float>().begin() + row * columns);
    }
    return to;
  }

  /// Element `row` of the bias of W (part 0) or R (part 1).
  float bias(int64_t direction, int64_t part, int64_t row) const {
    const int64_t at = (direction * 2 + part) * b.shape().at(1) / 2 + onnx_row(row);
    return b.as<float>()[static_cast<size_t>(at)];
  }

 private:
  int64_t onnx_row(int64_t row) const {
    return kind.gates[static_cast<size_t>(row / units)] * units + row % units;
  }
};

/// Adds the parameters of one direction to `all`.
void add_parameters(const Weights& weights, int64_t direction, const std::string& prefix,
                    std::map<std::string, Tensor>& all) {
  all[prefix + "w"] = weights.matrix(weights.w, direction);
  all[prefix + "u"] = weights.matrix(weights.r, direction);
  if (weights.b.numel() == 0) return;
  const int64_t rows = weights.w.shape().at(1);
  Tensor b(f32, {rows}), c(f32, {weights.units});
  for (int64_t row = 0; row < rows; ++row) {
    float& sum = b.as<float>()[static_cast<size_t>(row)];
    sum = weights.bias(direction, 0, row);
    const float of_r = weights.bias(direction, 1, row);
    const bool candidate = weights.kind.gates.size() == 3 && row / weights.units == 2;
    if (candidate) {
      c.as<float>()[static_cast<size_t>(row % weights.units)] = of_r;
    } else {
      sum += of_r;
    }
  }
  all[prefix + "b"] = b;
  if (weights.kind.gates.size() == 3) all[prefix + "c"] = c;
}

/// The node's outputs Y, Y_h and Y_c, from the layer's `result`. `first` is the first direction of
/// the layer that the node has.
Values outputs_of(const RecurrentResult& result, const Kind& kind, int64_t units, size_t first,
                  bool batch_first) {
  const size_t directions = result.states.size() / kind.states;
  Values y = split(result.output, {Ints(directions, units), 2});
  y.erase(y.begin(), y.begin() + static_cast<ptrdiff_t>(first));
  Values outputs = {stack(y, {.axis = 2})};
  if (!batch_first) outputs[0] = transpose(outputs[0], {.perm = {1, 2, 0, 3}});
  for (size_t state = 0; state < kind.states; ++state) {
    Values of_directions;
    for (size_t d = first; d < directions; ++d) {
      of_directions.push_back(result.states[d * kind.states + state]);
    }
    outputs.push_back(stack(of_directions, {.axis = batch_first ? 1 : 0}));
  }
  return outputs;
}

/// Without a recurrent bias, both kinds of GRU compute the same step from a state of zeros.
bool is_one_step(const std::vector<Tensor>& in, bool batch_first) {
  return in[0].shape().at(batch_first ? 1 : 0) == 1 && in.size() == 3;
}

bool applies(const Json& node, const std::vector<Tensor>& in, bool batch_first) {
  const Json& given = node.at("attrs");
  for (const char* name : {"activations", "activation_alpha", "activation_beta", "clip"}) {
    if (given.contains(name)) return false;
  }
  if (given.value("input_forget", 0) != 0) return false;
  for (size_t i = 4; i < in.size(); ++i) {
    if (in[i].numel() > 0) return false;
  }
  return node.at("op") != "GRU" || given.value("linear_before_reset", 0) != 0 ||
         is_one_step(in, batch_first);
}

}  // namespace

std::optional<OnnxUse> recurrent(const Json& node, const std::vector<Tensor>& in) {
  const Json& given = node.at("attrs");
  const bool batch_first = given.value("layout", 0) == 1;
  if (!applies(node, in, batch_first)) return std::nullopt;
  const Kind& kind = kKinds.at(node.at("op"));
  const auto units = given.at("hidden_size").get<int64_t>();
  const std::string direction = given.value("direction", "forward");
  const bool has_bias = in.size() > 3 && in[3].numel() > 0;
  const Weights weights{kind, units, in[1], in[2], has_bias ? in[3] : Tensor()};

  OnnxUse use{.op = "scan", .operands = {in[0]}, .attrs = {}, .bias = {}};
  if (direction == "reverse") {  // the second direction of a layer whose first one is not read
    add_parameters(weights, 0, "net.layer0.", use.parameters);
    add_parameters(weights, 0, "net.layer0.reverse.", use.parameters);
  } else {
    add_parameters(weights, 0, "net.layer0.", use.parameters);
    if (direction == "bidirectional")
      add_parameters(weights, 1, "net.layer0.reverse.", use.parameters);
  }
  std::vector<size_t> named;
  for (size_t i = 0; i < node.at("outputs").size(); ++i) {
    if (node.at("outputs")[i] != "") named.push_back(i);
  }
  use.results = named.size();
  use.layer = [=, &kind](const Values& operands) {
    const Value x = batch_first ? operands[0] : transpose(operands[0], {.perm = {1, 0, 2}});
    const RecurrentResult result = kind.layer(
        x,
        {.units = units, .bidirectional = direction != "forward", .bias = has_bias, .name = "net"},
        Loc::here());
    const size_t first = direction == "reverse" ? 1 : 0;
    const Values outputs = outputs_of(result, kind, units, first, batch_first);
    Values read;
    for (const size_t i : named) read.push_back(outputs.at(i));
    return read;
  };
  return use;
}

}  // namespace fluid::testing
