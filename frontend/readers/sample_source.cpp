#include "frontend/readers/sample_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>

#include "frontend/readers/batch_transform.h"
#include "frontend/readers/forwarded_data.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Returns the table of `source` with its feeds renamed by `kept`.
ColumnTablePtr with_renamed_feeds(const SampleSource& source,
                                  const std::vector<ColumnSelection>& kept) {
  const ColumnTablePtr table = source.table();
  if (table == nullptr) return nullptr;
  ColumnTable renamed = *table;
  for (const ColumnSelection& column : kept)
    renamed.feeds.erase(source.columns()[column.index].name);
  for (const ColumnSelection& column : kept) {
    const auto feed = table->feeds.find(source.columns()[column.index].name);
    if (feed != table->feeds.end()) renamed.feeds[column.name] = feed->second;
  }
  return std::make_shared<const ColumnTable>(std::move(renamed));
}

class DatasetSource : public SampleSource {
 public:
  explicit DatasetSource(Dataset data) : data_(std::move(data)) {
    for (const auto& [name, tensor] : data_.columns) {
      if (tensor.shape().empty()) {
        throw UserError("column '" + name + "' is " + tensor.str() +
                        ": a column needs a first dimension that counts samples");
      }
      if (tensor.shape()[0] != samples()) {
        throw UserError("column '" + name + "' has " + std::to_string(tensor.shape()[0]) +
                        " samples, but the first column has " + std::to_string(samples()));
      }
      columns_.push_back(
          {name, tensor.dtype(), {tensor.shape().begin() + 1, tensor.shape().end()}});
      bytes_.push_back(static_cast<size_t>(columns_.back().bytes()));
    }
  }

  int64_t samples() const override { return data_.samples(); }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed&,
            std::span<std::byte* const> to) const override {
    for (size_t c = 0; c < to.size(); ++c) {
      if (to[c] == nullptr || bytes_[c] == 0) continue;
      const auto* from = static_cast<const std::byte*>(data_.columns[c].second.data());
      std::memcpy(to[c], from + static_cast<size_t>(sample) * bytes_[c], bytes_[c]);
    }
  }
  std::string name() const override { return data_.source; }
  int64_t source_index(int64_t sample) const override { return data_.source_index(sample); }
  std::string location(int64_t sample) const override { return data_.location(sample); }
  std::string find_location(const std::string& column, int64_t value) const override {
    return data_.find_location(column, value);
  }
  std::vector<std::string> classes(const std::string& column) const override {
    const auto found = data_.classes.find(column);
    return found == data_.classes.end() ? std::vector<std::string>() : found->second;
  }
  ColumnTablePtr table() const override { return data_.table; }
  SkippedRecords skipped() const override { return data_.skipped; }
  const Dataset* in_memory() const override { return &data_; }
  int64_t resident_bytes() const override { return data_.bytes(); }

 private:
  Dataset data_;
  std::vector<Column> columns_;
  std::vector<size_t> bytes_;  // bytes per sample of each column
};

/// A subset of the samples of a source. `Indices`: index -> index in the inner source.
template <class Indices>
class PartSource : public ForwardedSource {
 public:
  PartSource(SampleSourcePtr inner, Indices indices)
      : ForwardedSource(std::move(inner)), indices_(std::move(indices)) {}
  int64_t samples() const override { return static_cast<int64_t>(indices_.size()); }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    inner_->read(inner_sample(sample), seed, to);
  }
  Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const override {
    return inner_->image(inner_sample(sample), column, seed);
  }
  int64_t source_index(int64_t sample) const override {
    return inner_->source_index(inner_sample(sample));
  }
  std::string location(int64_t sample) const override {
    return inner_->location(inner_sample(sample));
  }
  int64_t resident_bytes() const override { return inner_->resident_bytes() + bytes_of(indices_); }

 private:
  int64_t inner_sample(int64_t sample) const {
    check(sample >= 0 && sample < samples(), "a sample is out of range");
    return indices_[static_cast<typename Indices::size_type>(sample)];
  }
  static int64_t bytes_of(const RowSet& rows) { return rows.bytes(); }
  static int64_t bytes_of(const std::vector<int64_t>& list) {
    return std::ssize(list) * static_cast<int64_t>(sizeof(int64_t));
  }

  Indices indices_;
};

class FirstSource : public ForwardedSource {
 public:
  FirstSource(SampleSourcePtr inner, int64_t n) : ForwardedSource(std::move(inner)), n_(n) {}
  int64_t samples() const override { return n_; }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    inner_->read(sample, seed, to);
  }
  Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const override {
    return inner_->image(sample, column, seed);
  }

 private:
  int64_t n_;
};

/// A subset of the columns of a source, with new names.
class ColumnsSource : public ForwardedSource, public BatchTransform {
 public:
  ColumnsSource(SampleSourcePtr inner, std::vector<ColumnSelection> kept)
      : ForwardedSource(std::move(inner)), kept_(std::move(kept)) {
    for (const ColumnSelection& column : kept_) {
      columns_.push_back(inner_->columns().at(column.index));
      columns_.back().name = column.name;
    }
    table_ = with_renamed_feeds(*inner_, kept_);
  }
  ColumnTablePtr table() const override { return table_; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    inner_->read(sample, seed, all_columns(to));
  }
  Image image(int64_t sample, size_t column, const AugmentationSeed& seed) const override {
    return inner_->image(sample, kept_.at(column).index, seed);
  }
  std::string find_location(const std::string& column, int64_t value) const override {
    return inner_->find_location(inner_name(column), value);
  }
  std::vector<std::string> classes(const std::string& column) const override {
    return inner_->classes(inner_name(column));
  }
  const BatchTransform* batch_transform() const override {
    return inner_->batch_transform() == nullptr ? nullptr : this;
  }
  void apply(std::span<std::byte* const> columns, int64_t rows, const AugmentationSeed& seed,
             int64_t first) const override {
    inner_->batch_transform()->apply(all_columns(columns), rows, seed, first);
  }

