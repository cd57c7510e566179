#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fluid {

// Titles of the option groups in --help, in printing order.
inline constexpr const char* kDataGroup = "Data";
inline constexpr const char* kTrainingGroup = "Training";
inline constexpr const char* kOptimizerGroup = "Optimizer";
inline constexpr const char* kScheduleGroup = "Schedule";
inline constexpr const char* kParametersGroup = "Parameters";
inline constexpr const char* kFilesGroup = "Files";
inline constexpr const char* kCompilerGroup = "Compiler";
inline constexpr const char* kPrecisionGroup = "Precision";
inline constexpr const char* kDistributedGroup = "Distributed";
inline constexpr const char* kMemoryGroup = "Memory";
inline constexpr const char* kDeviceGroup = "Device";
inline constexpr const char* kDebuggingGroup = "Debugging";
inline constexpr const char* kGeneralGroup = "General";

/// Sets the --help group of the options that are added to `command` afterwards.
void begin_group(CLI::App& command, const char* group);

/// Adds a flag that takes an optional file, as `--name=FILE`. As with getopt_long(), the file in
/// `--name FILE` does not belong to the flag: it is a separate argument. `file` is set to "true" if
/// the flag is given without a file.
CLI::Option* add_file_flag(CLI::App& command, const std::string& name, std::string& file,
                           const std::string& description);
/// Whether add_file_flag() added `option`.
bool takes_optional_file(const CLI::Option& option);

/// The texts of an option in --help, man pages and completion scripts.
struct OptionText {
  std::vector<std::string> names;  ///< names such as "-o" and "--output"; one name for a positional
  std::string value;           ///< type name of the value: "N", "off|o1|o2|auto"; empty for a flag
  std::string optional_value;  ///< type name of an optional value (add_file_flag()); else empty
  std::vector<std::string> choices;  ///< fixed choices in the type name: "off", "o1", ...
  /// The description as one line, followed by remarks in parentheses: default value, needed options
  /// and excluded options.
  std::string description;
};

/// The options of one --help group.
struct OptionGroup {
  std::string title;
  std::vector<OptionText> options;
};
/// A titled section of the text below the options, such as "Examples".
struct TextSection {
  std::string title;
  std::vector<std::string> lines;  ///< lines of text, without their two-column indent
};

/// The texts of a command in --help, man pages and completion scripts.
struct CommandText {
  std::string name, description;
  std::string usage;  ///< arguments after the command's name: "[OPTIONS] program"
  std::vector<OptionText> positionals;
  std::vector<OptionGroup> groups;    ///< options by group, in the order of --help
  std::vector<TextSection> sections;  ///< sections below the options
};
CommandText command_text(const CLI::App& command);

/// Subcommands with the same purpose, such as "Inspect".
struct CommandGroup {
  std::string purpose;
  std::vector<CommandText> commands;
};
std::vector<CommandGroup> commands_by_purpose(const CLI::App& app);

/// The text of --help for fluidrun or a subcommand, wrapped at 100 columns. `name` is the command
/// in the usage line, such as "fluidrun train".
std::string help_text(const CLI::App& command, const std::string& name);

/// The completion script for `shell`: "bash", "zsh" or "fish".
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The man page (section 1) of `command` in roff. `command` is a subcommand of `app`, or `app`
/// itself.
std::string man_page(const CLI::App& app, const CLI::App& command);

}  // namespace fluid
