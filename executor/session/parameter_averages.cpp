#include "executor/session/parameter_averages.h"

#include <set>
#include <utility>

#include "ir/error.h"
#include "ops/optim/recipes.h"
#include "passes/recipe.h"

namespace fluid {

void ParameterAverages::set_in_use(bool in_use) {
  std::vector<const ir::Op*> recipes;
  for (const ir::Op* train : recipes_of(session_.recorded_program().main())) {
    if (averages_parameters(*train)) recipes.push_back(train);
  }
  if (recipes.empty()) {
    throw UserError(
        "use_averages(): the recipe keeps no averages: set MinimizeOptions::ema or swa");
  }
  if (!session_.steps().has_step_for(Mode::train)) {
    throw UserError("use_averages(): prepare() a training step before");
  }
  if (in_use == in_use_) return;
  VariableValues& values = session_.values();
  const Variables& variables = session_.variables();
  in_use_ = in_use;
  if (!in_use) {
    for (const auto& [name, value] : std::exchange(parameters_, {})) {
      values.assign(variables.at(name), value);
    }
    return;
  }
  std::set<std::string> replaced;
  for (const ir::Op* train : recipes) {
    // A recipe whose parameters are frozen has no step, and no counter.
    const Variable* counter = variables.find(recipe_state(recipe_name(*train), kUpdateCounter));
    if (counter == nullptr || values.value(*counter).item() == 0) continue;
    for (const Variable& parameter : variables.all()) {
      const Variable* average = variables.find(average_name(*train, parameter.name));
      if (average == nullptr || !replaced.insert(parameter.name).second) continue;
      parameters_.emplace_back(parameter.name, values.value(parameter).copy());
      values.assign(parameter, values.value(*average));
    }
  }
}

void ParameterAverages::require_not_in_use(std::string_view call) const {
  if (!in_use_) return;
  throw UserError(std::string(call) +
                  ": the averages of the parameters are in use: call use_averages(false) before");
}

}  // namespace fluid
