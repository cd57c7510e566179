#include "executor/outputs.h"

#include "ir/error.h"

namespace fluid {

bool Outputs::has(std::string_view name) const {
  for (const Output& o : *outputs_) {
    if (o.name == name) return true;
  }
  return false;
}

const Output& Outputs::find(std::string_view name) const {
  for (const Output& o : *outputs_) {
    if (o.name == name) return o;
  }
  std::vector<std::string> names;
  for (const Output& o : *outputs_) names.push_back(o.name);
  throw UserError("no output '" + std::string(name) + "'" + did_you_mean(name, names));
}

}  // namespace fluid
