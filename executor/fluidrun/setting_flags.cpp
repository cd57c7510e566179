#include "executor/fluidrun/setting_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

template <class T>
std::optional<std::vector<T>> list_in(const std::string& text) {
  std::vector<T> list;
  for (const std::string& element : ir::split_at_commas(text)) {
    const auto value = parse_number<T>(element);
    if (!value || !std::isfinite(static_cast<double>(*value))) return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

/// The parser of a setting's value, and the texts that describe the value in --help and errors.
struct ValueKind {
  std::string type_name, expectation;
  std::function<std::optional<Attr>(const std::string&)> parse;
};

ValueKind kind_of(const Attr& kind) {
  const auto first = [](const auto& list) {
    return list && list->size() == 1 ? std::optional<Attr>(list->front()) : std::nullopt;
  };
  const auto all = [](auto list) {
    return list ? std::optional<Attr>(std::move(*list)) : std::nullopt;
  };
  if (std::holds_alternative<int64_t>(kind)) {
    return {"N", "an integer", [=](const auto& text) { return first(list_in<int64_t>(text)); }};
  }
  if (std::holds_alternative<std::vector<int64_t>>(kind)) {
    return {"N,N,...", "integers with commas between them",
            [=](const auto& text) { return all(list_in<int64_t>(text)); }};
  }
  if (std::holds_alternative<std::vector<double>>(kind)) {
    return {"NUMBER,NUMBER,...", "numbers with commas between them",
            [=](const auto& text) { return all(list_in<double>(text)); }};
  }
  if (std::holds_alternative<std::string>(kind)) {
    return {"NAME", "a name", [](const auto& text) { return Attr(text); }};
  }
  return {"NUMBER", "a number", [=](const auto& text) { return first(list_in<double>(text)); }};
}

/// Returns the flag that switches a setting off: "--no-nesterov" for "--nesterov".
std::string negated(const std::string& flag) { return "--no-" + flag.substr(2); }

/// A setting of one or more optimizers or schedules.
struct DescribedSetting {
  Attr kind;
  bool is_on_by_default = false;  ///< whether any optimizer or schedule has the default true
  /// Description of the setting -> names of the optimizers or schedules with this description.
  std::map<std::string, std::vector<std::string>> names_by_description;
};

std::map<std::string, DescribedSetting> described(const std::vector<NamedSettings>& choices) {
  std::map<std::string, DescribedSetting> settings;
  for (const NamedSettings& choice : choices) {
    for (const AttrDef& a : choice.settings) {
      DescribedSetting& setting =
          settings.try_emplace(a.name, DescribedSetting{a.fallback, false, {}}).first->second;
      setting.names_by_description[a.doc].push_back(choice.name);
      if (const auto* on = std::get_if<bool>(&a.fallback)) setting.is_on_by_default |= *on;
    }
  }
  return settings;
}

/// The help text of a setting: "decay rate of m (adam, adamw); weight of m in the step (lion)".
/// Omits the names in parentheses if all choices (optimizers or schedules) share the description.
std::string description_of(const DescribedSetting& setting, size_t choice_count) {
  std::string text;
  for (const auto& [doc, names] : setting.names_by_description) {
    text += (text.empty() ? "" : "; ") + doc;
    if (names.size() < choice_count) text += fmt::format(" ({})", join_names(names));
  }
  return text;
}

}  // namespace

Attr SettingFlag::value() const {
  if (std::holds_alternative<bool>(kind)) return *is_on;
  return *kind_of(kind).parse(text);
}

std::string SettingFlag::command_line_text() const {
  if (is_on == false) return negated(flag);
  return text.empty() ? flag : flag + " " + text;
}

std::string flag_of(std::string setting) {
  std::ranges::replace(setting, '_', '-');
  return "--" + setting;
}

std::string join_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_setting_flags(CLI::App& command, const std::vector<NamedSettings>& choices,
                       const std::function<std::string(const std::string&)>& flag_of_setting,
                       SettingFlags& flags) {
  for (const auto& [name, setting] : described(choices)) {
    SettingFlag& flag = flags[name];
    flag = {.flag = flag_of_setting(name), .kind = setting.kind, .text = {}};
    const std::string description = description_of(setting, choices.size());
    if (std::holds_alternative<bool>(setting.kind)) {
      const std::string off = setting.is_on_by_default ? ",!" + negated(flag.flag) : "";
      command.add_flag_function(
          flag.flag + off, [&flag](int64_t count) { flag.is_on = count > 0; }, description);
      continue;
    }
    const ValueKind kind = kind_of(setting.kind);
    const auto check = [kind](const std::string& text) {
      return kind.parse(text) ? "" : "must be " + kind.expectation + ", not " + text;
    };
    command.add_option(flag.flag, flag.text, description)->check(check)->type_name(kind.type_name);
  }
}

}  // namespace fluid
