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

}  // namespace

void minimize(Value loss, Attrs recipe, const MinimizeOptions& options, const Loc& loc) {
  if (!loss) throw UserError(loc, "minimize: the loss is an empty value");
  if (!loss.shape().empty() || !is_float(loss.dtype())) {
    throw UserError(loc, "minimize: the loss is " + loss.type().str() +
                             ", not a float scalar; take its mean()");
  }
  set_parameter_groups(*loss.op()->graph(), options.groups, loc);
  add_clip(recipe, options.clip);
  add_schedule(recipe, options.schedule);
  if (options.ema.decay != 0) recipe.set("ema_decay", options.ema.decay);
  record(*loss.op()->graph(), "train", {loss}, std::move(recipe), loc);
}

}  // namespace fluid