 private:
  /// Returns one buffer for each column of the inner source; null for a column that is not in
  /// kept_.
  std::vector<std::byte*> all_columns(std::span<std::byte* const> kept) const {
    std::vector<std::byte*> all(inner_->columns().size(), nullptr);
    for (size_t c = 0; c < kept.size(); ++c) all[kept_[c].index] = kept[c];
    return all;
  }
  std::string inner_name(const std::string& column) const {
    for (const ColumnSelection& kept : kept_) {
      if (kept.name == column) return inner_->columns()[kept.index].name;
    }
    return column;
  }
  std::vector<ColumnSelection> kept_;
  std::vector<Column> columns_;
  ColumnTablePtr table_;
};

}  // namespace

void SampleSource::read_column(int64_t first, int64_t count, size_t column, std::byte* to) const {
  std::vector<std::byte*> buffers(columns().size(), nullptr);
  const int64_t bytes = columns()[column].bytes();
  for (int64_t i = 0; i < count; ++i) {
    buffers[column] = to + i * bytes;
    read(first + i, {}, buffers);
  }
}

Image SampleSource::image(int64_t sample, size_t column, const AugmentationSeed& seed) const {
  const Column& type = columns().at(column);
  std::vector<uint8_t> planes(static_cast<size_t>(type.bytes()));
  std::vector<std::byte*> to(columns().size(), nullptr);
  to[column] = reinterpret_cast<std::byte*>(planes.data());
  read(sample, seed, to);
  return Image::from_planes(type.shape.at(1), type.shape.at(2), type.shape.at(0), planes);
}

SampleSourcePtr make_source(Dataset data) {
  return std::make_shared<DatasetSource>(std::move(data));
}

SampleSourcePtr select_samples(SampleSourcePtr source, std::vector<int64_t> samples) {
  if (const Dataset* data = source->in_memory()) return make_source(data->select(samples));
  using ListedSource = PartSource<std::vector<int64_t>>;
  return std::make_shared<ListedSource>(std::move(source), std::move(samples));
}

SampleSourcePtr select_rows(SampleSourcePtr source, RowSet rows) {
  const Dataset* data = source->in_memory();
  if (data == nullptr) {
    return std::make_shared<PartSource<RowSet>>(std::move(source), std::move(rows));
  }
  std::vector<int64_t> samples(static_cast<size_t>(rows.size()));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = rows[static_cast<int64_t>(i)];
  return make_source(data->select(samples));
}

SampleSourcePtr first_samples(SampleSourcePtr source, int64_t n) {
  if (n >= source->samples()) return source;
  if (const Dataset* data = source->in_memory()) return make_source(data->first(n));
  return std::make_shared<FirstSource>(std::move(source), n);
}

SampleSourcePtr select_columns(SampleSourcePtr source, std::vector<ColumnSelection> kept) {
  const Dataset* data = source->in_memory();
  if (data == nullptr) return std::make_shared<ColumnsSource>(std::move(source), std::move(kept));
  Dataset part = *data;
  part.table = with_renamed_feeds(*source, kept);
  part.columns.clear();
  part.classes.clear();
  for (const ColumnSelection& column : kept) {
    const auto& [name, tensor] = data->columns.at(column.index);
    part.columns.emplace_back(column.name, tensor);
    if (const auto found = data->classes.find(name); found != data->classes.end()) {
      part.classes[column.name] = found->second;
    }
  }
  return make_source(std::move(part));
}

namespace {

/// Returns the number of equal elements of two ascending sequences of source_index(); nullopt if
/// one does not ascend.
std::optional<int64_t> common_ascending_rows(const SampleSource& a, const SampleSource& b) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const auto index_in = [](const SampleSource& source, int64_t sample) {
    return sample < source.samples() ? source.source_index(sample) : kEnd;
  };
  int64_t shared = 0, last = -1;
  for (int64_t i = 0, j = 0; i < a.samples() || j < b.samples();) {
    const int64_t of_a = index_in(a, i), of_b = index_in(b, j);
    if (std::min(of_a, of_b) <= last) return std::nullopt;
    last = std::min(of_a, of_b);
    shared += of_a == of_b ? 1 : 0;
    if (of_a == last) ++i;
    if (of_b == last) ++j;
  }
  return shared;
}

}  // namespace

int64_t common_rows(const SampleSource& a, const SampleSource& b) {
  if (a.name() != b.name()) return 0;
  if (const std::optional<int64_t> shared = common_ascending_rows(a, b)) return *shared;
  std::unordered_set<int64_t> taken;
  for (int64_t i = 0; i < b.samples(); ++i) taken.insert(b.source_index(i));
  int64_t shared = 0;
  for (int64_t i = 0; i < a.samples(); ++i) shared += taken.contains(a.source_index(i)) ? 1 : 0;
  return shared;
}

}  // namespace fluid
