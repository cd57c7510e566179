#pragma once

#include <optional>
#include <string>

#include "frontend/readers/kind.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// What a data SPEC asks for: the samples, and how to read them where it says so.
struct DataSource {
  Dataset dataset;
  std::string usage = {};  ///< of its kind: "csv:FILE?label=COLUMN"
  std::optional<bool> shuffle;
  std::optional<bool> drop_last;
  bool full_batch = false;  ///< the batch to take when none is asked for is all samples
};

/// Opens `KIND[:PATH][?option=value&...]`, for example "mnist:DIR?split=test". Every kind knows
/// shuffle=0|1, drop_last=0|1, limit=N (the first N samples), and <column>=<feed> to give a column
/// another name. `split` is used when the SPEC has none. A file without splits is split by
/// val=FRACTION, the share of rows that are held out, and seed=N, which chooses them:
/// split=train gives the others, split=val and split=test give them, each in the file's order.
/// Throws UserError, with near misses, for an unknown kind, option or column and for data that is
/// not there or damaged.
DataSource open_data(const std::string& spec, const std::string& split = "train");

/// The kinds of data, for help texts.
const std::vector<DataKind>& data_kinds();

}  // namespace fluid
