#include "frontend/readers/array_source.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "frontend/files/npy.h"
#include "frontend/files/temporary_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Maximum size in bytes of what is read at once from an array that is transposed or widened.
constexpr int64_t kPartBytes = int64_t{4} << 20;
/// Size in bytes of the runs of a tile of an array that is transposed.
constexpr int64_t kRunBytes = int64_t{8} << 10;

void check_bools(const ArrayColumn& column, std::span<const std::byte> values) {
  if (column.type.dtype != DType::boolean) return;
  const auto is_bool = [](std::byte b) { return b <= std::byte{1}; };
  if (std::ranges::all_of(values, is_bool)) return;
  throw UserError(column.file_name + ": holds a bool that is neither 0 nor 1");
}

/// Reads `count` samples, from `first` on, to `to`.
void read_samples(const ArrayColumn& column, int64_t first, int64_t count, std::byte* to) {
  const int64_t offset = column.offset + first * column.sample_bytes();
  const auto bytes = static_cast<size_t>(count * column.sample_bytes());
  if (column.stored == NpyInteger::none) {
    column.file->read(offset, {to, bytes});
    check_bools(column, {to, bytes});
    return;
  }
  thread_local std::vector<std::byte> elements;
  elements.resize(bytes);
  column.file->read(offset, elements);
  widen_npy(column.stored, elements, to);
}

using WriteBytes = std::function<void(int64_t offset, std::span<const std::byte>)>;

/// Reads an array in Fortran order tile by tile, and writes it in row-major order.
class Transposition {
 public:
  /// The array starts at `offset` of `file`, which must outlive the Transposition.
  Transposition(const ByteSource& file, int64_t offset, const NpyHeader& header)
      : file_(file), offset_(offset), samples_(header.shape[0]), width_(header.element_bytes()) {
    const Column sample{
        .name = "", .dtype = DType::u8, .shape = {header.shape.begin() + 1, header.shape.end()}};
    column_of_.resize(static_cast<size_t>(sample.numel()));
    for (int64_t i = 0; i < elements(); ++i) {
      int64_t rest = i, column = 0;
      for (size_t d = sample.shape.size(); d-- > 0;) {  // from the index, the last one fastest
        int64_t stride = 1;
        for (size_t before = 0; before < d; ++before) stride *= sample.shape[before];
        column += rest % sample.shape[d] * stride;
        rest /= sample.shape[d];
      }
      column_of_[static_cast<size_t>(i)] = column;
    }
  }

  void run(const WriteBytes& write) {
    if (samples_ * elements() == 0) return;
    const int64_t most_samples = std::max(kRunBytes, kPartBytes / elements()) / width_;
    const int64_t tile_samples = std::clamp<int64_t>(most_samples, 1, samples_);
    const int64_t most_elements = kPartBytes / (tile_samples * width_);
    const int64_t tile_elements = std::clamp<int64_t>(most_elements, 1, elements());
    for (int64_t sample = 0; sample < samples_; sample += tile_samples) {
      for (int64_t element = 0; element < elements(); element += tile_elements) {
        move_tile(sample, std::min(tile_samples, samples_ - sample), element,
                  std::min(tile_elements, elements() - element), write);
      }
    }
  }

 private:
  int64_t elements() const { return std::ssize(column_of_); }  ///< of one sample
  int64_t column_of(int64_t element) const { return column_of_[static_cast<size_t>(element)]; }

  void move_tile(int64_t sample, int64_t samples, int64_t element, int64_t elements,
                 const WriteBytes& write) {
    read_columns(sample, samples, element, elements);
    rows_.resize(columns_.size());
    const auto width = static_cast<size_t>(width_);
    for (int64_t e = 0; e < elements; ++e) {
      for (int64_t s = 0; s < samples; ++s) {
        std::memcpy(rows_.data() + (s * elements + e) * width_,
                    columns_.data() + (e * samples + s) * width_, width);
      }
    }
    const bool are_whole_rows = elements == this->elements();
    const int64_t rows_at_once = are_whole_rows ? samples : 1;
    const int64_t row_bytes = elements * width_;
    for (int64_t s = 0; s < samples; s += rows_at_once) {
      write(((sample + s) * this->elements() + element) * width_,
            std::span(rows_).subspan(static_cast<size_t>(s * row_bytes),
                                     static_cast<size_t>(rows_at_once * row_bytes)));
    }
  }

