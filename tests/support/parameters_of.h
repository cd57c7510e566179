#pragma once

#include <string>
#include <vector>

#include "frontend/program.h"

namespace fluid {

/// The parameters of `net`, as "name type", in the order of recording.
inline std::vector<std::string> parameters_of(Program& net) {
  std::vector<std::string> list;
  for (const auto& op : net.ir().main().ops) {
    if (op->name == "param") list.push_back(op->symbol + " " + op->results[0].type.str());
  }
  return list;
}

}  // namespace fluid
