#include "frontend/readers/record_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontend/readers/column_table_context.h"
#include "frontend/readers/read_in_chunks.h"

namespace fluid {
namespace {

/// Returns the samples of `source` that are not left out.
std::vector<int64_t> samples_to_read(const RecordSource& source) {
  std::vector<int64_t> samples;
  auto left_out = source.scan().left_out.begin();
  for (int64_t sample = 0; sample < source.samples(); ++sample) {
    const bool is_left_out = left_out != source.scan().left_out.end() && *left_out == sample;
    is_left_out ? void(++left_out) : samples.push_back(sample);
  }
  return samples;
}

/// Parses the samples of `source`.
Dataset load(const RecordSource& source) {
  Dataset data;
  data.source = source.name();
  data.table = source.table();
  data.skipped = source.skipped();
  const std::vector<int64_t> samples = samples_to_read(source);
  std::vector<Tensor> tensors = sample_buffers(source.columns(), std::ssize(samples));
  data.lines.resize(samples.size());
  read_in_chunks(std::ssize(samples), source.file().records_per_chunk(),
                 [&](int64_t begin, int64_t end) {
                   std::vector<std::byte*> to = sample_addresses(tensors, begin);
                   for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                     source.read(samples[i], {}, to);
                     data.lines[i] = source.line(samples[i]);
                     for (size_t c = 0; c < to.size(); ++c) to[c] += source.columns()[c].bytes();
                   }
                   return [] {};
                 });
  if (!source.scan().left_out.empty()) data.rows = samples;
  const bool is_consecutive = !samples.empty() && data.rows.empty() &&
                              data.lines.back() - data.lines.front() + 1 == std::ssize(samples);
  if (is_consecutive) data.first_line = data.lines.front();
  if (is_consecutive || samples.empty()) data.lines = {};
  for (size_t c = 0; c < tensors.size(); ++c) {
    const std::string& name = source.columns()[c].name;
    data.columns.emplace_back(name, std::move(tensors[c]));
    std::vector<std::string> classes = source.classes(name);
    if (!classes.empty()) data.classes[name] = std::move(classes);
  }
  return data;
}

}  // namespace

RecordSource::RecordSource(std::shared_ptr<const RecordFile> file, int64_t first_record,
                           TextScan scan, ColumnTablePtr table)
    : file_(std::move(file)),
      first_record_(first_record),
      scan_(std::move(scan)),
      table_(std::move(table)) {}

void RecordSource::add_column(Column type, std::vector<std::string> classes) {
  columns_.push_back(std::move(type));
  classes_.push_back(std::move(classes));
}

void RecordSource::add_split_column(const std::string& name) {
  std::vector<std::string> names = categories_of(scan_.splits);
  for (const std::string& split : scan_.splits) {
    split_ids_.push_back(std::ranges::lower_bound(names, split) - names.begin());
  }
  has_split_column_ = true;
  add_column({name, DType::i64}, std::move(names));
}

void RecordSource::read(int64_t sample, const AugmentationSeed&,
                        std::span<std::byte* const> to) const {
  const auto parsed = to.first(columns_.size() - (has_split_column_ ? 1 : 0));
  if (has_split_column_ && to.back() != nullptr) {
    read_column(sample, 1, columns_.size() - 1, to.back());
    const bool reads_it_alone =
        std::ranges::all_of(parsed, [](const std::byte* column) { return column == nullptr; });
    if (reads_it_alone) return;
  }
  parse(file_->read(first_record_ + sample), parsed);
}

void RecordSource::read_column(int64_t first, int64_t count, size_t column, std::byte* to) const {
  if (!has_split_column_ || column + 1 != columns_.size()) {
    SampleSource::read_column(first, count, column, to);
    return;
  }
  std::vector<int32_t> splits(static_cast<size_t>(count));
  scan_.split_of_sample->read(first * int64_t{sizeof(int32_t)},
                              std::as_writable_bytes(std::span(splits)));
  for (const int32_t split : splits) {
    std::memcpy(to, &split_ids_[static_cast<size_t>(split)], sizeof split_ids_[0]);
    to += sizeof split_ids_[0];
  }
}

std::vector<std::string> RecordSource::classes(const std::string& column) const {
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].name == column) return classes_[c];
  }
  return {};
}

int64_t RecordSource::resident_bytes() const {
  const int64_t splits =
      scan_.split_of_sample != nullptr ? scan_.split_of_sample->resident_bytes() : 0;
  return file_->resident_bytes() + splits;
}

SampleSourcePtr open_records(std::shared_ptr<const RecordSource> source, bool is_in_memory) {
  if (is_in_memory) return make_source(load(*source));
  if (source->scan().left_out.empty()) return source;
  RowSet kept = all_rows_except(source->samples(), source->scan().left_out);
  return select_rows(std::move(source), std::move(kept));
}

}  // namespace fluid
