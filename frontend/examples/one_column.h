#pragma once

#include <string>

#include "frontend/fluid.h"

/// Opens the data of a SPEC (see open_data()) and returns only the column `name`, for programs that
/// do not feed the other columns. Throws UserError if the data has no such column.
inline fluid::SampleSourcePtr one_column(const std::string& spec, const std::string& name,
                                         const std::string& split = "train") {
  const fluid::SampleSourcePtr all = fluid::open_data(spec, split).source;
  for (size_t i = 0; i < all->columns().size(); ++i) {
    if (all->columns()[i].name == name) return fluid::select_columns(all, {{i, name}});
  }
  throw fluid::UserError("data '" + spec + "' has no column '" + name + "'");
}
