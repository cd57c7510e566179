#include "frontend/optimizers.h"

#include "ops/record.h"

namespace fluid {
namespace {

void record_recipe(Value loss, const char* optimizer, Attrs settings, const Loc& loc) {
  if (!loss) throw UserError(loc, "minimize: the loss is an empty value");
  if (!loss.shape().empty() || !is_float(loss.dtype())) {
    throw UserError(loc, "minimize: the loss is " + loss.type().str() +
                             ", not a float scalar; take its mean()");
  }
  settings.set("optimizer", std::string(optimizer));
  record(*loss.op()->graph(), "train", {loss}, std::move(settings), loc);
}

template <class Adams>
Attrs adam_settings(const Adams& o) {
  return {{"lr", o.lr},
          {"beta1", o.beta1},
          {"beta2", o.beta2},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay}};
}

}  // namespace

void minimize(Value loss, const SGD& o, const Loc& loc) {
  record_recipe(loss, "sgd", {{"lr", o.lr}, {"weight_decay", o.weight_decay}}, loc);
}

void minimize(Value loss, const Momentum& o, const Loc& loc) {
  record_recipe(loss, "momentum",
                {{"lr", o.lr},
                 {"mu", o.momentum},
                 {"nesterov", o.nesterov},
                 {"weight_decay", o.weight_decay}},
                loc);
}

void minimize(Value loss, const Adam& o, const Loc& loc) {
  record_recipe(loss, "adam", adam_settings(o), loc);
}

void minimize(Value loss, const AdamW& o, const Loc& loc) {
  record_recipe(loss, "adamw", adam_settings(o), loc);
}

}  // namespace fluid
