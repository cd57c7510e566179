#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "codegen/object_cache.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flag_names.h"
#include "executor/fluidrun/help.h"
#include "executor/host/machine_file.h"
#include "executor/launcher/child_process.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

enum ExitCode : int { kSuccess = 0, kUserError = 1, kInternalError = 2, kDeviceFailure = 3 };

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0: success\n"
    "  1: the user's mistake, or a file that is not writable\n"
    "  2: a bug of Fluid\n"
    "  3: a device failed, or memory or threads ran out\n"
    "  128 + N: stopped by signal N; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP";

/// Prints an error message to stderr as one line, with control characters escaped. Returns `code`.
int report(const std::string& what, ExitCode code) {
  std::fprintf(stderr, "fluidrun: %s\n", ir::escape_control_characters(what).c_str());
  return code;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

/// Candidates for the suggestions of did_you_mean(): the flags of the chosen subcommand, or all
/// subcommands if none is chosen.
std::vector<std::string> suggestion_candidates(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? command_names(app) : flags_of(*chosen.front());
}

/// Returns the error message for `name`, an unknown option in the --config file, as CLI11 gives it:
/// SECTION.OPTION, OPTION of the chosen subcommand, or SECTION.++ for an unknown section.
std::string config_error(const CLI::App& app, const std::string& name) {
  const size_t dot = name.rfind('.');
  const std::string option = name.substr(dot == std::string::npos ? 0 : dot + 1);
  const auto unexpected = [&](const std::vector<std::string>& known) {
    return "--config: " + name + " is not expected" + did_you_mean("--" + option, known);
  };
  if (dot == std::string::npos) return unexpected(suggestion_candidates(app));
  const std::string section = name.substr(0, dot);
  const auto commands =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == section; });
  if (!commands.empty()) return unexpected(flags_of(*commands.front()));
  return "--config: no command for the section [" + section + "]" +
         did_you_mean(section, command_names(app));
}

/// Returns the option on the command line that excludes `option`; null: none.
const CLI::Option* excluding_option(const CLI::Option& option) {
  const std::set<CLI::Option*> excluding = option.get_excludes();
  const auto given =
      std::ranges::find_if(excluding, [](const CLI::Option* other) { return other->count() > 0; });
  return given == excluding.end() ? nullptr : *given;
}

/// Parser of the --config file (TOML). Options above the first section belong to the chosen
/// subcommand. CLI11 calls from_config() after it has parsed the command line, whose options take
/// precedence: options of the file that they exclude are ignored with a note, as are the options of
/// the file that need an ignored one.
class ConfigFileParser : public CLI::ConfigTOML {
 public:
  explicit ConfigFileParser(const CLI::App& app) : app_(app) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(input);
    for (const CLI::App* command : app_.get_subcommands()) {
      for (CLI::ConfigItem& item : items) {
        const bool known = command->get_option_no_throw("--" + item.name) != nullptr;
        if (known && item.parents.empty()) item.parents = {command->get_name()};
      }
      std::set<const CLI::Option*> ignored;
      const auto ignores = [&](const CLI::ConfigItem& item) {
        return is_ignored(*command, item, ignored);
      };
      while (std::erase_if(items, ignores) > 0) {
      }
    }
    return items;
  }

 private:
  /// Whether `item` is ignored. Then prints why, and adds its option to `ignored`.
  static bool is_ignored(const CLI::App& command, const CLI::ConfigItem& item,
                         std::set<const CLI::Option*>& ignored) {
    if (item.parents != std::vector{command.get_name()}) return false;
    const CLI::Option* option = command.get_option_no_throw("--" + item.name);
    if (option == nullptr) return false;
    std::string reason;
    if (const CLI::Option* other = excluding_option(*option)) {
      reason = other->get_name() + " excludes it";
    }
    for (const CLI::Option* needed : option->get_needs()) {
      if (ignored.contains(needed)) reason = "it needs " + needed->get_name();
    }
    if (reason.empty()) return false;
    print_to(stderr, "--config: {} is ignored: {}\n", item.name, reason);
    ignored.insert(option);
    return true;
  }

  const CLI::App& app_;
};

