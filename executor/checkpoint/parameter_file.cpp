#include "executor/checkpoint/parameter_file.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <set>

#include "ir/error.h"
#include "ir/near.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr const char* kHowToSayLayout =
    "pass --params-layout pytorch or fluid (in C++ load(path, layout))";

/// Returns the weights of linear layers: parameter name -> shape. A weight is a rank-2 parameter
/// that every matmul reads as its right operand, not transposed.
std::map<std::string, std::vector<int64_t>> linear_weights(const ir::Program& program) {
  std::map<std::string, std::vector<int64_t>> weights;
  std::set<std::string> others;
  for (const auto& op : program.main().ops) {
    if (op->name != "matmul") continue;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const ir::Op& source = *op->operands[i].op();
      const Shape& shape = op->operands[i].shape();
      if (source_kind(source) != SourceKind::parameter || shape.rank() != 2) continue;
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

/// Throws UserError when the layout of a weight is ambiguous or does not match `layout`.
void check_layout(const std::string& path, const TensorFile& file, const std::string& name,
                  const Tensor& given, const std::vector<int64_t>& shape, ParamsLayout layout) {
  const bool square = shape[0] == shape[1] && shape[0] > 1;
  if (given.shape() == shape && square && layout == ParamsLayout::unspecified &&
      !file.written_by_fluid) {
    throw UserError(
        fmt::format("{}: the file does not state its layout, and the linear weight '{}' is square, "
                    "{}, which PyTorch stores transposed: {}",
                    path, name, given.str(), kHowToSayLayout));
  }
  if (given.shape() == shape && shape[0] != shape[1] && layout == ParamsLayout::pytorch) {
    throw UserError(fmt::format(
        "{}: the linear weight '{}' is given as {}, as in the program, and not transposed, as "
        "PyTorch stores it: pass --params-layout fluid (in C++ load(path, ParamsLayout::fluid))",
        path, name, given.str()));
  }
  const bool turned =
      shape[0] != shape[1] && given.shape() == std::vector<int64_t>{shape[1], shape[0]};
  if (turned && layout != ParamsLayout::pytorch) {
    throw UserError(
        fmt::format("{}: the linear weight '{}' is given as {}, the transpose of the program's "
                    "[{}, {}], as PyTorch stores it: pass --params-layout pytorch (in C++ "
                    "load(path, ParamsLayout::pytorch))",
                    path, name, given.str(), shape[0], shape[1]));
  }
}

}  // namespace

TensorFile read_parameters(const std::string& path, ParamsLayout layout,
                           const ir::Program& program) {
  TensorFile file = read_safetensors(path);
  if (file.written_by_fluid && layout == ParamsLayout::pytorch) {
    throw UserError(path + " was written by Fluid in its own layout, not that of PyTorch");
  }
  const auto weights = linear_weights(program);
  for (auto& [name, tensor] : file.tensors) {
    const auto weight = weights.find(name);
    if (weight == weights.end() || tensor.shape().size() != 2) continue;
    check_layout(path, file, name, tensor, weight->second, layout);
    if (layout == ParamsLayout::pytorch) tensor = transposed(tensor);
  }
  return file;
}

std::string missing_parameter_message(const std::string& path, const std::string& name,
                                      const TensorFile& file) {
  constexpr size_t kMaxNames = 8;
  std::vector<std::string> names;
  for (const auto& [held, tensor] : file.tensors) names.push_back(held);
  return fmt::format("{}: parameter '{}' is missing; the file holds {}", path, name,
                     nearest_names(name, names, kMaxNames));
}

}  // namespace fluid
