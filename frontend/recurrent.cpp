#include "frontend/recurrent.h"

#include <cmath>

#include "frontend/checked_index.h"
#include "frontend/layer_parameters.h"
#include "frontend/layers.h"
#include "frontend/scan.h"
#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Describes a kind of recurrent cell.
struct Cell {
  const char* name;
  int64_t gates;        ///< number of gates; the weights have gates * H rows
  size_t states;        ///< number of states per layer and direction
  bool candidate_bias;  ///< whether the cell has a bias c [H], multiplied by the reset gate
};

/// The parameters of one layer and direction. Biases are null if the layer has none.
struct CellParameters {
  Value w, u, b, c;
};

/// Computes the next states from the input x [N, features] of one time step and the current
/// states.
using CellStep = Values (*)(Value x, const Values& states, const CellParameters& p,
                            const Recurrent& layer, const Loc& loc);

/// Returns x [N, features] times the transpose of w [gates * H, features]. oneDNN is slower with
/// weights stored as [features, gates * H] if their rows are a multiple of 4 KiB.
Value product(Value x, Value w, const Loc& loc) { return matmul(x, w, {.transpose_b = true}, loc); }

Value with_bias(Value x, Value bias, const Loc& loc) { return bias ? add(x, bias, loc) : x; }

Values rnn_step(Value x, const Values& states, const CellParameters& p, const Recurrent& layer,
                const Loc& loc) {
  const Value sum = with_bias(product(x, p.w, loc), p.b, loc) + product(states[0], p.u, loc);
  return {layer.relu ? relu(sum, loc) : tanh(sum, loc)};
}

Values gru_step(Value x, const Values& states, const CellParameters& p, const Recurrent& layer,
                const Loc& loc) {
  const Ints sizes(3, *layer.units);
  const Values from_x = split(with_bias(product(x, p.w, loc), p.b, loc), {sizes, 1}, loc);
  const Values from_h = split(product(states[0], p.u, loc), {sizes, 1}, loc);
  const Value r = sigmoid(from_x[0] + from_h[0], loc), z = sigmoid(from_x[1] + from_h[1], loc);
  const Value n = tanh(from_x[2] + r * with_bias(from_h[2], p.c, loc), loc);
  return {n + z * (states[0] - n)};
}

Values lstm_step(Value x, const Values& states, const CellParameters& p, const Recurrent& layer,
                 const Loc& loc) {
  const Value all = with_bias(product(x, p.w, loc), p.b, loc) + product(states[0], p.u, loc);
  const Values gates = split(all, {Ints(4, *layer.units), 1}, loc);
  const Value i = sigmoid(gates[0], loc), f = sigmoid(gates[1], loc), g = tanh(gates[2], loc),
              o = sigmoid(gates[3], loc);
  const Value c = f * states[1] + i * g;
  return {o * tanh(c, loc), c};
}

void check_layer(Value x, const Recurrent& layer, const Cell& cell, const Loc& loc) {
  const std::string subject = std::string(cell.name) + ": ";
  const Shape& shape = x.shape();
  require_float_type(x.type(), shape.rank() == 3 && !shape[1].batch && shape[2].is_constant(),
                     subject + "the input", "[N, T, features]", loc);
  require(shape[1].size > 0, loc, subject + "the sequences of " + x.type().str() + " are empty");
  require(*layer.units > 0 && layer.layers > 0, loc,
          subject + "units is " + std::to_string(*layer.units) + " and layers is " +
              std::to_string(layer.layers) + "; both must be positive");
  require(!layer.relu || cell.gates == 1, loc, subject + "only rnn has the option relu");
  require_probability(layer.dropout, subject + "dropout", loc);
  const auto count =
      static_cast<size_t>(layer.layers * (layer.bidirectional ? 2 : 1)) * cell.states;
  require(layer.initial.empty() || layer.initial.size() == count, loc,
          subject + std::to_string(layer.initial.size()) + " initial states are given for " +
              std::to_string(count));
  const Type state{x.dtype(), {shape[0], *layer.units}, {}};
  for (const Value& v : layer.initial) {
    require(
        v && v.type() == state, loc,
        subject + "an initial state is " + (v ? v.type().str() : "empty") + ", not " + state.str());
  }
  if (!layer.lengths) return;
  const bool fits = *layer.lengths && is_integer(layer.lengths->dtype()) &&
                    layer.lengths->shape() == Shape{shape[0]};
  require(fits, loc,
          subject + "the lengths are " + (*layer.lengths ? layer.lengths->type().str() : "empty") +
              ", not integers " + Shape{shape[0]}.str());
}

