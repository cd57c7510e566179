#include "ops/optim/recipes.h"

#include <algorithm>
#include <cctype>

#include "ir/error.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

/// Whether recipe names may contain `c`: the names are used in command lines, such as `--recipes
/// d:2,g:1`, and in names of states.
bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

}  // namespace

std::vector<ir::Op*> recipes_of(const ir::Graph& graph) {
  std::vector<ir::Op*> recipes;
  for (const auto& op : graph.ops) {
    if (std::holds_alternative<Directive>(*def_of(*op).lower)) recipes.push_back(op.get());
  }
  return recipes;
}

std::string recipe_name(const ir::Op& train) { return train.attrs.get_or("recipe", std::string()); }

std::vector<std::string> recipe_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Op* train : recipes_of(graph)) names.push_back(recipe_name(*train));
  return names;
}

std::set<std::string> trained_parameters(const ir::Op& train) {
  const auto names = train.attrs.get_or("trains", std::vector<std::string>());
  return {names.begin(), names.end()};
}

bool trains_parameters(const ir::Op& train) {
  const std::set<std::string> names = trained_parameters(train);
  std::set<const ir::Op*> seen;
  std::vector<const ir::Op*> unvisited = {train.operands.at(0).op()};
  while (!unvisited.empty()) {
    const ir::Op* op = unvisited.back();
    unvisited.pop_back();
    if (!seen.insert(op).second || op->name == "stop_gradient") continue;
    if (source_kind(*op) == SourceKind::parameter && op->attrs.get_or("trainable", true) &&
        (names.empty() || names.contains(op->symbol))) {
      return true;
    }
    for (const Value operand : op->operands) {
      if (is_float(operand.dtype())) unvisited.push_back(operand.op());
    }
  }
  return false;
}

std::vector<std::string> trainable_recipes(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Op* train : recipes_of(graph)) {
    if (trains_parameters(*train)) names.push_back(recipe_name(*train));
  }
  return names.empty() ? recipe_names(graph) : names;
}

void throw_nothing_to_train(const ir::Op& train) {
  const std::string name = recipe_name(train);
  throw UserError(train.loc,
                  (name.empty() ? "" : "recipe '" + name + "': ") +
                      "the loss does not depend on any trainable parameter: nothing to train");
}

Value unpenalized_loss(const ir::Op& train) {
  Value loss = train.operands.at(0);
  auto penalties = train.attrs.get_or("penalties", int64_t{0});
  for (; penalties > 0 && loss.op()->name == "add"; --penalties) loss = loss.op()->operands.at(0);
  return loss;
}

void check_recipes(const ir::Graph& graph) {
  const std::vector<ir::Op*> recipes = recipes_of(graph);
  std::set<std::string> names;
  for (const ir::Op* train : recipes) {
    const std::string name = recipe_name(*train);
    if (name.empty() && recipes.size() > 1) {
      throw UserError(train->loc,
                      "minimize: the program has several recipes, and this one has no name: set "
                      "MinimizeOptions::name");
    }
    if (!std::ranges::all_of(name, is_name_character)) {
      throw UserError(train->loc,
                      "minimize: the name '" + name +
                          "' of a recipe may hold only letters, digits, '_', '-' and '.'");
    }
    if (!names.insert(name).second) {
      throw UserError(train->loc, "minimize: the program already has a recipe '" + name + "'");
    }
    for (const std::string& parameter : trained_parameters(*train)) {
      const ir::Op* found = graph.find("param", parameter);
      if (found != nullptr) continue;
      throw UserError(train->loc, "recipe '" + name + "' trains '" + parameter +
                                      "', which is no parameter of the program");
    }
  }
}

ir::Op& recipe_named(const ir::Graph& graph, std::string_view name) {
  const std::vector<ir::Op*> recipes = recipes_of(graph);
  if (name.empty() && recipes.size() == 1) return *recipes.front();
  const std::vector<std::string> names = recipe_names(graph);
  if (name.empty() && !recipes.empty()) {
    throw UserError("the program has the recipes " + quoted_list(names) + ": name the one to run");
  }
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return *recipes[static_cast<size_t>(found - names.begin())];
  const bool has_names = !recipes.empty() && !names.front().empty();
  throw UserError("the program has no recipe '" + std::string(name) + "'" +
                  (recipes.empty() ? "; it minimizes nothing"
                   : has_names     ? "; there are " + quoted_list(names)
                                   : "; its only recipe has no name"));
}

std::string recipe_state(std::string_view recipe, std::string_view state) {
  return recipe.empty() ? std::string(state) : std::string(recipe) + ":" + std::string(state);
}

}  // namespace fluid
