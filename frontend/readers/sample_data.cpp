#include "frontend/readers/sample_data.h"

#include <algorithm>

namespace fluid {

int64_t Column::numel() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::string Column::str() const {
  const std::string type = Tensor::view(dtype, shape, nullptr).str();
  return name + " " + (shape.empty() ? type.substr(0, type.find('[')) : type);
}

std::string SampleData::location(int64_t sample) const {
  const std::string source = name();
  return "sample " + std::to_string(source_index(sample)) +
         (source.empty() ? "" : " of '" + source + "'");
}

std::string SampleData::find_location(const std::string&, int64_t) const { return ""; }

std::vector<std::string> SampleData::classes(const std::string&) const { return {}; }

const Column* SampleData::find(std::string_view column) const {
  for (const Column& candidate : columns()) {
    if (candidate.name == column) return &candidate;
  }
  return nullptr;
}

namespace {

std::vector<int64_t> shape_of(const Column& column, int64_t samples) {
  std::vector<int64_t> shape = {samples};
  shape.insert(shape.end(), column.shape.begin(), column.shape.end());
  return shape;
}

}  // namespace

Batch SampleData::sample_types() const {
  Batch batch{.size = 1};
  for (const Column& column : columns()) {
    batch.columns.emplace_back(column.name,
                               Tensor::view(column.dtype, shape_of(column, 1), nullptr));
  }
  return batch;
}

std::vector<Tensor> sample_buffers(const std::vector<Column>& columns, int64_t samples) {
  std::vector<Tensor> buffers;
  for (const Column& column : columns) {
    buffers.emplace_back(column.dtype, shape_of(column, samples));
  }
  return buffers;
}

std::vector<std::byte*> sample_addresses(std::vector<Tensor>& buffers, int64_t sample) {
  std::vector<std::byte*> rows;
  for (Tensor& buffer : buffers) {
    const int64_t bytes = buffer.bytes() / std::max<int64_t>(1, buffer.shape()[0]);
    rows.push_back(static_cast<std::byte*>(buffer.data()) + sample * bytes);
  }
  return rows;
}

}  // namespace fluid
