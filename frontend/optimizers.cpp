#include "frontend/optimizers.h"

#include "frontend/penalties.h"
#include "frontend/recipe_parameters.h"
#include "ops/optim/recipes.h"
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

std::vector<std::string> names_of(const std::vector<Value>& parameters) {
  std::vector<std::string> names;
  for (const Value p : parameters) names.push_back(p.op()->symbol);
  return names;
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
  for (const auto& [name, value] : options.schedule.attrs()) recipe.set(name, value);
  if (options.ema.decay != 0) recipe.set("ema_decay", options.ema.decay);
  if (options.swa.start != 0) {
    recipe.set("swa_start", options.swa.start);
    recipe.set("swa_every", options.swa.every);
  }
  if (options.lookahead.every != 0) {
    recipe.set("lookahead_every", options.lookahead.every);
    recipe.set("lookahead_alpha", options.lookahead.alpha);
  }
  const std::vector<Value> parameters = selected_parameters(loss, options.parameters, loc);
  if (!options.name.empty()) recipe.set("recipe", options.name);
  if (!options.parameters.empty()) recipe.set("trains", names_of(parameters));
  ir::Graph& graph = *loss.op()->graph();
  record(graph, "train", {loss}, std::move(recipe), loc);
  set_penalties(*graph.ops.back());
  check_recipes(graph);
}

}  // namespace fluid
