#pragma once

#include "frontend/readers/kind.h"

namespace fluid {

/// Returns the names of the options that split_rows() reads.
const std::vector<std::string>& row_split_options();

/// Splits `data` by the option val=FRACTION, which holds out rows: split=val and split=test return
/// the held-out rows, split=train returns the others. Without val=, returns all rows. The held-out
/// rows depend only on the option seed=N and the number of rows. `has_splits`: the format has
/// splits, which split= selects without val=. Throws UserError for a fraction outside (0, 1), for a
/// single row, for seed= without val=, and for split= without val= unless `has_splits` is set.
SampleSourcePtr split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits);

/// Returns which of `rows` rows split_rows() holds out; an empty mask without the option val.
std::vector<bool> held_out_rows(int64_t rows, const DataArgs& args);

}  // namespace fluid
