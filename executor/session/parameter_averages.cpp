#include "executor/session/parameter_averages.h"

#include <utility>

#include "ir/error.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {

void ParameterAverages::use(bool use) {
  const ir::Op* train = find_directive(session_.recorded_program().main());
  if (train == nullptr || !keeps_averages(*train)) {
    throw UserError(
        "use_averages(): the recipe keeps no averages: set MinimizeOptions::ema or swa");
  }
  if (!session_.steps().has_step_for(Mode::train)) {
    throw UserError("use_averages(): prepare() a training step before");
  }
  if (use == in_use_) return;
  VariableValues& values = session_.values();
  const Variables& variables = session_.variables();
  in_use_ = use;
  if (!use) {
    for (const auto& [name, value] : std::exchange(parameters_, {})) {
      values.assign(variables.named(name), value);
    }
    return;
  }
  if (values.value(variables.named(kUpdateCounter)).item() == 0) return;
  for (const Variable& parameter : variables.all()) {
    const Variable* average = variables.find(average_name(*train, parameter.name));
    if (average == nullptr) continue;
    parameters_.emplace_back(parameter.name, values.value(parameter).copy());
    values.assign(parameter, values.value(*average));
  }
}

void ParameterAverages::require_not_in_use(std::string_view call) const {
  if (!in_use_) return;
  throw UserError(std::string(call) +
                  ": the averages of the parameters are in use: call use_averages(false) before");
}

}  // namespace fluid
