#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// How PyTorch stores the value of a parameter or buffer of a program.
///
/// | program | PyTorch |
/// |---|---|
/// | linear: w [in, out], b | weight [out, in], bias |
/// | conv, conv_transpose, embedding: w, b | weight, bias, of equal shapes |
/// | batch_norm: gamma, beta, running_mean, running_var | weight, bias, running_mean, running_var |
/// | layer_norm, rms_norm, group_norm, instance_norm: scale, bias | weight, bias |
/// | multi_head_attention: qkv.w, qkv.b, out.w, out.b | in_proj_weight, in_proj_bias,
///   out_proj.weight, out_proj.bias; linear weights are transposed |
/// | rnn, lstm: layerN.w, .u, .b | weight_ih_lN, weight_hh_lN, bias_ih_lN + bias_hh_lN |
/// | gru: layerN.w, .u, .b, .c | weight_ih_lN, weight_hh_lN, bias_ih_lN + bias_hh_lN; the candidate
///   gate's part of bias_hh_lN is c, and is not added to b |
///
/// A backward direction is layerN.reverse in a program, and has the suffix _reverse in PyTorch.
/// PyTorch's num_batches_tracked has no counterpart.
struct PytorchSource {
  enum class Kind : uint8_t { same, transposed, bias_sum, gru_bias, gru_candidate_bias };
  Kind kind = Kind::same;
  std::vector<std::string> names;  ///< tensors from which the value is computed

  /// Computes the value of the parameter or buffer from `tensors`, the tensors `names` of the file
  /// `path`. `shape`: shape in the program. Throws UserError unless the biases of a recurrent layer
  /// are float vectors of equal size.
  Tensor value(const std::vector<Tensor>& tensors, const std::vector<int64_t>& shape,
               const std::string& path) const;
};

/// Maps the parameters and buffers of a program to PyTorch tensors, as specified at PytorchSource.
class PytorchLayout {
 public:
  explicit PytorchLayout(const ir::Program& program);
  /// Returns the PyTorch tensors from which the parameter or buffer `name` is computed.
  PytorchSource source(const std::string& name) const;
  /// Whether `name` is the weight of a linear layer: a rank-2 parameter that every matmul reads as
  /// its right operand, not transposed. LoRA adapters do not count: all files hold them as they are
  /// in the program.
  bool is_linear_weight(const std::string& name) const { return linear_.contains(name); }

 private:
  std::map<std::string, std::vector<int64_t>> linear_;  ///< weight of a linear layer -> shape
  /// Scope of a recurrent layer and direction -> whether it is a GRU.
  std::map<std::string, bool> recurrent_;
};

/// Whether `name` is PyTorch's counter num_batches_tracked of batch_norm, which loading ignores.
bool is_pytorch_counter(const std::string& name);

Tensor transposed(const Tensor& matrix);

}  // namespace fluid