CellParameters cell_parameters(Value x, const Recurrent& layer, const Cell& cell, const Loc& loc) {
  const int64_t units = *layer.units, features = x.shape()[2].size;
  LayerParameters parameters(*x.op()->graph(), cell.name, layer, loc);
  const double bound = 1 / std::sqrt(static_cast<double>(units));
  const auto get = [&](const char* name, const Shape& shape, const std::optional<Init>& init) {
    return parameters.get(name, name, Type{x.dtype(), shape, {}}, {}, init,
                          Init::uniform(-bound, bound));
  };
  CellParameters p;
  p.w = get("w", {cell.gates * units, features}, layer.weight_init);
  p.u = get("u", {cell.gates * units, units}, layer.weight_init);
  if (layer.bias) p.b = get("b", {cell.gates * units}, layer.bias_init);
  if (layer.bias && cell.candidate_bias) p.c = get("c", {units}, layer.bias_init);
  return p;
}

/// Runs one layer in one direction over x [T, N, features]. `within`: the mask of steps_within(),
/// true inside a sequence, false in its padding; null if all sequences have length T. Sets `states`
/// to the final states. Returns the hidden states, [T, N, H].
Value run_direction(Value x, Value within, const Recurrent& layer, const Cell& cell, CellStep step,
                    bool reverse, Values& states, const Loc& loc) {
  const CellParameters p = cell_parameters(x, layer, cell, loc);
  Values sequences = {x};
  if (within) sequences.push_back(within);
  const auto body = [&](const Values& carries, const Values& elements) {
    Values next = step(elements[0], carries, p, layer, loc);
    if (!within) return ScanStep{.carries = next, .collected = {next[0]}};
    const Value output = where(elements[1], next[0], scalar_like(next[0], 0, loc), loc);
    for (size_t i = 0; i < next.size(); ++i) next[i] = where(elements[1], next[i], carries[i], loc);
    return ScanStep{.carries = next, .collected = {output}};
  };
  const ScanResult result = scan(states, sequences, body, {.reverse = reverse}, loc);
  states = result.carries;
  return result.collected[0];
}

RecurrentResult run_layers(Value x, const Recurrent& layer, const Cell& cell, CellStep step,
                           const Loc& loc) {
  ir::Graph& graph = input_graph(x, cell.name, loc);
  check_layer(x, layer, cell, loc);
  const ir::ScopedRecording as(graph, layer_recording(graph, cell.name, layer.name));
  const Type state{x.dtype(), {x.shape()[0], *layer.units}, {}};
  RecurrentResult result{.output = transpose(x, {.perm = {1, 0, 2}}, loc), .states = {}};
  Value within;
  if (layer.lengths) {
    within = steps_within(*layer.lengths, x.shape()[1], loc);
    // Zeroes the padding, because a NaN there would reach the gradients of the weights.
    result.output = where(within, result.output, scalar_like(result.output, 0, loc), loc);
  }
  auto initial = layer.initial.begin();
  for (int64_t n = 0; n < layer.layers; ++n) {
    if (n > 0 && layer.dropout != 0) {
      result.output = dropout(result.output, {.p = layer.dropout}, loc);
    }
    const std::string name = "layer" + std::to_string(n);
    Values outputs;
    for (const bool reverse : {false, true}) {
      if (reverse && !layer.bidirectional) continue;
      const ir::ScopedRecording in(graph,
                                   layer_recording(graph, "", reverse ? name + ".reverse" : name));
      Values states;
      for (size_t i = 0; i < cell.states; ++i) {
        states.push_back(layer.initial.empty() ? fill(graph, {.type = state, .value = 0}, loc)
                                               : *initial++);
      }
      outputs.push_back(
          run_direction(result.output, within, layer, cell, step, reverse, states, loc));
      result.states.insert(result.states.end(), states.begin(), states.end());
    }
    result.output = outputs.size() == 1 ? outputs[0] : concat(outputs, {.axis = 2}, loc);
  }
  result.output = transpose(result.output, {.perm = {1, 0, 2}}, loc);
  return result;
}

}  // namespace

RecurrentResult rnn(Value x, const Recurrent& layer, const Loc& loc) {
  return run_layers(x, layer, {"rnn", 1, 1, false}, rnn_step, loc);
}

RecurrentResult gru(Value x, const Recurrent& layer, const Loc& loc) {
  return run_layers(x, layer, {"gru", 3, 1, true}, gru_step, loc);
}

RecurrentResult lstm(Value x, const Recurrent& layer, const Loc& loc) {
  return run_layers(x, layer, {"lstm", 4, 2, false}, lstm_step, loc);
}

}  // namespace fluid
