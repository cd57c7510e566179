#include "executor/fluidrun/parameter_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/fluidrun/help.h"
#include "executor/launcher/print_to.h"
#include "executor/options/world.h"
#include "frontend/lora.h"
#include "frontend/name_pattern.h"
#include "frontend/parameter_groups.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

/// Parses a setting of --param. Throws UserError unless `text` is a number of 0 or more.
double parse_scale(const std::string& setting, const std::string& text) {
  const auto value = parse_number<double>(text);
  if (value && std::isfinite(*value) && *value >= 0) return *value;
  throw UserError(fmt::format("{} must be a number of 0 or more, not '{}'", setting, text));
}

bool parse_switch(const std::string& setting, const std::string& text) {
  if (text == "0" || text == "1") return text == "1";
  throw UserError(fmt::format("{} must be 0 or 1, not '{}'", setting, text));
}

/// Sets the setting `name` of a parameter group. Returns false if there is no setting `name`.
bool set_group_setting(ParameterGroup& group, const std::string& name, const std::string& value) {
  if (name == "lr") {
    group.lr_scale = parse_scale(name, value);
  } else if (name == "decay") {
    group.decay_scale = parse_scale(name, value);
  } else if (name == "l1") {
    group.l1 = parse_scale(name, value);
  } else if (name == "l2") {
    group.l2 = parse_scale(name, value);
  } else if (name == "max_norm") {
    group.max_norm = parse_scale(name, value);
  } else if (name == "train") {
    group.trainable = parse_switch(name, value);
  } else {
    return false;
  }
  return true;
}

/// Settings of an initialiser, such as std=0.02 and mode=fan_out.
using InitSettings = std::vector<std::pair<std::string, std::string>>;

/// Returns the initialiser called `name`, or the values in the file `name` if it ends in .npy.
Init parse_init(const std::string& name, const InitSettings& settings) {
  if (name.ends_with(".npy")) {
    if (settings.empty()) return Init::npy(name);
    throw UserError(fmt::format("init={} has no setting '{}'", name, settings[0].first));
  }
  Attrs attrs;
  for (const auto& [setting, value] : settings) {
    const auto number = parse_number<double>(value);
    attrs.set(setting, number ? Attr(*number) : Attr(value));
  }
  return Init::named(name, attrs);
}

/// Splits "PATTERN:SETTINGS" at the last colon. The error message shows `form` and `example`.
std::pair<std::string, std::string> split_settings(const std::string& text, const char* form,
                                                   const char* example) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw UserError(fmt::format("must be {}, as in {}", form, example));
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Parses "PATTERN:lr=10,init=normal,std=0.02".
ParameterGroup parse_group(const std::string& text) {
  const auto [pattern, settings] =
      split_settings(text, "PATTERN:SETTING=VALUE", "'head.*:lr=10,decay=0'");
  ParameterGroup group{.pattern = pattern};
  std::optional<std::string> init;
  InitSettings init_settings;
  for (size_t begin = 0; begin <= settings.size();) {
    const size_t end = std::min(settings.find(',', begin), settings.size());
    const std::string setting = settings.substr(begin, end - begin);
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw UserError(fmt::format("'{}' is not SETTING=VALUE", setting));
    }
    const std::string name = setting.substr(0, equals), value = setting.substr(equals + 1);
    if (name == "init") {
      init = value;
    } else if (!set_group_setting(group, name, value)) {
      init_settings.emplace_back(name, value);
    }
    begin = end + 1;
  }
  if (init) {
    group.init = parse_init(*init, init_settings);
  } else if (!init_settings.empty()) {
    throw UserError(
        fmt::format("no setting '{}'; there are lr, decay, l1, l2, max_norm, train and init",
                    init_settings[0].first));
  }
  return group;
}

/// Calls `apply` for each value of `flag`. Error messages contain the flag and the value.
template <class F>
void for_each_text(const char* flag, const std::vector<std::string>& texts, F apply) {
  for (const std::string& text : texts) {
    try {
      apply(text);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{} '{}': {}", flag, text, e.what()));
    }
  }
}

