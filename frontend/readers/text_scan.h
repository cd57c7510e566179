#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"
#include "frontend/files/record_file.h"
#include "frontend/readers/dataset.h"
#include "frontend/readers/kind.h"

namespace fluid {

/// The result of a scan of a text file: the positions of its records, and the facts that a kind of
/// data learned from them.
struct TextScan {
  RecordIndex index;
  std::string table = {};                ///< ColumnTable of the columns, as JSON
  std::string learned = {};              ///< what else the kind of data learned, as JSON
  std::vector<int64_t> left_out = {};    ///< samples that are not read, in ascending order
  SkippedRecords skipped = {};           ///< the bad records of `left_out`
  std::vector<std::string> splits = {};  ///< distinct values of the column of option split=COLUMN
  /// For each sample the index (i32) of its value in `splits`; null without split=COLUMN.
  std::shared_ptr<const ByteSource> split_of_sample = nullptr;

  /// Throws UserError if rules of option missing leave out every one of the `samples` samples,
  /// except for bad records.
  void check_that_rows_are_left(const DataArgs& args, int64_t samples) const;
};

/// Keeps the TextScan of a data file in the directory OpenOptions::cache_dir, so that the file is
/// not scanned again while its size, time of modification and inode stay the same. The files of all
/// scans take at most 1 GiB: a larger scan is not stored, and the least recently used files are
/// removed. A file that is damaged or of another version of the format is ignored.
class TextScanCache {
 public:
  /// Must be called before the data file is opened.
  explicit TextScanCache(const DataArgs& args);

  /// Returns the scan of the data file; nullopt if there is none, or if the file has changed.
  /// `key`: what the scan depends on besides the data file.
  std::optional<TextScan> find(const std::string& key) const;
  /// Writes `scan`. Does nothing if the directory cannot be written, or if the data file was
  /// modified in the last two seconds before the constructor, or later: a change within the
  /// resolution of its time would be missed.
  void store(const std::string& key, const TextScan& scan) const;

 private:
  struct Stamp {
    int64_t size = 0, modified_ns = 0, inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;  ///< stamp of the data file; all zero if it cannot be read
  std::string path_of(const std::string& key) const;
  std::string header_of(const TextScan& scan) const;
  /// Removes the least recently used files, but not `newest`, until the limit is met. Keeps the
  /// temporary files of processes that write a scan.
  void evict(const std::string& newest) const;

  std::string directory_;  ///< empty: no cache
  std::string data_path_;  ///< canonical path of the data file
  Stamp stamp_;
  int64_t opened_ns_ = 0;
};

/// A text file of data, with its scan.
struct ScannedFile {
  std::shared_ptr<const RecordFile> file;
  TextScan scan;
  bool is_in_memory = false;  ///< whether the samples are to be kept in memory
};

/// Sets the members of ScannedFile::scan except `index`, at least `table`. The other members of
/// `opened` are set.
using LearnFromRecords = std::function<void(ScannedFile& opened)>;

/// Opens the file that `args` name. Samples are to be kept in memory if the text has at most
/// DataArgs::memory_limit() bytes. Otherwise takes the scan from the cache, if it is there. Else
/// indexes the records, calls `learn`, and stores the scan in the cache. `given`: the ColumnTable
/// that the data is read by; null: none. A scan that learned a table is also stored as that of the
/// data that is read by this table: validation data, or the training data of a run that resumes.
ScannedFile scan_text_file(const DataArgs& args, const ColumnTable* given,
                           const RecordSyntax& syntax, const LearnFromRecords& learn);

}  // namespace fluid
