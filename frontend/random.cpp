#include "frontend/random.h"

#include "ops/internal_functions.h"

namespace fluid {
namespace {

Value state_beside(Value x, const char* function, const Loc& loc) {
  if (!x) throw UserError(loc, std::string(function) + ": the input is an empty value");
  return random_state(*x.op()->graph(), loc);
}

}  // namespace

Value random_state(ir::Graph& graph, const Loc& loc) {
  if (ir::Op* known = graph.find("state", "rng")) return known->result();
  return record_source(graph, "state", "rng", Type{DType::i64, {3}, {}}, {}, loc);
}

Value random_uniform(Value like, const RandomUniform& options, const Loc& loc) {
  const Value rng = state_beside(like, "random_uniform", loc);
  return internal::random_uniform(
      rng, {.type = options.type.value_or(like.type()), .low = options.low, .high = options.high},
      loc);
}

Value random_normal(Value like, const RandomNormal& options, const Loc& loc) {
  const Value rng = state_beside(like, "random_normal", loc);
  return internal::random_normal(
      rng, {.type = options.type.value_or(like.type()), .mean = options.mean, .std = options.std},
      loc);
}

Value bernoulli(Value p, const Loc& loc) {
  return internal::bernoulli(p, state_beside(p, "bernoulli", loc), loc);
}

Value categorical(Value logits, const Loc& loc) {
  return internal::categorical(logits, state_beside(logits, "categorical", loc), loc);
}

}  // namespace fluid
