#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fluid {

// Groups of options, in the order of --help.
inline constexpr const char* kDataGroup = "Data";
inline constexpr const char* kTrainingGroup = "Training";
inline constexpr const char* kFilesGroup = "Files";
inline constexpr const char* kCompilerGroup = "Compiler";
inline constexpr const char* kPrecisionGroup = "Precision";
inline constexpr const char* kDistributedGroup = "Distributed";
inline constexpr const char* kMemoryGroup = "Memory";
inline constexpr const char* kDeviceGroup = "Device";
inline constexpr const char* kDebuggingGroup = "Debugging";
inline constexpr const char* kGeneralGroup = "General";

/// Puts the options that are added next into `group`.
void begin_group(CLI::App& command, const char* group);

/// An option as --help, man pages and completion scripts describe it.
struct OptionText {
  std::vector<std::string> names;    ///< "-o", "--epochs"; the name of a positional
  std::string value;                 ///< "N", "off|o1|o2|auto"; empty: a flag
  std::vector<std::string> choices;  ///< the fixed words of `value`: "off", "o1", ...
  std::string description;           ///< one line, with the default and required options
};

/// A titled part of a description: the options of a group, or lines of text.
struct OptionGroup {
  std::string title;
  std::vector<OptionText> options;
};
struct TextSection {
  std::string title;
  std::vector<std::string> lines;  ///< indented as the footer has them, less two columns
};

/// A command as --help, man pages and completion scripts describe it.
struct CommandText {
  std::string name, description;
  std::string usage;  ///< what follows the name: "[OPTIONS] program"
  std::vector<OptionText> positionals;
  std::vector<OptionGroup> groups;  ///< in the order of the constants above
  std::vector<TextSection>
      sections;  ///< of the footer: "Title:", lines indented by two, blank line
};
CommandText describe(const CLI::App& command);

/// The subcommands of one purpose.
struct CommandGroup {
  std::string purpose;
  std::vector<CommandText> commands;
};
std::vector<CommandGroup> commands_by_purpose(const CLI::App& app);

/// The text of --help for the program or a subcommand; no line is longer than 100 columns.
/// `name`: "fluidrun train".
std::string help_text(const CLI::App& command, const std::string& name);

/// The completion script for "bash", "zsh" or "fish".
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The man page of `command`, a subcommand of `app` or `app` itself, in roff for section 1.
std::string man_page(const CLI::App& app, const CLI::App& command);

}  // namespace fluid