/// Whether `word` is an option of the chosen subcommand that takes an optional file.
bool is_optional_file_flag(const CLI::App& app, const std::string& word) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty() || !word.starts_with("--")) return false;
  const CLI::Option* option = chosen.front()->get_option_no_throw(word);
  return option != nullptr && takes_optional_file(*option);
}

/// The file of an option such as --report is optional, and must follow the option after "=".
/// Returns the hint ": write --report=r.json" if `arguments` contain "--report r.json", else "".
std::string equals_sign_hint(const CLI::App& app, std::span<char* const> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string option = arguments[i - 1], file = arguments[i];
    const bool has_extension = file.find('.') != std::string::npos && !file.starts_with('-');
    if (!has_extension || !is_optional_file_flag(app, option)) continue;
    return ": write " + option + "=" + file;
  }
  return "";
}

/// Returns the hint ": write -- before the program" if `word` is the program of `launch` without
/// the separator, else "".
std::string separator_hint(const CLI::App& app, const std::string& word) {
  const auto chosen = app.get_subcommands();
  const bool launches = !chosen.empty() && chosen.front()->get_name() == "launch";
  return launches && !word.starts_with('-') ? ": write -- before the program" : "";
}

int parse_error(const CLI::App& app, const CLI::ParseError& error,
                std::span<char* const> arguments) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining(true);
  if (!rest.empty()) {
    const std::string hint = separator_hint(app, rest.front()) + equals_sign_hint(app, arguments);
    what = "'" + rest.front() + "' is not expected" +
           (hint.empty() ? did_you_mean(rest.front(), suggestion_candidates(app)) : hint);
  }
  // prefix of CLI11's message for an unknown option
  constexpr std::string_view kUnknownOption = "INI was not able to parse ";
  if (what.starts_with(kUnknownOption)) {
    what = config_error(app, what.substr(kUnknownOption.size()));
  }
  const auto chosen = app.get_subcommands();
  const std::string help = chosen.empty() ? "" : " " + chosen.front()->get_name();
  what = what.substr(0, what.find('\n')) + "; see fluidrun" + help + " --help";
  return report(what, kUserError);
}

/// Throws UserError for an option whose value is empty, as that of an unset shell variable is. An
/// empty --cache-dir disables the caches. `words`: the command line, because CLI11 drops the empty
/// value of an optional argument, as in --report=.
void check_no_value_is_empty(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool is_empty = word.starts_with("--") && word.find('=') + 1 == word.size();
    if (is_empty && word != "--cache-dir=") {
      throw UserError(word.substr(0, word.size() - 1) + ": the value is empty");
    }
  }
  std::vector<const CLI::App*> commands = {&app};
  for (const CLI::App* command : app.get_subcommands()) commands.push_back(command);
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string>& values = option->results();
      const bool has_empty = std::ranges::find(values, "") != values.end();
      if (!has_empty || option->get_positional() || option->get_name() == "--cache-dir") continue;
      throw UserError(option->get_name() + ": the value is empty");
    }
  }
}

/// Opens /dev/null for each standard stream that is closed. Otherwise the next opened file would
/// get the descriptor of the stream, and printed text would go into that file.
void open_missing_standard_streams() {
  for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = dup(fd)) {
    if (fd <= STDERR_FILENO) continue;
    close(fd);
    return;
  }
}

int report_stdout_error(int error) {
  return report(std::string("cannot write to the standard output: ") + std::strerror(error),
                kUserError);
}

/// Returns `code` if all writes to stderr succeeded. Else reports the failure on stdout and returns
/// a nonzero exit code.
int report_stderr_error(int code) {
  if (std::ferror(stderr) == 0) return code;
  std::puts("fluidrun: cannot write to the standard error");
  std::fflush(stdout);
  return code == kSuccess ? int{kUserError} : code;
}

