#pragma once

#include <optional>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// The data opened from a data SPEC, and the options of the SPEC for its Reader.
struct DataSource {
  SampleSourcePtr source;         ///< null if the SPEC has the option stream
  SampleStreamPtr stream;         ///< null otherwise
  std::string usage = {};         ///< DataKind::usage, such as "csv:FILE?label=COLUMN"
  std::optional<bool> shuffle;    ///< value of the option shuffle; nullopt: not given
  std::optional<bool> drop_last;  ///< value of the option drop_last; nullopt: not given
  bool full_batch = false;        ///< whether the default batch is the whole dataset
  int64_t shuffle_buffer = 0;     ///< value of the option shuffle_buffer; 0: not given

  StreamPass first_pass = {};  ///< of the stream

  const SampleData& data() const;  ///< the source, or the stream
  /// Applies `change` to the source, or to the stream as change_samples() does.
  void change(const SourceChange& change);
  /// Returns a reader of the source, or of the stream.
  Reader reader(const ReaderOptions& options) const;
  /// Returns the data in memory. Throws UserError for data that is read from disk, and for a
  /// stream.
  Dataset dataset() const;
};

/// Opens the data of a SPEC `KIND[:PATH][?option=value&...][|STAGE...]`, for example
/// "mnist:DIR?split=test" or "folder:DIR|resized_crop=224|flip". stages_help() lists the stages,
/// which change images.
/// All kinds have the options shuffle=0|1, drop_last=0|1, limit=N (only the first N samples), and
/// <column>=<feed> to rename a column. `split` is the default of the option split.
///
/// Kinds without splits have the options val=FRACTION, the fraction of rows to hold out, and
/// seed=N, which selects the rows. split=val and split=test return the held-out rows, split=train
/// the others. Rows keep their order.
///
/// Kinds that are written while they are read, such as pipe, have the options `stream`, which makes
/// them a SampleStream, and shuffle_buffer=N (ReaderOptions::shuffle_buffer), which shuffles it. An
/// option without `=` is set to 1.
///
/// `first_pass`: the rank and the world of a stream; its first pass is opened to learn its columns.
///
/// `bad_records`: whether records that cannot be read when the data is opened, such as the lines of
/// a table, are left out. See SampleSource::skipped().
///
/// Throws UserError for missing or damaged data, and for an unknown kind, option or column, with a
/// suggestion.
DataSource open_data(const std::string& spec, const std::string& split = "train",
                     BadRecords bad_records = BadRecords::stop, const StreamPass& first_pass = {});

/// Returns all kinds of data, in the order of the help text.
const std::vector<DataKind>& data_kinds();

}  // namespace fluid