/// Throws UserError if `group` has a setting of training, and all parameters that it selects are
/// frozen.
void check_is_trained(const Program& program, const ParameterGroup& group) {
  const bool sets_training =
      group.lr_scale || group.decay_scale || group.l1 || group.l2 || group.max_norm;
  if (!sets_training) return;
  const NamePattern pattern(group.pattern);
  std::string frozen;
  bool omits_adapters = false;
  for (const auto& op : program.ir().main().ops) {
    if (source_kind(*op) != SourceKind::parameter || !pattern.selects(op->symbol)) continue;
    if (!selects_parameter(pattern, *op)) {
      omits_adapters = true;
      continue;
    }
    if (!is_frozen_variable(*op)) return;
    if (frozen.empty()) frozen = op->symbol;
  }
  throw UserError(fmt::format(
      "changes nothing: '{}' is frozen, as are all selected parameters{}", frozen,
      omits_adapters ? "; a pattern selects LoRA adapters only if it contains 'lora_'" : ""));
}

void add_pattern_option(CLI::App& command, const char* name, std::vector<std::string>& texts,
                        const char* type, const char* description) {
  command.add_option(name, texts, description)->allow_extra_args(false)->type_name(type);
}

}  // namespace

void add_parameter_flags(CLI::App& command, ParameterFlags& flags) {
  begin_group(command, kParametersGroup);
  add_pattern_option(command, "--lora", flags.lora, "PATTERN[:SETTINGS]",
                     "add low-rank adapters to these linear weights: rank=N, alpha=X (default: 8 "
                     "and 8), and freeze all others, which --save leaves out; repeatable");
  add_pattern_option(command, "--freeze", flags.freeze, "PATTERN",
                     "do not train these parameters: no gradient, no optimizer state; repeatable");
  add_pattern_option(command, "--freeze-stats", flags.freeze_statistics, "PATTERN",
                     "normalise by the running statistics of these batch norms, and do not update "
                     "them; repeatable");
  add_pattern_option(command, "--param", flags.groups, "PATTERN:SETTINGS",
                     "settings of these parameters: lr=X and decay=X multiply the learning rate "
                     "and the weight decay, l1=X and l2=X add penalties to the loss, max_norm=X "
                     "bounds the norm of the weights into each output, train=0|1 freezes or "
                     "unfreezes, init=NAME|FILE.npy sets the initial values, followed by the "
                     "initialiser's settings (init=normal,std=0.02); repeatable");
}

void set_parameters(Program& program, const ParameterFlags& flags) {
  const auto apply = [&](const ParameterGroup& group) {
    set_parameter_groups(program, {group}, Loc());
  };
  for_each_text("--lora", flags.lora, [&](const std::string& text) {
    const bool has_settings = text.find(':') != std::string::npos;
    const auto [pattern, settings] =
        has_settings ? split_settings(text, "PATTERN:rank=N", "'attention*:rank=8'")
                     : std::pair(text, std::string());
    const Lora options = has_settings ? parse_lora(settings) : Lora();
    for (const std::string& weight : lora(program, pattern, options, Loc())) {
      if (World::from_env().rank == 0) {
        print_to(stderr, "--lora '{}': no adapters for {}\n", text, weight);
      }
    }
  });
  for_each_text("--freeze", flags.freeze, [&](const std::string& pattern) {
    apply({.pattern = pattern, .trainable = false});
  });
  for_each_text("--freeze-stats", flags.freeze_statistics, [&](const std::string& pattern) {
    apply({.pattern = pattern, .freeze_statistics = true});
  });
  for_each_text("--param", flags.groups,
                [&](const std::string& text) { apply(parse_group(text)); });
  for_each_text("--param", flags.groups,
                [&](const std::string& text) { check_is_trained(program, parse_group(text)); });
}

std::string pattern_help() {
  return "Patterns:\n"
         "  A pattern names parameters or layers: conv0.w, or conv0 with all it contains.\n"
         "  It selects low-rank adapters, in --freeze and --param, only if it contains lora_.\n"
         "  * any characters, ? one character, [0-3] one of these, [!0-3] one other, {w,b} either "
         "text\n"
         "  (*) captures characters for $1, $2... in --params-map\n";
}

}  // namespace fluid
