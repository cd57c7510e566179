#include "executor/checkpoint/pytorch_layout.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "frontend/lora.h"
#include "ir/error.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

using Kind = PytorchSource::Kind;

/// Pairs of parameter name suffixes: Fluid's and PyTorch's. The first pair that matches is used.
constexpr std::pair<std::string_view, std::string_view> kSuffixes[] = {
    {".qkv.w", ".in_proj_weight"}, {".qkv.b", ".in_proj_bias"}, {".out.w", ".out_proj.weight"},
    {".out.b", ".out_proj.bias"},  {".w", ".weight"},           {".b", ".bias"},
    {".gamma", ".weight"},         {".beta", ".bias"},          {".scale", ".weight"},
};

std::map<std::string, std::vector<int64_t>> linear_weights(const ir::Program& program) {
  std::map<std::string, std::vector<int64_t>> weights;
  std::set<std::string> others;
  for (const auto& op : program.main().ops) {
    if (op->name != "matmul") continue;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const ir::Op& source = *op->operands[i].op();
      const Shape& shape = op->operands[i].shape();
      if (source_kind(source) != SourceKind::parameter || shape.rank() != 2) continue;
      if (is_lora_adapter(source)) continue;
      if (i == 1 && !op->attrs.get_or("transpose_b", false)) {
        weights[source.symbol] = {shape[0].size, shape[1].size};
      } else {
        others.insert(source.symbol);
      }
    }
  }
  std::erase_if(weights, [&](const auto& weight) { return others.contains(weight.first); });
  return weights;
}

/// Maps the scope of each recurrent layer and direction ("lstm0.layer0.reverse") to whether it is a
/// GRU, the only recurrent layer with a parameter c. A GRU without biases maps to false. This is
/// harmless, because GRUs and other layers differ only in the conversion of biases.
std::map<std::string, bool> recurrent_scopes(const ir::Program& program) {
  std::set<std::string> names;
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) == SourceKind::parameter) names.insert(op->symbol);
  }
  std::map<std::string, bool> scopes;
  for (const std::string& name : names) {
    if (!name.ends_with(".u")) continue;
    const std::string scope = name.substr(0, name.size() - 2);
    if (names.contains(scope + ".w") && scope.find(".layer") != std::string::npos) {
      scopes[scope] = names.contains(scope + ".c");
    }
  }
  return scopes;
}

/// Returns PyTorch's name of a recurrent parameter. For example, "lstm0.layer1.reverse" and
/// "weight_ih" give "lstm0.weight_ih_l1_reverse".
std::string recurrent_name(std::string scope, const std::string& what) {
  constexpr std::string_view kReverse = ".reverse", kLayer = ".layer";
  const bool reverse = scope.ends_with(kReverse);
  if (reverse) scope.resize(scope.size() - kReverse.size());
  const size_t at = scope.rfind(kLayer);
  return scope.substr(0, at) + "." + what + "_l" + scope.substr(at + kLayer.size()) +
         (reverse ? "_reverse" : "");
}

template <class T>
Tensor added_below(const Tensor& a, const Tensor& b, int64_t end) {
  Tensor sum = a.copy();
  for (size_t i = 0; i < static_cast<size_t>(end); ++i) sum.as<T>()[i] += b.as<T>()[i];
  return sum;
}

/// Returns `a` with `b` added to the elements with an index below `end`. The result is f64 if a and
/// b are f64, else f32.
Tensor sum_below(const Tensor& a, const Tensor& b, int64_t end) {
  if (a.dtype() == f64 && b.dtype() == f64) return added_below<double>(a, b, end);
  return added_below<float>(a.cast(f32), b.cast(f32), end);
}

Tensor elements_from(const Tensor& all, int64_t begin) {
  Tensor part(all.dtype(), {all.numel() - begin});
  std::memcpy(part.data(), static_cast<const std::byte*>(all.data()) + begin * size_of(all.dtype()),
              static_cast<size_t>(part.bytes()));
  return part;
}

}  // namespace

Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result(matrix.dtype(), {columns, rows});
  const auto size = static_cast<size_t>(size_of(matrix.dtype()));
  const auto* from = static_cast<const std::byte*>(matrix.data());
  auto* to = static_cast<std::byte*>(result.data());
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r, to += size) {
      std::memcpy(to, from + static_cast<size_t>(r * columns + c) * size, size);
    }
  }
  return result;
}

bool is_pytorch_counter(const std::string& name) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked");
}

Tensor PytorchSource::value(const std::vector<Tensor>& tensors, const std::vector<int64_t>& shape,
                            const std::string& path) const {
  const Tensor& first = tensors.front();
  if (kind == Kind::same) return first;
  if (kind == Kind::transposed) return first.shape().size() == 2 ? transposed(first) : first;
  const Tensor& last = tensors.back();
  const bool is_bias = first.shape().size() == 1 && is_float(first.dtype());
  if (!is_bias || first.shape() != last.shape() || !is_float(last.dtype())) {
    throw UserError(path + ": '" + names.front() + "' is " + first.str() + ", but '" +
                    names.back() + "' is " + last.str() + "; both are biases of one layer");
  }
  if (kind == Kind::bias_sum) return sum_below(first, last, first.numel());
  // Number of biases of the reset and update gates. The biases of the candidate gate follow.
  const int64_t gates = first.numel() / 3 * 2;
  if (kind == Kind::gru_bias) return sum_below(first, last, gates);
  return first.numel() == 3 * shape.front() ? elements_from(last, gates) : last;
}

PytorchLayout::PytorchLayout(const ir::Program& program)
    : linear_(linear_weights(program)), recurrent_(recurrent_scopes(program)) {}

PytorchSource PytorchLayout::source(const std::string& name) const {
  const size_t dot = name.rfind('.');
  const std::string scope = dot == std::string::npos ? "" : name.substr(0, dot);
  if (const auto recurrent = recurrent_.find(scope); recurrent != recurrent_.end()) {
    const char role = name.back();
    if (role == 'w') return {Kind::same, {recurrent_name(scope, "weight_ih")}};
    if (role == 'u') return {Kind::same, {recurrent_name(scope, "weight_hh")}};
    const std::vector<std::string> biases = {recurrent_name(scope, "bias_ih"),
                                             recurrent_name(scope, "bias_hh")};
    if (role == 'c') return {Kind::gru_candidate_bias, biases};
    return {recurrent->second ? Kind::gru_bias : Kind::bias_sum, biases};
  }
  const Kind kind = is_linear_weight(name) ? Kind::transposed : Kind::same;
  for (const auto& [ours, theirs] : kSuffixes) {
    if (!name.ends_with(ours)) continue;
    return {kind, {name.substr(0, name.size() - ours.size()) + std::string(theirs)}};
  }
  return {kind, {name}};
}

}  // namespace fluid
