#pragma once

#include <string>

#include "frontend/fluid.h"

/// Returns the column `name` of the data of a SPEC (see open_data()), for programs without a feed
/// for the others. Throws UserError if the data has no such column.
inline fluid::Dataset one_column(const std::string& spec, const std::string& name,
                                 const std::string& split = "train") {
  const fluid::Dataset all = fluid::open_data(spec, split).dataset;
  const fluid::Tensor* column = all.find(name);
  if (!column) throw fluid::UserError("data '" + spec + "' has no column '" + name + "'");
  return {{{name, *column}}};
}
