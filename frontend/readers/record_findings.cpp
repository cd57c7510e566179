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

RecordFindings examine_records(int64_t samples, const ExamineOptions& options,
                               const RecordFindings& none, const ExamineRecord& examine,
                               TextScan& scan) {
  RecordFindings all = none;
  SpillBuffer split_of_sample(kMaxSplitBytes);
  read_in_chunks(samples, options.chunk, [&](int64_t begin, int64_t end) {
    const auto chunk = std::make_shared<ChunkFindings>(ChunkFindings{.found = none});
    RecordFindings& found = chunk->found;
    std::string split;
    for (int64_t sample = begin; sample < end; ++sample) {
      bool is_read = false;
      try {
        is_read = examine(sample, found, split);
      } catch (const UserError& error) {
        if (!options.skips_bad_records) throw;
        found.skipped.add(error.what());
      }
      if (!is_read) found.left_out.push_back(sample);
      if (!options.has_split) continue;
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
  if (options.has_split) scan.split_of_sample = split_of_sample.release();
  return all;
}

TrainingRows::TrainingRows(const RowSplit& split, const TextScan& scan,
                           const RecordFindings& findings, int64_t samples,
                           const std::string& split_column,
                           const std::function<std::string(int64_t)>& location)
    : scan_(scan) {
  if (split.has_fraction()) held_out_ = split.held_out_rows(samples - std::ssize(scan.left_out));
  if (!split.uses_column()) return;
  split_of_value_ = split.splits(split_column, scan.splits, [&](size_t i) {
    return location(findings.splits.first_record(i));
  });
}

bool TrainingRows::contains(int64_t sample) const {
  if (!split_of_value_.empty()) {
    int32_t value = 0;
    scan_.split_of_sample->read(sample * int64_t{sizeof value},
                                std::as_writable_bytes(std::span(&value, 1)));
    return split_of_value_[static_cast<size_t>(value)] == Split::train;
  }
  const auto left_out = std::ranges::lower_bound(scan_.left_out, sample);
  return !std::ranges::binary_search(held_out_, sample - (left_out - scan_.left_out.begin()));
}

}  // namespace fluid
