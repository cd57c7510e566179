// RNN, GRU and LSTM. Each direction is a scan.

#include "frontend/checked_index.h"
#include "frontend/onnx/context.h"
#include "frontend/scan.h"
#include "ir/text.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Inputs of a recurrent node.
enum RecurrentInput : size_t { kX, kW, kR, kB, kSequenceLens, kInitialH, kInitialC, kPeepholes };

using Activation = std::function<Value(Value)>;

/// Numbers of an attribute of the node. Each activation takes the next ones that it needs.
class Coefficients {
 public:
  explicit Coefficients(std::vector<double> numbers) : numbers_(std::move(numbers)) {}
  /// Returns the next number, or `fallback` if none is left.
  double next_or(double fallback) {
    return taken_ < numbers_.size() ? numbers_[taken_++] : fallback;
  }

 private:
  std::vector<double> numbers_;
  size_t taken_ = 0;
};

/// Returns an activation by its ONNX name in lower case. Only the activations that have an alpha or
/// a beta take one from `alphas` or `betas`.
Activation activation(const Context& c, const std::string& name, Coefficients& alphas,
                      Coefficients& betas) {
  if (name == "tanh") return [](Value x) { return tanh(x); };
  if (name == "sigmoid") return [](Value x) { return sigmoid(x); };
  if (name == "relu") return [](Value x) { return relu(x); };
  if (name == "softsign") return [](Value x) { return softsign(x); };
  if (name == "softplus") return [](Value x) { return softplus(x); };
  if (name == "elu") {
    return [a = alphas.next_or(1)](Value x) { return elu(x, {.alpha = a}); };
  }
  if (name == "affine") {
    return [a = alphas.next_or(1), b = betas.next_or(0)](Value x) { return x * a + b; };
  }
  if (name == "leakyrelu") {
    return [a = alphas.next_or(0.01)](Value x) { return leaky_relu(x, {.negative_slope = a}); };
  }
  if (name == "scaledtanh") {
    return [a = alphas.next_or(1), b = betas.next_or(1)](Value x) { return tanh(x * b) * a; };
  }
  if (name == "hardsigmoid") {
    return [a = alphas.next_or(0.2), b = betas.next_or(0.5)](Value x) {
      return hard_sigmoid(x, {.alpha = a, .beta = b});
    };
  }
  c.fail_unsupported("activation '" + name + "'");
}

/// Returns the activations of all directions, fallback.size() per direction. `fallback`: the names
/// of the default activations of one direction.
std::vector<Activation> activations(const Context& c, size_t directions,
                                    const std::vector<std::string>& fallback) {
  std::vector<std::string> names = c.strings_attr("activations");
  while (names.size() < directions * fallback.size()) {
    names.insert(names.end(), fallback.begin(), fallback.end());
  }
  Coefficients alphas(c.floats_attr("activation_alpha")), betas(c.floats_attr("activation_beta"));
  std::vector<Activation> all;
  for (const std::string& name : names) {
    all.push_back(activation(c, ir::lowercase(name), alphas, betas));
  }
  return all;
}

/// The weights of one direction: W [gates H, features], R [gates H, H]; `b` and `rb` are the biases
/// of the input and of the recurrence, [gates H] or null.
struct Cell {
  const Context& c;
  Value w, r, b, rb, peepholes;
  std::vector<Activation> act;
  int64_t units;

  Value bounded(Value x) const {
    const double clip_at = c.float_attr("clip", 0);
    return clip_at > 0 ? clip(x, {.min = -clip_at, .max = clip_at}) : x;
  }
  Value activate(size_t i, Value x) const { return act.at(i)(bounded(x)); }
  Value from_input(Value x) const {
    const Value y = matmul(x, w, {.transpose_b = true});
    return b ? y + b : y;
  }
  Value from_state(Value h) const {
    const Value y = matmul(h, r, {.transpose_b = true});
    return rb ? y + rb : y;
  }
  Values gates(Value all) const {
    const int64_t n = extent(c, all, 1) / units;
    return split(all, {.sizes = Ints(static_cast<size_t>(n), units), .axis = 1});
  }
};

/// Computes the next states from the input `x` [N, features] of a time step and the current states.
using Step = Values (*)(const Cell& cell, Value x, const Values& states);

Values rnn_step(const Cell& cell, Value x, const Values& states) {
  return {cell.activate(0, cell.from_input(x) + cell.from_state(states[0]))};
}

/// The gates are in the order z, r, h. The reset gate r multiplies the state h or, with
/// linear_before_reset, R_h h + Rb_h.
Values gru_step(const Cell& cell, Value x, const Values& states) {
  const Value h = states[0];
  const Values of_x = cell.gates(cell.from_input(x)), of_h = cell.gates(cell.from_state(h));
  const Value z = cell.activate(0, of_x[0] + of_h[0]), r = cell.activate(0, of_x[1] + of_h[1]);
  Value candidate;
  if (cell.c.bool_attr("linear_before_reset", false)) {
    candidate = of_x[2] + r * of_h[2];
  } else {
    const Ints from = {2 * cell.units}, to = {3 * cell.units};
    const Value weights = slice(cell.r, {.starts = from, .stops = to});
    candidate = of_x[2] + matmul(r * h, weights, {.transpose_b = true});
    if (cell.rb) candidate = candidate + slice(cell.rb, {.starts = from, .stops = to});
  }
  const Value n = cell.activate(1, candidate);
  return {n + z * (h - n)};
}

