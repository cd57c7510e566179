#include "frontend/readers/array_source.h"

#include <algorithm>
#include <cstring>

#include "frontend/files/npy.h"
#include "frontend/files/temporary_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// The bytes of a tensor in memory.
class TensorBytes : public MemoryBytes {
 public:
  explicit TensorBytes(Tensor tensor)
      : MemoryBytes({static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())}),
        tensor_(std::move(tensor)) {}

 private:
  Tensor tensor_;
};

void check_bools(const ArrayColumn& column, std::span<const std::byte> values) {
  if (column.type.dtype != DType::boolean) return;
  const auto is_bool = [](std::byte b) { return b <= std::byte{1}; };
  if (std::ranges::all_of(values, is_bool)) return;
  throw UserError(column.file_name + ": holds a bool that is neither 0 nor 1");
}

/// Reads arrays from their files, one sample at a time. Does not map the files: a mapping would
/// count as memory of the process, and a disk error would raise SIGBUS.
class ArraySource : public SampleSource {
 public:
  ArraySource(std::vector<ArrayColumn> arrays, std::string name)
      : arrays_(std::move(arrays)), name_(std::move(name)) {
    for (const ArrayColumn& array : arrays_) columns_.push_back(array.type);
  }
  int64_t samples() const override { return arrays_.front().samples; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed&,
            std::span<std::byte* const> to) const override {
    for (size_t c = 0; c < to.size(); ++c) {
      if (to[c] == nullptr) continue;
      const std::span<std::byte> bytes(to[c], static_cast<size_t>(columns_[c].bytes()));
      arrays_[c].file->read(arrays_[c].offset + sample * columns_[c].bytes(), bytes);
      check_bools(arrays_[c], bytes);
    }
  }
  std::string name() const override { return name_; }
  int64_t resident_bytes() const override {
    int64_t bytes = 0;
    for (const ArrayColumn& array : arrays_) bytes += array.file->resident_bytes();
    return bytes;
  }

 private:
  std::vector<ArrayColumn> arrays_;
  std::vector<Column> columns_;
  std::string name_;
};

int64_t bytes_of(const ArrayColumn& column) { return column.samples * column.type.bytes(); }

SampleSourcePtr load(const std::vector<ArrayColumn>& columns, const std::string& name) {
  Dataset data;
  data.source = name;
  for (const ArrayColumn& column : columns) {
    std::vector<int64_t> shape = {column.samples};
    shape.insert(shape.end(), column.type.shape.begin(), column.type.shape.end());
    Tensor tensor(column.type.dtype, shape);
    const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.data()),
                                     static_cast<size_t>(tensor.bytes()));
    column.file->read(column.offset, bytes);
    check_bools(column, bytes);
    data.columns.emplace_back(column.type.name, std::move(tensor));
  }
  return make_source(std::move(data));
}

}  // namespace

ArrayColumn npy_column(std::string name, std::shared_ptr<const ByteSource> file, int64_t offset,
                       int64_t size, const std::string& file_name) {
  std::string start(static_cast<size_t>(std::min(size, kMaxNpyHeader)), '\0');
  file->read(offset, {reinterpret_cast<std::byte*>(start.data()), start.size()});
  const NpyHeader header = parse_npy_header(start, size, file_name);
  if (header.shape.empty()) {
    throw UserError(file_name + ": a column needs a first dimension that counts samples");
  }
  ArrayColumn column{
      .type = {std::move(name), header.dtype, {header.shape.begin() + 1, header.shape.end()}},
      .samples = header.shape[0],
      .file = std::move(file),
      .offset = offset + header.data_offset,
      .file_name = file_name};
  if (!header.fortran_order) return column;
  std::string bytes(static_cast<size_t>(size), '\0');
  column.file->read(offset, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  column.file = std::make_shared<TensorBytes>(parse_npy(bytes, file_name));
  column.offset = 0;
  return column;
}

SampleSourcePtr make_array_source(std::vector<ArrayColumn> columns, const DataArgs& args,
                                  const std::string& name) {
  int64_t bytes = 0;
  for (const ArrayColumn& column : columns) {
    bytes += bytes_of(column);
    if (column.samples == columns.front().samples) continue;
    throw UserError("column '" + column.type.name + "' has " + std::to_string(column.samples) +
                    " samples, but the first column has " +
                    std::to_string(columns.front().samples));
  }
  if (args.get_flag("memory", bytes < kMaxLoadedBytes)) return load(columns, name);
  return std::make_shared<ArraySource>(std::move(columns), name);
}

}  // namespace fluid
