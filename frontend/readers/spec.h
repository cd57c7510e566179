#pragma once

#include <optional>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// A SampleSource opened from a data SPEC, and the options of the SPEC for its Reader.
struct DataSource {
  SampleSourcePtr source;
  std::string usage = {};         ///< DataKind::usage, such as "csv:FILE?label=COLUMN"
  std::optional<bool> shuffle;    ///< value of the option shuffle; nullopt: not given
  std::optional<bool> drop_last;  ///< value of the option drop_last; nullopt: not given
  bool full_batch = false;        ///< whether the default batch is the whole dataset

  /// Returns the data in memory. Throws UserError for data that is read from disk.
  Dataset dataset() const;
};

/// Opens the data of a SPEC `KIND[:PATH][?option=value&...][|STAGE...]`, for example
/// "mnist:DIR?split=test" or "folder:DIR|resized_crop=224|flip". stages_help() lists the stages,
/// which transform images. All kinds have the options shuffle=0|1, drop_last=0|1, limit=N (only the
/// first N samples), and <column>=<feed> to rename a column. `split` is the default of the option
/// split.
///
/// Kinds without splits have the options val=FRACTION, the fraction of rows to hold out, and
/// seed=N, which selects the rows. split=val and split=test return the held-out rows, split=train
/// the others. Rows keep their order.
///
/// `bad_records`: whether to leave out records that cannot be read when the data is opened, such as
/// lines of a table. See SampleSource::skipped().
///
/// Throws UserError for missing or damaged data, and for an unknown kind, option or column, with a
/// suggestion.
DataSource open_data(const std::string& spec, const std::string& split = "train",
                     BadRecords bad_records = BadRecords::stop);

/// Returns all kinds of data, in the order of the help text.
const std::vector<DataKind>& data_kinds();

}  // namespace fluid