/// The gates are in the order i, o, f, c, and the peephole weights in the order i, o, f.
Values lstm_step(const Cell& cell, Value x, const Values& states) {
  const Value c = states[1];
  const Values all = cell.gates(cell.from_input(x) + cell.from_state(states[0]));
  Values peepholes;
  if (cell.peepholes) peepholes = split(cell.peepholes, {.sizes = Ints(3, cell.units)});
  const auto with_peephole = [&](Value gate, size_t which, Value state) {
    return peepholes.empty() ? gate : gate + peepholes[which] * state;
  };
  const Value i = cell.activate(0, with_peephole(all[0], 0, c));
  const Value f = cell.c.bool_attr("input_forget", false)
                      ? 1.0 - i
                      : cell.activate(0, with_peephole(all[2], 2, c));
  const Value next = f * c + i * cell.activate(1, all[3]);
  const Value o = cell.activate(0, with_peephole(all[1], 1, next));
  return {o * cell.act.at(2)(next), next};
}

struct Kind {
  Step step;
  int64_t gates;
  size_t states;
  std::vector<std::string> activations;
};

const std::map<std::string, Kind> kKinds = {
    {"GRU", {gru_step, 3, 1, {"sigmoid", "tanh"}}},
    {"LSTM", {lstm_step, 4, 2, {"sigmoid", "tanh", "tanh"}}},
    {"RNN", {rnn_step, 1, 1, {"tanh"}}}};

/// Returns all[direction]. Dimension 0 of `all` is the direction of the RNN.
Value of_direction(Value all, int64_t direction) {
  return squeeze(slice(all, {.starts = direction, .stops = direction + 1}), {.axes = 0});
}

/// Returns the initial state [N, H] of a direction from input i; zeros if the node omits the input.
Value initial_state(const Context& c, size_t i, int64_t direction, const Type& type) {
  if (!c.has_input(i)) return fill(c.graph(), {.type = type, .value = 0});
  const bool batch_first = c.int_attr("layout", 0) == 1;
  const Value all = batch_first ? transpose(c.input(i), {.perm = {1, 0, 2}}) : c.input(i);
  return of_direction(all, direction);
}

/// Returns the hidden states [T, N, H] and the final states of one direction. At steps past the end
/// of a sequence, the states do not change and the outputs are 0.
ScanResult run(const Cell& cell, const Kind& kind, Value x, int64_t direction, bool reverse) {
  const Context& c = cell.c;
  const Type state{x.dtype(), {x.shape()[1], cell.units}, {}};
  Values states;
  for (size_t i = 0; i < kind.states; ++i) {
    states.push_back(initial_state(c, kInitialH + i, direction, state));
  }
  Values sequences = {x};
  const bool has_lengths = c.has_input(kSequenceLens);
  if (has_lengths) sequences.push_back(steps_within(c.input(kSequenceLens), x.shape()[0], c.loc()));
  const auto body = [&](const Values& carries, const Values& elements) {
    Values next = kind.step(cell, elements[0], carries);
    Value output = next[0];
    if (has_lengths) {
      output = where(elements[1], output, scalar_like(output, 0));
      for (size_t i = 0; i < next.size(); ++i) next[i] = where(elements[1], next[i], carries[i]);
    }
    return ScanStep{.carries = next, .collected = {output}};
  };
  return scan(states, sequences, body, {.reverse = reverse}, c.loc());
}

Cell cell_of(const Context& c, const Kind& kind, int64_t direction,
             const std::vector<Activation>& all) {
  const int64_t units = c.int_attr("hidden_size", extent(c, c.input(kR), 2));
  const size_t each = kind.activations.size();
  const auto first = all.begin() + direction * static_cast<int64_t>(each);
  Cell cell{.c = c,
            .w = of_direction(c.input(kW), direction),
            .r = of_direction(c.input(kR), direction),
            .b = {},
            .rb = {},
            .peepholes = {},
            .act = {first, first + static_cast<ptrdiff_t>(each)},
            .units = units};
  if (c.has_input(kB)) {
    const Values biases =
        split(of_direction(c.input(kB), direction), {.sizes = Ints(2, kind.gates * units)});
    cell.b = biases[0];
    cell.rb = biases[1];
  }
  if (c.has_input(kPeepholes)) cell.peepholes = of_direction(c.input(kPeepholes), direction);
  return cell;
}

/// Returns Y [T, directions, N, H], Y_h and Y_c [directions, N, H]. With layout 1, N is dimension 0
/// of the inputs and outputs.
Operands recurrent(const Context& c) {
  const Kind& kind = kKinds.at(c.op());
  const bool batch_first = c.int_attr("layout", 0) == 1;
  const std::string direction = c.string_attr("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Value x = batch_first ? transpose(c.input(kX), {.perm = {1, 0, 2}}) : c.input(kX);
  const std::vector<Activation> all =
      activations(c, static_cast<size_t>(directions), kind.activations);
  Values y;
  std::vector<Values> states(kind.states);
  for (int64_t d = 0; d < directions; ++d) {
    const bool reverse = direction == "reverse" || d == 1;
    const ScanResult result = run(cell_of(c, kind, d, all), kind, x, d, reverse);
    y.push_back(result.collected[0]);
    for (size_t i = 0; i < kind.states; ++i) states[i].push_back(result.carries[i]);
  }
  Operands outputs = {stack(y, {.axis = 1})};
  if (batch_first) outputs[0] = transpose(outputs[0].value, {.perm = {2, 0, 1, 3}});
  for (const Values& state : states) {
    outputs.emplace_back(stack(state, {.axis = batch_first ? 1 : 0}));
  }
  return outputs;
}

}  // namespace

void add_recurrent(Mappings& all) { all["GRU"] = all["LSTM"] = all["RNN"] = recurrent; }

}  // namespace fluid::onnx
