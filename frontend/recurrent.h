#pragma once

#include <optional>
#include <string>

#include "frontend/init.h"
#include "ir/graph.h"
#include "ops/required.h"

namespace fluid {

/// Options of rnn(), gru() and lstm(). By default, all weights and biases are initialised uniformly
/// in [-1 / sqrt(units), 1 / sqrt(units)], as in PyTorch.
struct Recurrent {
  Required<int64_t> units;     ///< size of the hidden state, H
  int64_t layers = 1;          ///< number of stacked layers
  bool bidirectional = false;  ///< adds a second recurrence that runs from the last step backwards
  bool bias = true;
  bool relu = false;  ///< only for rnn(): relu instead of tanh
  /// Dropout probability, in [0, 1], for the output of each layer except the last. Only in training
  /// steps; each layer has its own random numbers.
  double dropout = 0;
  /// Initial states [N, H], one for each layer and direction. lstm() has two for each: the hidden
  /// state and the cell state. The directions of a layer are consecutive. Empty: zeros.
  Values initial = {};
  /// Lengths of the sequences, integers [N]. Elements past the length of a sequence do not change
  /// the states, and their output is zero, as with a PackedSequence. A step with a length outside
  /// [0, T] fails. Absent: all sequences have length T.
  std::optional<Value> lengths = {};
  /// Initialiser of w [gates * H, features] and u [gates * H, H]. The fan-in of both is gates * H,
  /// their first extent.
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};  ///< scope; default: rnn0, gru0, lstm0...
};

struct RecurrentResult {
  Value output;   ///< hidden states of the last layer, [N, T, H], or [N, T, 2 H] if bidirectional
  Values states;  ///< final states, in the order of Recurrent::initial
};

/// Elman network: h' = tanh(x w^T + h u^T + b). x: float [N, T, features]. The parameters of a
/// layer are w [H, features], u [H, H] and b [H].
RecurrentResult rnn(Value x, const Recurrent& layer, const Loc& loc = Loc::here());

/// Gated recurrent unit, like torch.nn.GRU:
///   r, z = sigmoid(x w^T + h u^T + b)
///   n = tanh(x w_n^T + b_n + r * (h u_n^T + c))
///   h' = (1 - z) n + z h
/// The parameters of a layer are w [3 H, features], u [3 H, H], b [3 H] and c [H]. The order of the
/// gates in w, u and b is r, z, n.
RecurrentResult gru(Value x, const Recurrent& layer, const Loc& loc = Loc::here());

/// Long short-term memory, like torch.nn.LSTM:
///   i, f, o = sigmoid(x w^T + h u^T + b)
///   g = tanh(x w^T + h u^T + b)
///   c' = f c + i g
///   h' = o tanh(c')
/// The parameters of a layer are w [4 H, features], u [4 H, H] and b [4 H]. The order of the gates
/// is i, f, g, o. b is the sum of PyTorch's two biases.
RecurrentResult lstm(Value x, const Recurrent& layer, const Loc& loc = Loc::here());

}  // namespace fluid
