#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/readers/kind.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Number of rows in each split.
struct SplitCounts {
  int64_t train = 0, validation = 0, test = 0;
};

/// The data opened from a data SPEC, and the options of the SPEC for its Reader.
struct DataSource {
  SampleSourcePtr source;         ///< null if the SPEC has the option stream
  SampleStreamPtr stream;         ///< null unless the SPEC has the option stream
  std::string usage = {};         ///< DataKind::usage, such as "csv:FILE?label=COLUMN"
  std::optional<bool> shuffle;    ///< value of the option shuffle; nullopt: not given
  std::optional<bool> drop_last;  ///< value of the option drop_last; nullopt: not given
  /// Number of rows per split; nullopt if neither option val nor split=COLUMN splits the rows.
  std::optional<SplitCounts> split_counts = {};
  bool full_batch = false;     ///< whether the default batch is the whole dataset
  int64_t shuffle_buffer = 0;  ///< option shuffle_buffer; 0: not given

  std::vector<std::string> random_stages = {};  ///< names of the stages that are random

  StreamPass first_pass = {};  ///< OpenOptions::first_pass

  const SampleData& data() const;  ///< `source` if it is set, else `stream`
  /// Applies `transform` to the source, or to each sample of the stream (see transform_samples()).
  void transform(const SourceTransform& transform);
  /// Returns a reader of the source, or of the stream.
  Reader reader(const ReaderOptions& options) const;
  /// Returns the data in memory. Throws UserError for data that is read from disk, and for a
  /// stream.
  Dataset dataset() const;
};

/// Opens the data of a SPEC `KIND[:PATH][?option=value&...][|STAGE...]`, for example
/// "mnist:DIR?split=test" or "folder:DIR|resized_crop=224|flip". stages_help() lists the stages,
/// which transform images. All kinds have the options shuffle=0|1, drop_last=0|1, limit=N (only the
/// first N samples), and <column>=<feed> to rename a column. `split` is the default of the option
/// split.
///
/// Kinds with DataKind::splits_rows can split their rows. The rows of a split keep the order of the
/// data:
/// - val=FRACTION holds out random rows; seed=N selects them. split=val and split=test return the
///   held-out rows, split=train the others.
/// - split=COLUMN reads the split of each row from COLUMN: train, val or test. `split` selects the
///   rows to return.
/// - split=COLUMN:VALUE is like split=COLUMN, but rows with this value belong to val and all others
///   to train.
///
/// Kinds whose data is produced while it is read, such as pipe, have two more options. `stream`
/// opens the data as a SampleStream. shuffle_buffer=N sets ReaderOptions::shuffle_buffer. A flag
/// without `=` is set to 1.
///
/// Throws UserError for missing or damaged data, and for an unknown kind, option or column, with a
/// suggestion.
DataSource open_data(const std::string& spec, const std::string& split = "train",
                     const OpenOptions& options = {});

/// Whether open_data() uses `training_table` for `spec`.
bool uses_training_table(const std::string& spec, const ColumnTable& training_table);
/// Whether the kind of `spec` has a SampleData::table(); false for an unknown kind.
bool has_table(const std::string& spec);

/// Returns all kinds of data, in the order of the help text.
const std::vector<DataKind>& data_kinds();

}  // namespace fluid
