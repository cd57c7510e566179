#include "executor/fluidrun/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

namespace fluid {
namespace {

constexpr size_t kMaxColumns = 100;
constexpr size_t kTextColumn = 30;  // column at which the descriptions begin
constexpr size_t kMaxValueColumns = 80;

/// Appends `text`, wrapped at kMaxColumns. The first line continues at column `first_column`; later
/// lines start at column `indent`.
void append_wrapped(std::string& out, const std::string& text, size_t first_column, size_t indent) {
  size_t column = first_column;
  bool first = true;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    if (word.empty()) continue;
    if (!first && column + 1 + word.size() > kMaxColumns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
  out += '\n';
}

/// Appends a row of two columns. If `left` is too long for its column, `right` is on the next line.
void append_row(std::string& out, const std::string& left, const std::string& right) {
  out += "  " + left;
  size_t column = left.size() + 2;
  if (column + 2 > kTextColumn) {
    out += '\n';
    column = 0;
  }
  out += std::string(kTextColumn - column, ' ');
  append_wrapped(out, right, kTextColumn, kTextColumn);
}

std::string names_and_value(const OptionText& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.optional_value.empty()) return names + "[=" + option.optional_value + "]";
  return option.value.empty() ? names : names + " " + option.value;
}

/// The fixed choices in a type name: auto and cpu for "auto|cpu|cuda:N". A word with an upper-case
/// letter is a placeholder, not a choice.
std::vector<std::string> choices_in(const std::string& value) {
  std::vector<std::string> choices;
  if (value.find('|') == std::string::npos) return choices;
  for (const std::string& word : CLI::detail::split(value, '|')) {
    const bool fixed = std::ranges::none_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (fixed) choices.push_back(word);
  }
  return choices;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The description of `option`, followed by "(required; needs ...; excludes ...; default: ...)".
std::string description_of(const CLI::Option& option) {
  std::vector<std::string> remarks;
  if (option.get_required()) remarks.emplace_back("required");
  if (!option.get_needs().empty()) remarks.push_back("needs " + names_of(option.get_needs()));
  if (!option.get_excludes().empty())
    remarks.push_back("excludes " + names_of(option.get_excludes()));
  if (!option.get_default_str().empty()) remarks.push_back("default: " + option.get_default_str());
  if (remarks.empty()) return option.get_description();
  return fmt::format("{} ({})", option.get_description(), fmt::join(remarks, "; "));
}

OptionText option_text(const CLI::Option& option) {
  OptionText text{.description = description_of(option)};
  if (option.get_positional()) {
    text.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) text.value = option.get_type_name();
  if (takes_optional_file(option)) text.optional_value = option.get_type_name();
  text.choices = choices_in(text.value);
  if (!text.choices.empty() && text.value.size() > kMaxValueColumns) {
    text.value = "NAME";
    text.description += fmt::format("; one of {}", fmt::join(text.choices, ", "));
  }
  return text;
}

std::vector<TextSection> sections_of(const std::string& footer) {
  std::vector<TextSection> sections;
  for (const std::string& line : CLI::detail::split(footer, '\n')) {
    if (line.empty()) continue;
    if (line.front() != ' ' && line.back() == ':') {
      sections.push_back({line.substr(0, line.size() - 1), {}});
    } else if (!sections.empty()) {
      sections.back().lines.push_back(line.substr(std::min<size_t>(2, line.size())));
    }
  }
  return sections;
}

bool is_named(const CLI::App* command) { return !command->get_name().empty(); }

}  // namespace

void begin_group(CLI::App& command, const char* group) { command.option_defaults()->group(group); }

CLI::Option* add_file_flag(CLI::App& command, const std::string& name, std::string& file,
                           const std::string& description) {
  return command.add_flag(name, file, description)->type_name("FILE");
}

bool takes_optional_file(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 && option.get_type_name() == "FILE";
}

CommandText command_text(const CLI::App& command) {
  CommandText text{.name = command.get_name(),
                   .description = command.get_description(),
                   .usage = "[OPTIONS]",
                   .sections = sections_of(command.get_footer())};
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    text.positionals.push_back(option_text(*option));
    const std::string name = option->get_name(true);
    text.usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  if (!command.get_subcommands(is_named).empty()) text.usage += " COMMAND";
  for (const char* group :
       {kDataGroup, kTrainingGroup, kOptimizerGroup, kScheduleGroup, kParametersGroup, kFilesGroup,
        kCompilerGroup, kPrecisionGroup, kDistributedGroup, kMemoryGroup, kDeviceGroup,
        kDebuggingGroup, kGeneralGroup}) {
    OptionGroup options{group, {}};
    for (const CLI::Option* option : command.get_options()) {
      if (option->nonpositional() && option->get_group() == group) {
        options.options.push_back(option_text(*option));
      }
    }
    if (!options.options.empty()) text.groups.push_back(std::move(options));
  }
  return text;
}

std::vector<CommandGroup> commands_by_purpose(const CLI::App& app) {
  std::vector<CommandGroup> groups;
  for (const CLI::App* command : app.get_subcommands(is_named)) {
    auto group = std::ranges::find(groups, command->get_group(), &CommandGroup::purpose);
    if (group == groups.end()) {
      groups.push_back({command->get_group(), {}});
      group = std::prev(groups.end());
    }
    group->commands.push_back(command_text(*command));
  }
  return groups;
}

std::string help_text(const CLI::App& command, const std::string& name) {
  const CommandText text = command_text(command);
  std::string out;
  append_wrapped(out, text.description, 0, 0);
  append_wrapped(out, "Usage: " + name + " " + text.usage, 0, 7);
  if (!text.positionals.empty()) out += "\nArguments:\n";
  for (const OptionText& option : text.positionals) {
    append_row(out, names_and_value(option), option.description);
  }
  for (const CommandGroup& group : commands_by_purpose(command)) {
    out += "\n" + group.purpose + ":\n";
    for (const CommandText& each : group.commands) append_row(out, each.name, each.description);
  }
  for (const OptionGroup& group : text.groups) {
    out += "\n" + group.title + ":\n";
    for (const OptionText& option : group.options) {
      append_row(out, names_and_value(option), option.description);
    }
  }
  for (const TextSection& section : text.sections) {
    out += "\n" + section.title + ":\n";
    for (const std::string& line : section.lines) {
      const size_t indent = 2 + std::min(line.find_first_not_of(' '), line.size());
      out += std::string(indent, ' ');
      append_wrapped(out, line, indent, indent + 2);
    }
  }
  return out;
}

}  // namespace fluid
