#pragma once

#include <optional>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// The samples that a data SPEC names, and its options for reading them.
struct DataSource {
  Dataset dataset;
  std::string usage = {};  ///< usage of the kind: "csv:FILE?label=COLUMN"
  std::optional<bool> shuffle;
  std::optional<bool> drop_last;
  bool full_batch = false;  ///< the default batch is all samples
};

/// Opens `KIND[:PATH][?option=value&...]`, for example "mnist:DIR?split=test". Every kind has the
/// options shuffle=0|1, drop_last=0|1, limit=N (the first N samples), and <column>=<feed> to rename
/// a column. `split` is the default of the SPEC's split option. A file without splits is split by
/// val=FRACTION, the share of rows held out, and seed=N, which chooses them. split=val and
/// split=test select the rows held out, split=train the others, each in the file's order. Throws
/// UserError, with near misses, for an unknown kind, option or column, and for missing or damaged
/// data.
DataSource open_data(const std::string& spec, const std::string& split = "train");

/// The kinds of data, for help texts.
const std::vector<DataKind>& data_kinds();

}  // namespace fluid
