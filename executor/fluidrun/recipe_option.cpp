#include "executor/fluidrun/recipe_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "executor/fluidrun/help.h"
#include "executor/fluidrun/recipe_flags.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"
#include "ops/optim/recipes.h"

namespace fluid {
namespace {

/// Converts settings such as "lr=1e-4,boundaries=10,20" to the flags "--lr=1e-4" and
/// "--boundaries=10,20". A number without a name continues the list of the previous setting.
std::vector<std::string> flags_in(const std::string& settings) {
  std::vector<std::string> flags;
  for (const std::string& part : ir::split_at_commas(settings)) {
    if (!flags.empty() && parse_number<double>(part)) {
      flags.back() += "," + part;
      continue;
    }
    const size_t equals = std::min(part.find('='), part.size());
    flags.push_back(flag_of(part.substr(0, equals)) + part.substr(equals));
  }
  return flags;
}

/// Throws UserError unless each of `flags` is an option of `command`.
void check_names(const CLI::App& command, const std::vector<std::string>& flags) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back(flag_of(name));
  }
  for (const std::string& flag : flags) {
    const std::string name = flag.substr(0, flag.find('='));
    if (std::ranges::find(known, name) != known.end()) continue;
    throw UserError(fmt::format("no flag {} of a recipe{}", name, did_you_mean(name, known)));
  }
}

/// Calls `work`. Rethrows its UserError or ParseError as a UserError whose message begins with
/// `command_line_text`, the option and its value.
template <class F>
void with_option_named(const std::string& command_line_text, F work) {
  try {
    work();
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", command_line_text, e.what()));
  } catch (const CLI::ParseError& e) {
    throw UserError(fmt::format("{}: {}", command_line_text, e.what()));
  }
}

}  // namespace

void add_recipe_option_flag(CLI::App& command, std::vector<std::string>& texts) {
  command
      .add_option("--recipe-option", texts,
                  "flags of the optimizer, clipping, averages and the schedule for one of several "
                  "recipes, such as d:lr=1e-4,optimizer=adam,ema=0.999; repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME:FLAG=VALUE,...");
}

RecipeOption::RecipeOption(const Program& program, const std::string& text)
    : command_line_text_(fmt::format("--recipe-option '{}'", text)) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw UserError(command_line_text_ +
                    ": must be NAME:FLAG=VALUE,..., as in 'd:lr=1e-4,optimizer=adam'");
  }
  if (recipe_names(program.ir().main()).size() <= 1) {
    throw UserError(fmt::format("{}: program '{}' does not have several recipes",
                                command_line_text_, program.ir().name));
  }
  recipe_ = recipe_called(program, text.substr(0, colon), command_line_text_);
  with_option_named(command_line_text_, [&] {
    CLI::App parser;
    parser.set_help_flag();
    add_optimizer_flags(parser, optimizer_);
    add_update_flags(parser, update_);
    add_schedule_flags(parser, schedule_);
    std::vector<std::string> flags = flags_in(text.substr(colon + 1));
    check_names(parser, flags);
    for (const std::string& flag : flags) flags_.insert(flag.substr(0, flag.find('=')));
    std::ranges::reverse(flags);  // CLI11 parses a vector of arguments from its end
    parser.parse(std::move(flags));
  });
}

void RecipeOption::check_sets_no_rate(const char* flag) const {
  const std::string schedule = schedule_.command_line_text();
  const std::string excluded = optimizer_.lr != 0  ? "--lr"
                               : !schedule.empty() ? schedule
                               : update_.ema != 0  ? "--ema"
                               : update_.swa != 0  ? "--swa"
                                                   : "";
  if (excluded.empty()) return;
  throw UserError(fmt::format("{}: {} excludes {}", command_line_text_, flag, excluded));
}

void RecipeOption::set_optimizer(Program& program) const {
  with_option_named(command_line_text_, [&] {
    fluid::set_optimizer(program, optimizer_, recipe_);
    set_update(program, update_, recipe_);
  });
}

void RecipeOption::set_schedule(Program& program, std::optional<int64_t> updates) const {
  with_option_named(command_line_text_, [&] {
    fluid::set_schedule(program, schedule_, updates, recipe_);
    check_lr_is_used(program, optimizer_, recipe_);
  });
}

std::vector<RecipeOption> parse_recipe_options(const Program& program,
                                               const std::vector<std::string>& texts) {
  std::vector<RecipeOption> options;
  std::set<std::pair<std::string, std::string>> known;  // (recipe, flag)
  for (const std::string& text : texts) {
    const RecipeOption& option = options.emplace_back(program, text);
    for (const std::string& flag : option.flags()) {
      if (known.emplace(option.recipe(), flag).second) continue;
      throw UserError(fmt::format("{}: {} of recipe '{}' is given twice",
                                  option.command_line_text(), flag, option.recipe()));
    }
  }
  return options;
}

}  // namespace fluid
