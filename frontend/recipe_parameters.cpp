#include "frontend/recipe_parameters.h"

#include <algorithm>

#include "frontend/name_pattern.h"
#include "ir/error.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"

namespace fluid {

std::vector<Value> parameters_of(Value loss) {
  std::set<const ir::Op*> needed = {loss.op()};
  std::vector<Value> parameters;
  const auto& ops = loss.op()->graph()->ops;
  for (size_t i = ops.size(); i-- > 0;) {
    if (!needed.contains(ops[i].get())) continue;
    for (const Value operand : ops[i]->operands) needed.insert(operand.op());
  }
  for (const auto& op : ops) {
    if (needed.contains(op.get()) && source_kind(*op) == SourceKind::parameter) {
      parameters.push_back(op->result());
    }
  }
  return parameters;
}

std::vector<Value> selected_parameters(Value loss, const std::vector<std::string>& patterns,
                                       const Loc& loc) {
  const std::vector<Value> all = parameters_of(loss);
  if (patterns.empty()) return all;
  std::vector<std::string> names;
  for (const Value p : all) names.push_back(p.op()->symbol);
  std::set<std::string> selected;
  for (const std::string& text : patterns) {
    const NamePattern pattern(text);
    bool found = false;
    for (const std::string& name : names) {
      if (!pattern.selects(name)) continue;
      selected.insert(name);
      found = true;
    }
    if (found) continue;
    throw UserError(loc, "minimize: pattern '" + text +
                             "' matches no parameter that the loss depends on" +
                             pattern_suggestion(text, names));
  }
  std::vector<Value> parameters;
  std::ranges::copy_if(all, std::back_inserter(parameters),
                       [&](Value p) { return selected.contains(p.op()->symbol); });
  return parameters;
}

std::vector<Value> recipe_parameters(const ir::Op& train) {
  const std::set<std::string> names = trained_parameters(train);
  std::vector<Value> parameters = parameters_of(unpenalized_loss(train));
  if (names.empty()) return parameters;
  std::erase_if(parameters, [&](const Value& p) { return !names.contains(p.op()->symbol); });
  return parameters;
}

std::set<std::string> recipes_that_train(const ir::Graph& graph, const std::string& name) {
  std::set<std::string> recipes;
  for (const ir::Op* train : recipes_of(graph)) {
    const bool trains = std::ranges::any_of(recipe_parameters(*train),
                                            [&](const Value& p) { return p.op()->symbol == name; });
    if (trains) recipes.insert(recipe_name(*train));
  }
  return recipes;
}

}  // namespace fluid
