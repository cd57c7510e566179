#pragma once

#include "frontend/readers/dataset.h"
#include "frontend/readers/kind.h"

namespace fluid {

/// Names of the options that split_rows() reads.
const std::vector<std::string>& row_split_options();

/// Splits data that has no splits of its own: the rows that val=FRACTION holds out for split=val
/// and split=test, or the others for split=train; all rows without `val`. The rows held out depend
/// on seed=N and the number of rows alone. `split` is used when the SPEC has none. Throws UserError
/// for a fraction outside (0, 1), for a single row, and for split or seed without val.
Dataset split_rows(Dataset data, const DataArgs& args, const std::string& split);

}  // namespace fluid
