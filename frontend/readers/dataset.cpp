#include "frontend/readers/dataset.h"

#include <cstring>

#include "ir/text.h"

namespace fluid {
namespace {

Tensor rows_of(const Tensor& column, std::span<const int64_t> samples) {
  std::vector<int64_t> shape = column.shape();
  const auto bytes = static_cast<size_t>(column.bytes() / shape.at(0));
  shape[0] = static_cast<int64_t>(samples.size());
  Tensor part(column.dtype(), shape);
  auto* to = static_cast<std::byte*>(part.data());
  for (const int64_t sample : samples) {
    const auto* from = static_cast<const std::byte*>(column.data());
    std::memcpy(to, from + static_cast<size_t>(sample) * bytes, bytes);
    to += bytes;
  }
  return part;
}

}  // namespace

int64_t Dataset::samples() const {
  if (columns.empty() || columns.front().second.shape().empty()) return 0;
  return columns.front().second.shape()[0];
}

const Tensor* Dataset::find(std::string_view name) const {
  for (const auto& [column, tensor] : columns) {
    if (column == name) return &tensor;
  }
  return nullptr;
}

int64_t Dataset::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : columns) sum += tensor.bytes();
  return sum + static_cast<int64_t>((rows.size() + lines.size()) * sizeof rows[0]);
}

int64_t Dataset::source_index(int64_t sample) const {
  return rows.empty() ? sample : rows.at(static_cast<size_t>(sample));
}

std::string Dataset::location(int64_t sample) const {
  const int64_t line = !lines.empty()   ? lines.at(static_cast<size_t>(sample))
                       : first_line > 0 ? first_line + source_index(sample)
                                        : 0;
  if (line > 0) return ir::file_and_line(source, line);
  return "sample " + std::to_string(source_index(sample)) +
         (source.empty() ? "" : " of '" + source + "'");
}

std::string Dataset::find_location(const std::string& name, int64_t value) const {
  const Tensor* column = find(name);
  if (column == nullptr || is_float(column->dtype()) || column->shape().empty()) return "";
  for (int64_t i = 0; i < column->numel(); ++i) {
    if (column->integer(i) == value) return location(i / (column->numel() / column->shape()[0]));
  }
  return "";
}

Dataset Dataset::first(int64_t n) const {
  if (n >= samples()) return *this;
  Dataset part;
  part.source = source;
  part.first_line = first_line;
  part.classes = classes;
  part.table = table;
  part.skipped = skipped;
  for (const auto& [name, tensor] : columns) {
    std::vector<int64_t> shape = tensor.shape();
    shape[0] = n;
    part.columns.emplace_back(
        name, Tensor::view(tensor.dtype(), shape, const_cast<void*>(tensor.data())).copy());
  }
  const auto first_of = [n](const std::vector<int64_t>& all) {
    return std::vector<int64_t>(all.begin(), all.begin() + (all.empty() ? 0 : n));
  };
  part.rows = first_of(rows);
  part.lines = first_of(lines);
  return part;
}

Dataset Dataset::select(std::span<const int64_t> samples) const {
  Dataset part;
  part.source = source;
  part.first_line = first_line;
  part.classes = classes;
  part.table = table;
  part.skipped = skipped;
  for (const auto& [name, tensor] : columns) {
    part.columns.emplace_back(name, rows_of(tensor, samples));
  }
  for (const int64_t sample : samples) {
    part.rows.push_back(source_index(sample));
    if (!lines.empty()) part.lines.push_back(lines.at(static_cast<size_t>(sample)));
  }
  return part;
}

}  // namespace fluid
