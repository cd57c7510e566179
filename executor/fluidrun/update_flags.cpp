#include "executor/fluidrun/update_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/recipe_flags.h"
#include "ir/number.h"

namespace fluid {
namespace {

std::string must_be_decay(const std::string& text) {
  const bool good = validate_positive(text).empty() && *parse_number<double>(text) < 1;
  return good ? "" : "must be above 0 and below 1, not " + text;
}

std::string must_be_limit(const std::string& text) {
  const bool good = validate_positive(text).empty() || parse_number<double>(text) == 0;
  return good ? "" : "must be a positive number, or 0 for no clipping, not " + text;
}

void add_clip_flags(CLI::App& command, UpdateFlags& flags) {
  const auto add = [&](const char* flag, std::optional<double>& value, const char* what) {
    command
        .add_option(flag, value,
                    fmt::format("clip {}; replaces the program's; 0: no clipping", what))
        ->check(must_be_limit)
        ->type_name("NUMBER");
  };
  add("--clip-value", flags.clip_value, "each element of the gradients to [-NUMBER, NUMBER]");
  add("--clip-norm", flags.clip_norm, "the norm of each parameter's gradient");
  add("--clip-global-norm", flags.clip_global_norm, "the norm of all gradients together");
}

void add_average_flags(CLI::App& command, UpdateFlags& flags) {
  command
      .add_option(
          "--ema", flags.ema,
          "keep exponential moving averages of the parameters; --val evaluates them, --save "
          "and --save-best write them")
      ->check(must_be_decay)
      ->type_name("DECAY");
  CLI::Option* swa =
      command
          .add_option("--swa", flags.swa,
                      "keep equal-weight averages of the parameters from this update on, as --ema "
                      "keeps moving averages")
          ->check(validate_positive_integer)
          ->type_name("UPDATE");
  command.get_option("--ema")->excludes(swa);
  command.add_option("--swa-every", flags.swa_every, "average after each N updates (default: 1)")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->needs(swa);
}

void add_lookahead_flags(CLI::App& command, UpdateFlags& flags) {
  CLI::Option* lookahead =
      command
          .add_option(
              "--lookahead", flags.lookahead,
              "move slow weights towards the parameters after each N updates, and reset the "
              "parameters to them")
          ->check(validate_positive_integer)
          ->type_name("N");
  command
      .add_option("--lookahead-alpha", flags.lookahead_alpha,
                  "step size of the slow weights (default: 0.5)")
      ->check(validate_positive)
      ->type_name("NUMBER")
      ->needs(lookahead);
}

/// The first given flag, for error messages; empty: no flag is given.
std::string command_line_text(const UpdateFlags& flags) {
  if (flags.clip_value) return fmt::format("--clip-value {}", *flags.clip_value);
  if (flags.clip_norm) return fmt::format("--clip-norm {}", *flags.clip_norm);
  if (flags.clip_global_norm) return fmt::format("--clip-global-norm {}", *flags.clip_global_norm);
  if (flags.ema > 0) return fmt::format("--ema {}", flags.ema);
  if (flags.swa > 0) return fmt::format("--swa {}", flags.swa);
  return flags.lookahead > 0 ? fmt::format("--lookahead {}", flags.lookahead) : "";
}

void set_clip(Attrs& recipe, const char* name, std::optional<double> limit) {
  if (!limit) return;
  recipe.erase(name);
  if (*limit > 0) recipe.set(name, *limit);
}

}  // namespace

void add_update_flags(CLI::App& command, UpdateFlags& flags) {
  begin_group(command, kOptimizerGroup);
  add_clip_flags(command, flags);
  add_average_flags(command, flags);
  add_lookahead_flags(command, flags);
}

void set_update(Program& program, const UpdateFlags& flags, const std::string& recipe) {
  ir::Op* train = recipe_to_change(program, command_line_text(flags), recipe);
  if (train == nullptr) return;  // the trainer rejects a program without a recipe
  Attrs& attrs = train->attrs;
  set_clip(attrs, "clip_value", flags.clip_value);
  set_clip(attrs, "clip_norm", flags.clip_norm);
  set_clip(attrs, "clip_global_norm", flags.clip_global_norm);
  if (flags.ema > 0 || flags.swa > 0) {
    for (const char* name : {"ema_decay", "swa_start", "swa_every"}) attrs.erase(name);
  }
  if (flags.ema > 0) attrs.set("ema_decay", flags.ema);
  if (flags.swa > 0) attrs.set("swa_start", flags.swa);
  if (flags.swa_every > 0) attrs.set("swa_every", flags.swa_every);
  if (flags.lookahead > 0) attrs.set("lookahead_every", flags.lookahead);
  if (flags.lookahead_alpha > 0) attrs.set("lookahead_alpha", flags.lookahead_alpha);
}

}  // namespace fluid
