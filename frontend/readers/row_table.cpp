#include "frontend/readers/row_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/text.h"

namespace fluid {
namespace {

constexpr int64_t kBytesPerRead = int64_t{1} << 20;

void copy_row(const RowTable& table, const std::byte* row, std::span<std::byte* const> to) {
  for (size_t c = 0; c < to.size(); ++c) {
    if (to[c] == nullptr) continue;
    const RowTableColumn& column = table.columns[c];
    if (column.convert != nullptr) {
      column.convert(row + column.offset, to[c]);
    } else if (column.type.bytes() > 0) {
      std::memcpy(to[c], row + column.offset, static_cast<size_t>(column.type.bytes()));
    }
  }
}

/// A source that reads each sample from the temporary file of a RowTable.
class RowTableSource : public SampleSource {
 public:
  explicit RowTableSource(RowTable table) : table_(std::move(table)) {
    for (const RowTableColumn& column : table_.columns) columns_.push_back(column.type);
  }
  int64_t samples() const override { return table_.samples; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed&,
            std::span<std::byte* const> to) const override {
    thread_local std::vector<std::byte> row;
    row.resize(static_cast<size_t>(table_.row_bytes));
    table_.rows->read(sample * table_.row_bytes, row);
    copy_row(table_, row.data(), to);
  }
  std::string name() const override { return table_.source; }
  std::string location(int64_t sample) const override {
    std::byte line[sizeof(int64_t)];
    table_.rows->read(sample * table_.row_bytes, line);
    return ir::file_and_line(table_.source, value_at<int64_t>(line));
  }
  std::vector<std::string> classes(const std::string& name) const override {
    for (const RowTableColumn& column : table_.columns) {
      if (column.type.name == name) return column.classes;
    }
    return {};
  }
  ColumnTablePtr table() const override { return table_.table; }
  SkippedRecords skipped() const override { return table_.skipped; }

 private:
  RowTable table_;
  std::vector<Column> columns_;
};

/// Loads all rows into memory.
Dataset load(const RowTable& table) {
  Dataset data;
  data.source = table.source;
  data.table = table.table;
  data.skipped = table.skipped;
  std::vector<Column> types;
  for (const RowTableColumn& column : table.columns) types.push_back(column.type);
  std::vector<Tensor> tensors = sample_buffers(types, table.samples);
  table.for_each_row([&](const std::byte* row) {
    copy_row(table, row, sample_addresses(tensors, std::ssize(data.lines)));
    data.lines.push_back(value_at<int64_t>(row));
  });
  const bool is_consecutive =
      data.lines.empty() || data.lines.back() - data.lines.front() + 1 == table.samples;
  if (is_consecutive) {
    data.first_line = data.lines.empty() ? 0 : data.lines.front();
    data.lines = {};
  }
  for (size_t c = 0; c < tensors.size(); ++c) {
    const RowTableColumn& column = table.columns[c];
    data.columns.emplace_back(column.type.name, std::move(tensors[c]));
    if (!column.classes.empty()) data.classes[column.type.name] = column.classes;
  }
  return data;
}

}  // namespace

int32_t StringTable::index_of(std::string_view text, int64_t line) {
  const auto [found, is_new] =
      indices_.try_emplace(std::string(text), static_cast<int32_t>(texts_.size()));
  if (is_new) {
    texts_.emplace_back(text);
    lines_.push_back(line);
  }
  return found->second;
}

Conversion id_conversion(std::vector<int64_t> ids) {
  return [ids = std::move(ids)](const std::byte* from, std::byte* to) {
    std::memcpy(to, &ids[static_cast<size_t>(value_at<int32_t>(from))], sizeof ids[0]);
  };
}

void RowTable::for_each_row(const std::function<void(const std::byte*)>& use) const {
  const int64_t rows_per_read = std::max<int64_t>(1, kBytesPerRead / row_bytes);
  std::vector<std::byte> part;
  for (int64_t row = 0; row < samples; row += rows_per_read) {
    const int64_t count = std::min(rows_per_read, samples - row);
    part.resize(static_cast<size_t>(count * row_bytes));
    rows->read(row * row_bytes, part);
    for (int64_t i = 0; i < count; ++i) use(part.data() + i * row_bytes);
  }
}

SampleSourcePtr make_source(RowTable table) {
  if (table.rows->resident_bytes() > 0 || table.samples == 0) return make_source(load(table));
  return std::make_shared<RowTableSource>(std::move(table));
}

}  // namespace fluid
