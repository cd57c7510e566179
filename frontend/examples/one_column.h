#pragma once

#include <string>

#include "frontend/fluid.h"

/// Returns a dataset with only the column `name` of the data of a SPEC (see open_data()), for
/// programs that do not feed the other columns. Throws UserError if the data has no such column.
inline fluid::Dataset one_column(const std::string& spec, const std::string& name,
                                 const std::string& split = "train") {
  const fluid::Dataset all = fluid::open_data(spec, split).dataset();
  const fluid::Tensor* column = all.find(name);
  if (!column) throw fluid::UserError("data '" + spec + "' has no column '" + name + "'");
  return {{{name, *column}}};
}