/// Adds all subcommands, grouped by purpose. `program`: the arguments after "--" of `launch`.
void add_commands(CLI::App& app, Action& action, const std::vector<std::string>& program) {
  using Add = std::function<void(CLI::App&, Action&)>;
  const auto add_launch_of_program = [&program](CLI::App& parent, Action& chosen) {
    add_launch(parent, chosen, program);
  };
  const std::pair<const char*, std::vector<Add>> purposes[] = {
      {"Train and evaluate",
       {add_train, add_eval, add_predict, add_run, add_merge, add_quantize, add_launch_of_program}},
      {"Inspect", {add_data, add_show, add_summary, add_verify}},
      {"Compile and measure", {add_opt, add_plan, add_bench, add_devices}},
      {"Shell and documentation", {add_completion, add_man}}};
  for (const auto& [purpose, adds] : purposes) {
    for (const Add& add : adds) {
      add(app, action);
      CLI::App* command = app.get_subcommands(nullptr).back();
      command->group(purpose);
      command->fallthrough();
      command->footer(command->get_footer() + "\n\n" + kExitCodes);
      command->get_help_ptr()->group(kGeneralGroup);
    }
  }
}

int main_of(int argc, char** argv) {
  const auto print_line = [](const std::string& what) { print_to(stderr, "{}\n", what); };
  ObjectCache::set_error_listener(print_line);
  set_machine_listener(print_line);
  CLI::App app("Compile neural-network programs, train them and run them", "fluidrun");
  app.formatter_fn([](const CLI::App* command, const std::string& name, CLI::AppFormatMode) {
    return help_text(*command, name);
  });
  begin_group(app, kGeneralGroup);
  app.set_help_flag("-h,--help", "print this help and exit");
  app.require_subcommand(1);
  app.footer(
      "Notes:\n"
      "  `fluidrun COMMAND --help` prints the options of a command and an example.\n\n" +
      std::string(kExitCodes));
  app.set_version_flag("--version", "fluidrun " FLUID_VERSION, "print the version and exit");
  app.set_config(
         "--config", "",
         "read options from a TOML file, for example batch = 100; options below [train] are "
         "for train only")
      ->type_name("FILE");
  app.config_formatter(std::make_shared<ConfigFileParser>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  // The arguments after "--" of `launch` are not passed to CLI11, because CLI11 splits arguments
  // that look like lists.
  char** const end = argv + argc;
  char** separator = std::find(argv, end, std::string_view("--"));
  if (std::find(argv, separator, std::string_view("launch")) == separator) separator = end;
  Action action;
  add_commands(app, action, {std::min(separator + 1, end), end});
  if (argc <= 1) {
    print_to(stderr, "{}", help_text(app, app.get_name()));
    return kUserError;
  }
  try {
    app.parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app.exit(help_or_version, text, std::cerr);
    fmt::print("{}", text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return parse_error(app, error, {argv, separator});
  }
  check_no_value_is_empty(app, {argv, separator});
  return action();
}

/// Called when an allocation fails. Exits immediately and without allocating. An exception would
/// leave LLVM's locks held, and other threads would wait for these locks forever.
[[noreturn]] void out_of_memory() {
  constexpr std::string_view kText = "fluidrun: out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kDeviceFailure);
}

int exit_code_of(int argc, char** argv) {
  try {
    const int code = main_of(argc, argv);
    const int error = stdout_error();
    return error == 0 ? code : report_stdout_error(error);
  } catch (const UserError& e) {
    return report(with_flag_names(e.what()), kUserError);
  } catch (const DeviceError& e) {
    return report(with_flag_names(e.what()), kDeviceFailure);
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::system_error& e) {  // thrown by fmt::print(); errno is stale
    if (std::ferror(stdout) != 0) return report_stdout_error(e.code().value());
    return report(std::string("internal error: ") + e.what(), kInternalError);
  } catch (const std::exception& e) {
    return report(std::string("internal error: ") + e.what(), kInternalError);
  }
}

}  // namespace
}  // namespace fluid

int main(int argc, char** argv) {
  using namespace fluid;
  if (argc > 0 && argv[0] == std::string_view(kChildName)) return exec_program(argv);
  open_missing_standard_streams();
  if (is_train_command(argv)) SignalHandlers::block();
  std::set_new_handler(out_of_memory);
  // ignored, so that a write beyond the file size limit fails with EFBIG
  std::signal(SIGXFSZ, SIG_IGN);
  return report_stderr_error(exit_code_of(argc, argv));
}