  /// Reads a tile to columns_. Reads columns that are whole and follow each other at once.
  void read_columns(int64_t sample, int64_t samples, int64_t element, int64_t elements) {
    const int64_t run_bytes = samples * width_;
    columns_.resize(static_cast<size_t>(elements * run_bytes));
    for (int64_t first = 0, next = 0; first < elements; first = next) {
      for (next = first + 1; samples == samples_ && next < elements; ++next) {
        if (column_of(element + next) != column_of(element + next - 1) + 1) break;
      }
      file_.read(offset_ + (column_of(element + first) * samples_ + sample) * width_,
                 std::span(columns_).subspan(static_cast<size_t>(first * run_bytes),
                                             static_cast<size_t>((next - first) * run_bytes)));
    }
  }

  const ByteSource& file_;
  int64_t offset_, samples_, width_;
  std::vector<int64_t> column_of_;  ///< row-major index in a sample -> index in the file's order
  std::vector<std::byte> columns_, rows_;  ///< a tile, before and after
};

/// Copies an array in Fortran order, row-major: to memory if it has at most `memory_limit` bytes,
/// else to a temporary file.
std::shared_ptr<const ByteSource> transpose(const ByteSource& file, int64_t offset,
                                            const NpyHeader& header, int64_t memory_limit) {
  int64_t bytes = header.element_bytes();
  for (const int64_t extent : header.shape) bytes *= extent;
  if (bytes <= memory_limit) {
    const std::shared_ptr<const ByteSource> array = load_bytes(file, offset, bytes);
    std::vector<std::byte> rows(static_cast<size_t>(bytes));
    Transposition(*array, 0, header).run([&](int64_t at, std::span<const std::byte> part) {
      std::ranges::copy(part, rows.begin() + at);
    });
    return std::make_shared<OwnedBytes>(std::move(rows));
  }
  TemporaryFile rows;
  Transposition(file, offset, header).run([&](int64_t at, std::span<const std::byte> part) {
    rows.write_at(at, part);
  });
  return rows.release();
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
      read_samples(arrays_[c], sample, 1, to[c]);
    }
  }
  void read_column(int64_t first, int64_t count, size_t column, std::byte* to) const override {
    read_samples(arrays_[column], first, count, to);
  }
  void check_files() const override {
    for (const ArrayColumn& array : arrays_) {
      if (array.check != nullptr) array.check();
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

/// Reads all samples of a column to `to`.
void load(const ArrayColumn& column, std::byte* to) {
  if (column.check != nullptr) column.check();
  const int64_t part = std::max<int64_t>(1, kPartBytes / std::max<int64_t>(1, column.type.bytes()));
  for (int64_t first = 0; first < column.samples; first += part) {
    read_samples(column, first, std::min(part, column.samples - first),
                 to + first * column.type.bytes());
  }
}

SampleSourcePtr load(const std::vector<ArrayColumn>& columns, const std::string& name) {
  Dataset data;
  data.source = name;
  for (const ArrayColumn& column : columns) {
    std::vector<int64_t> shape = {column.samples};
    shape.insert(shape.end(), column.type.shape.begin(), column.type.shape.end());
    Tensor tensor(column.type.dtype, shape);
    load(column, static_cast<std::byte*>(tensor.data()));
    data.columns.emplace_back(column.type.name, std::move(tensor));
  }
  return make_source(std::move(data));
}

}  // namespace

int64_t ArrayColumn::sample_bytes() const {
  return type.numel() * NpyHeader{.dtype = type.dtype, .stored = stored}.element_bytes();
}

ArrayColumn npy_column(std::string name, std::shared_ptr<const ByteSource> file, int64_t offset,
                       int64_t size, const std::string& file_name, int64_t memory_limit) {
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
      .file_name = file_name,
      .stored = header.stored};
  if (!header.fortran_order) return column;
  column.file = transpose(*column.file, column.offset, header, memory_limit);
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
