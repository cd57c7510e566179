#pragma once

#include "frontend/readers/dataset.h"
#include "frontend/readers/kind.h"

namespace fluid {

/// Names of the options that split_rows() reads.
const std::vector<std::string>& row_split_options();

/// Splits data that has no splits of its own. val=FRACTION holds out rows for split=val and
/// split=test; split=train gets the other rows. Without `val` all rows are returned. The choice of
/// rows depends only on seed=N and the number of rows. `split` is the default of the SPEC's split
/// option. Throws UserError for a fraction outside (0, 1), for a single row, and for split or seed
/// without val.
Dataset split_rows(Dataset data, const DataArgs& args, const std::string& split);

}  // namespace fluid
