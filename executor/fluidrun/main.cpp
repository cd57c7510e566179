#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>

#include "codegen/object_cache.h"
#include "executor/fluidrun/child_process.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/standard_output.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

enum ExitCode : int { kGood = 0, kUserMistake = 1, kOurBug = 2, kDeviceRefused = 3 };

/// One line, whatever names from a file it repeats.
int report(const std::string& what, ExitCode code) {
  std::fprintf(stderr, "fluidrun: %s\n", ir::one_line(what).c_str());
  return code;
}

/// The flags of the chosen subcommand, for near misses.
std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
  }
  if (!flags.empty()) return flags;
  for (const CLI::App* command : app.get_subcommands(nullptr)) flags.push_back(command->get_name());
  return flags;
}

/// Options of a file that stand in no section are the chosen subcommand's.
class OptionFile : public CLI::ConfigTOML {
 public:
  explicit OptionFile(const CLI::App& app) : app_(app) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(input);
    for (const CLI::App* command : app_.get_subcommands()) {
      for (CLI::ConfigItem& item : items) {
        const bool known = command->get_option_no_throw("--" + item.name) != nullptr;
        if (known && item.parents.empty()) item.parents = {command->get_name()};
      }
    }
    return items;
  }

 private:
  const CLI::App& app_;
};

int parse_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining(true);
  if (!rest.empty()) {
    what = "'" + rest.front() + "' is not expected" + did_you_mean(rest.front(), flags_of(app));
  }
  constexpr std::string_view kUnknown = "INI was not able to parse ";  // CLI11 means any file
  if (what.starts_with(kUnknown)) {
    const std::string name = what.substr(kUnknown.size());
    const std::string flag = "--" + name.substr(name.rfind('.') + 1);
    what = "--config: " + name + " is not expected" + did_you_mean(flag, flags_of(app));
  }
  const auto chosen = app.get_subcommands();
  const std::string help = chosen.empty() ? "" : " " + chosen.front()->get_name();
  what = what.substr(0, what.find('\n')) + "; see fluidrun" + help + " --help";
  return report(what, kUserMistake);
}

/// A standard stream that the process was started without becomes one that takes nothing: the next
/// file that is opened would get its descriptor, and what is printed.
void occupy_standard_streams() {
  for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = dup(fd)) {
    if (fd <= STDERR_FILENO) continue;
    close(fd);
    return;
  }
}

int report_unprinted(int error) {
  return report(std::string("cannot write to the standard output: ") + std::strerror(error),
                kUserMistake);
}

/// Text that stderr did not take is lost; the exit code and stdout say so.
int report_unsaid(int code) {
  if (std::ferror(stderr) == 0) return code;
  std::puts("fluidrun: cannot write to the standard error");
  std::fflush(stdout);
  return code == kGood ? int{kUserMistake} : code;
}

int main_of(int argc, char** argv) {
  ObjectCache::set_error_listener([](const std::string& what) { print_to(stderr, "{}\n", what); });
  CLI::App app("Compiles neural-network programs and runs them.", "fluidrun");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 good; 1 the user's mistake, or a file that cannot be written; 2 a bug of\n"
      "Fluid; 3 a device that failed, or no memory or thread to be had; 128 + N after signal N:\n"
      "130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.");
  app.set_version_flag("--version", "fluidrun " FLUID_VERSION);
  app.set_config("--config", "",
                 "options from a TOML file: batch = 100; below [train], only train's");
  app.config_formatter(std::make_shared<OptionFile>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  // CLI11 would split what looks like a list in another program's command line.
  char** const end = argv + argc;
  char** mark = std::find(argv, end, std::string_view("--"));
  if (std::find(argv, mark, std::string_view("launch")) == mark) mark = end;
  Action action;
  add_launch(app, action, {std::min(mark + 1, end), end});
  for (const auto add : {add_train, add_eval, add_predict, add_run, add_show, add_summary, add_opt,
                         add_plan, add_bench, add_devices, add_verify}) {
    add(app, action);
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->fallthrough();
    command->footer(command->get_footer() + "\n\n" + app.get_footer());
  }
  try {
    app.parse(static_cast<int>(mark - argv), argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app.exit(help_or_version, text, std::cerr);
    fmt::print("{}", text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return parse_error(app, error);
  }
  return action();
}

/// Ends the program at once: an exception would leave locks of LLVM taken, on which other threads
/// wait. Takes no memory.
[[noreturn]] void out_of_memory() {
  constexpr std::string_view kText = "fluidrun: the system gives no more memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kDeviceRefused);
}

int exit_code_of(int argc, char** argv) {
  try {
    const int code = main_of(argc, argv);
    const int error = output_error();
    return error == 0 ? code : report_unprinted(error);
  } catch (const UserError& e) {
    return report(e.what(), kUserMistake);
  } catch (const DeviceError& e) {
    return report(e.what(), kDeviceRefused);
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::system_error& e) {  // of fmt::print; errno is that of a later call
    if (std::ferror(stdout) != 0) return report_unprinted(e.code().value());
    return report(std::string("internal error: ") + e.what(), kOurBug);
  } catch (const std::exception& e) {
    return report(std::string("internal error: ") + e.what(), kOurBug);
  }
}

}  // namespace
}  // namespace fluid

int main(int argc, char** argv) {
  using namespace fluid;
  if (argc > 0 && argv[0] == std::string_view(kChildName)) return become_program(argv);
  occupy_standard_streams();
  if (will_train(argv)) Signals::block();
  std::set_new_handler(out_of_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the user's limit is then an error of its writer
  return report_unsaid(exit_code_of(argc, argv));
}
