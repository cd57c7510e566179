#include "frontend/readers/record_findings.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/files/temporary_file.h"
#include "frontend/readers/read_in_chunks.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kMaxSplitBytes = int64_t{16} << 20;  ///< more are in a temporary file
constexpr int32_t kNoSplit = -1;                       ///< of a sample that is left out

void append_to(SkippedRecords& all, const SkippedRecords& next) {
  for (const std::string& error : next.errors) all.add(error);
  all.count += next.count - std::ssize(next.errors);
}

/// The findings in a chunk of samples.
struct ChunkFindings {
  RecordFindings found;
  std::vector<int32_t> split_of_sample = {};  ///< index in RecordFindings::splits
};

/// Calls `examine` for all samples once.
RecordFindings examine_once(const RecordsToExamine& records, const RowSplit& row_split,
                            const TrainingRows& training, const RecordFindings& initial,
                            const ExamineRecord& examine, TextScan& scan) {
  RecordFindings all = initial;
  SpillBuffer split_of_sample(kMaxSplitBytes);
  const bool has_split = !records.split_column.empty();
  read_in_chunks(records.samples, records.chunk, [&](int64_t begin, int64_t end) {
    const auto chunk = std::make_shared<ChunkFindings>(ChunkFindings{.found = initial});
    RecordFindings& found = chunk->found;
    std::string split;
    for (int64_t sample = begin; sample < end; ++sample) {
      bool is_read = false;
      try {
        is_read = examine(sample, training, found, [&](std::string_view value) {
          split = value;
          if (!records.skips_bad_records) return;  // examine_records() checks each value once
          row_split.split_of(records.split_column, split, [&] { return records.location(sample); });
        });
      } catch (const UserError& error) {
        if (!records.skips_bad_records) throw;
        found.skipped.add(error.what());
      }
      if (!is_read) found.left_out.push_back(sample);
      if (!has_split) continue;
      chunk->split_of_sample.push_back(is_read ? found.splits.index_of(split, sample) : kNoSplit);
    }
    return [&, chunk] {
      all.add(chunk->found);
      const std::vector<int32_t> index_in_all = all.splits.add(chunk->found.splits);
      for (int32_t& value : chunk->split_of_sample) {
        if (value != kNoSplit) value = index_in_all[static_cast<size_t>(value)];
      }
      split_of_sample.append(std::as_bytes(std::span(chunk->split_of_sample)));
    };
  });
  scan.left_out = all.left_out;
  scan.skipped = all.skipped;
  scan.splits = all.splits.texts();
  if (has_split) scan.split_of_sample = split_of_sample.release();
  return all;
}

}  // namespace

void RecordFindings::add(const RecordFindings& next) {
  left_out.insert(left_out.end(), next.left_out.begin(), next.left_out.end());
  append_to(skipped, next.skipped);
  for (size_t i = 0; i < categories.size(); ++i) categories[i].add(next.categories[i]);
  for (size_t i = 0; i < is_integer.size(); ++i) {
    is_integer[i] = static_cast<char>(is_integer[i] && next.is_integer[i]);
  }
  for (size_t i = 0; i < moments.size(); ++i) moments[i].add(next.moments[i]);
}

RecordFindings examine_records(const RecordsToExamine& records, const RowSplit& split,
                               const RecordFindings& initial, const ExamineRecord& examine,
                               TextScan& scan) {
  const auto held_out = [&] {
    const int64_t rows = records.samples - std::ssize(scan.left_out);
    return split.has_fraction() ? split.held_out_rows(rows) : RowSet();
  };
  const bool learns_moments = !initial.moments.empty();
  const bool needs_rows =
      !records.split_column.empty() || records.drops_rows || records.skips_bad_records;
  if (!learns_moments || !needs_rows) {
    const TrainingRows training(scan, learns_moments ? held_out() : RowSet(), {});
    return examine_once(records, split, training, initial, examine, scan);
  }
  RecordFindings found = initial, initial_moments = initial;
  found.moments.clear();
  found = examine_once(records, split, {scan, {}, {}}, found, examine, scan);
  std::vector<Split> split_of_value;
  if (!records.split_column.empty()) {
    split_of_value = split.splits(records.split_column, scan.splits, [&](size_t value) {
      return records.location(found.splits.first_record(value));
    });
  }
  initial_moments.categories.clear();
  TextScan repeated;
  const TrainingRows training(scan, held_out(), std::move(split_of_value));
  found.moments =
      examine_once(records, split, training, initial_moments, examine, repeated).moments;
  return found;
}

bool TrainingRows::contains(int64_t sample) const {
  if (!split_of_value_.empty()) {
    int32_t value = 0;
    scan_.split_of_sample->read(sample * int64_t{sizeof value},
                                std::as_writable_bytes(std::span(&value, 1)));
    return split_of_value_[static_cast<size_t>(value)] == Split::train;
  }
  const auto left_out = std::ranges::lower_bound(scan_.left_out, sample);
  return !held_out_.contains(sample - (left_out - scan_.left_out.begin()));
}

}  // namespace fluid
