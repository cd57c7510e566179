#include "executor/variables.h"

#include <algorithm>

#include "ir/error.h"
#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {

void Variables::add(const std::string& name, const Type& type, bool saved) {
  if (const Variable* known = find(name)) {
    check(known->type == type, "variable '" + name + "' is " + known->type.str() + " and " +
                                   type.str() + " in two programs of a session");
    return;
  }
  variables_.push_back({name, type, saved, bytes_});
  bytes_ += (type.bytes_at(1) + 63) / 64 * 64;
}

const Variable* Variables::find(std::string_view name) const {
  for (const Variable& v : variables_) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

const Variable& Variables::named(std::string_view name) const {
  if (const Variable* v = find(name)) return *v;
  std::vector<std::string> names;
  for (const Variable& v : variables_) names.push_back(v.name);
  throw UserError("no variable '" + std::string(name) + "'" + did_you_mean(name, names));
}

void add_variables(const ir::Program& final_program, const ir::Program& recorded, Variables& to) {
  const auto add = [&](const std::string& name, const Type& type) {
    const bool saved = name != kRandomState && variable_named(recorded.main(), name) != nullptr;
    to.add(name, type, saved);
  };
  for (const auto& op : final_program.main().ops) {
    if (is_variable(*op)) add(op->symbol, op->results[0].type);
    if (is_store(*op)) add(op->symbol, op->operands.at(0).type());
  }
}

}  // namespace fluid
