#include "frontend/optimizers.h"

#include "ops/record.h"

namespace fluid {
namespace {

void add_clip(Attrs& settings, const Clip& clip) {
  const auto set = [&](const char* name, double most) {
    if (most != 0) settings.set(name, most);
  };
  set("clip_value", clip.value);
  set("clip_norm", clip.norm);
  set("clip_global_norm", clip.global_norm);
}

void add_schedule(Attrs& settings, const Schedule& schedule) {
  if (const auto* step = std::get_if<StepDecay>(&schedule)) {
    settings.set("schedule", std::string("step"));
    settings.set("schedule_every", *step->every);
    settings.set("schedule_factor", step->factor);
  } else if (const auto* cosine = std::get_if<Cosine>(&schedule)) {
    settings.set("schedule", std::string("cosine"));
    settings.set("schedule_steps", *cosine->steps);
    settings.set("schedule_warmup", cosine->warmup);
    settings.set("schedule_end", cosine->end);
  } else if (const auto* plateau = std::get_if<Plateau>(&schedule)) {
    settings.set("schedule", std::string("plateau"));
    settings.set("schedule_factor", plateau->factor);
    settings.set("schedule_patience", plateau->patience);
    settings.set("schedule_threshold", plateau->threshold);
    settings.set("schedule_cooldown", plateau->cooldown);
    settings.set("schedule_min_lr", plateau->min_lr);
  } else if (std::holds_alternative<Manual>(schedule)) {
    settings.set("schedule", std::string("manual"));
  }
}

void record_recipe(Value loss, const char* optimizer, Attrs settings,
                   const MinimizeOptions& options, const Loc& loc) {
  if (!loss) throw UserError(loc, "minimize: the loss is an empty value");
  if (!loss.shape().empty() || !is_float(loss.dtype())) {
    throw UserError(loc, "minimize: the loss is " + loss.type().str() +
                             ", not a float scalar; take its mean()");
  }
  settings.set("optimizer", std::string(optimizer));
  add_clip(settings, options.clip);
  add_schedule(settings, options.schedule);
  if (options.ema.decay != 0) settings.set("ema_decay", options.ema.decay);
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

void minimize(Value loss, const SGD& o, const MinimizeOptions& options, const Loc& loc) {
  record_recipe(loss, "sgd", {{"lr", o.lr}, {"weight_decay", o.weight_decay}}, options, loc);
}

void minimize(Value loss, const Momentum& o, const MinimizeOptions& options, const Loc& loc) {
  record_recipe(loss, "momentum",
                {{"lr", o.lr},
                 {"mu", o.momentum},
                 {"nesterov", o.nesterov},
                 {"weight_decay", o.weight_decay}},
                options, loc);
}

void minimize(Value loss, const Adagrad& o, const MinimizeOptions& options, const Loc& loc) {
  record_recipe(
      loss, "adagrad",
      {{"lr", o.lr}, {"lr_decay", o.lr_decay}, {"eps", o.eps}, {"weight_decay", o.weight_decay}},
      options, loc);
}

void minimize(Value loss, const Adam& o, const MinimizeOptions& options, const Loc& loc) {
  record_recipe(loss, "adam", adam_settings(o), options, loc);
}

void minimize(Value loss, const AdamW& o, const MinimizeOptions& options, const Loc& loc) {
  record_recipe(loss, "adamw", adam_settings(o), options, loc);
}

}  // namespace fluid
