#include "passes/recipe.h"

#include "ops/operators.h"
#include "ops/record.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr const char* kPredicated = "predicated";

}  // namespace

const std::vector<std::string>& Recipe::parameters() const {
  return directive_.attrs.get<std::vector<std::string>>("parameters");
}

void Recipe::scale_seed(const std::function<Value()>& factor) const {
  ir::Graph& graph = *directive_.graph();
  const ir::Op* seed = this->seed().op();
  rewrite_ops(graph, [&](ir::Op& op) {
    if (&op != seed) return Values();
    const Value unscaled = record(graph, op.name, op.operands, op.attrs, op.loc)[0];
    return Values{unscaled * cast(factor(), unscaled.dtype())};
  });
}

void Recipe::replace_gradients(const std::function<Value(Value)>& replace) const {
  for (size_t i = 0; i < parameters().size(); ++i) {
    ir::RecordAs as(*directive_.graph(), recording(parameters()[i]));
    gradient(i) = replace(gradient(i));
  }
}

Value Recipe::applies() const {
  return directive_.attrs.get_or(kPredicated, false) ? directive_.operands.back() : Value();
}

void Recipe::set_applies(Value applies) const {
  check(!this->applies(), "the step is predicated twice");
  directive_.operands.push_back(applies);
  directive_.attrs.set(kPredicated, true);
}

}  // namespace fluid
