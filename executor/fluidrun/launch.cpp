#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <thread>

#include "executor/comm/wire.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/launcher/child_process.h"
#include "executor/launcher/print_to.h"
#include "executor/launcher/ranks.h"
#include "executor/options/place.h"
#include "executor/options/world.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

struct LaunchFlags {
  std::string nproc = "1";  ///< --nproc: number of ranks on this node, or "auto"
  int64_t nnodes = 1, node_rank = 0, max_restarts = 0;
  std::string master, log_dir;
};

constexpr int64_t kMaxRanks = 10'000;  ///< maximum number of ranks per node

std::string must_be_ranks(const std::string& text) {
  if (text == "auto" || parse_number<int64_t>(text).value_or(0) > kMaxRanks) {
    return text == "auto" ? "" : fmt::format("must be {} at most, not {}", kMaxRanks, text);
  }
  return validate_positive_integer(text).empty() ? ""
                                                 : validate_positive_integer(text) + ", or auto";
}

int64_t core_count() { return std::max(1U, std::thread::hardware_concurrency()); }

/// The number of ranks on this node. --nproc auto selects the number of usable GPUs, or the number
/// of cores if there is no GPU, as in torchrun.
int64_t rank_count(const LaunchFlags& flags) {
  if (flags.nproc != "auto") return std::stoll(flags.nproc);
  const auto gpus = static_cast<int64_t>(list_usable_gpus().size());
  const int64_t ranks = gpus > 0 ? gpus : core_count();
  const std::string why = gpus > 0 ? "" : explain_missing_gpu();
  print_to(stderr, "fluidrun: --nproc auto: {} rank{}, {}{}\n", ranks, ranks == 1 ? "" : "s",
           gpus > 0 ? "one per GPU" : "one per core, as there is no usable GPU",
           why.empty() ? "" : ": " + why);
  return ranks;
}

/// The address at which rank 0 serves the rendezvous store.
struct Master {
  std::string host, port;
};

Master parse_master(const std::string& text) {
  constexpr int64_t kMaxPort = 65535;
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || !validate_positive_integer(port).empty() || port.size() > 5 ||
      std::stoll(port) > kMaxPort) {
    throw UserError("--master is '" + text + "', but must be HOST:PORT, the address of rank 0");
  }
  return {text.substr(0, colon), port};
}

void check_flags(const LaunchFlags& flags) {
  if (flags.node_rank >= flags.nnodes) {
    throw UserError(fmt::format("--node-rank is {}, but must be less than --nnodes, which is {}",
                                flags.node_rank, flags.nnodes));
  }
  if (!flags.master.empty()) parse_master(flags.master);
  if (flags.nnodes == 1) return;
  if (flags.master.empty()) {
    throw UserError(
        "several nodes need --master HOST:PORT, the address of rank 0, the same on every node");
  }
  if (flags.max_restarts > 0) {
    throw UserError("--max-restarts needs --nnodes 1: nodes cannot restart together");
  }
}

/// The command line of a rank. `words`: a program and its arguments. If the first word is a
/// subcommand of fluidrun, the program is fluidrun itself.
CommandLine command_of(const std::vector<std::string>& words,
                       const std::vector<std::string>& subcommands) {
  if (words.empty()) {
    throw UserError("launch needs a program after --: fluidrun launch --nproc 2 -- train ...");
  }
  const std::string& name = words.front();
  if (std::ranges::find(subcommands, name) != subcommands.end()) {
    CommandLine self{.path = fs::read_symlink("/proc/self/exe").string(), .arguments = words};
    self.arguments.insert(self.arguments.begin(), "fluidrun");
    return self;
  }
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0 && !fs::is_directory(name)) return {name, words};
    const int error = fs::is_directory(name) ? EISDIR : errno;
    throw UserError("cannot start '" + name + "': " + std::strerror(error));
  }
  const char* path = std::getenv("PATH");
  for (const std::string& folder : CLI::detail::split(path == nullptr ? "" : path, ':')) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (access(file.c_str(), X_OK) == 0 && !fs::is_directory(file)) return {file, words};
  }
  throw UserError("cannot start '" + name + "': PATH has no such program" +
                  did_you_mean(name, subcommands));
}

/// The environment variables that are the same for all ranks of this node.
World::EnvironmentVariables shared_variables(const LaunchFlags& flags, int64_t nproc) {
  World::EnvironmentVariables variables = World::environment();
  variables.erase("TORCHELASTIC_USE_AGENT_STORE");
  if (!flags.master.empty()) variables.erase("FLUID_PORT");
  variables["WORLD_SIZE"] = std::to_string(flags.nnodes * nproc);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(nproc);
  // The run id distinguishes the ranks of two launches that use the same port. With several nodes,
  // the run id is not set, because each node would generate a different id.
  if (flags.nnodes == 1) {
    variables.emplace("TORCHELASTIC_RUN_ID", fmt::format("{}.{}", getpid(), std::time(nullptr)));
  }
  variables.emplace("OMP_NUM_THREADS", std::to_string(std::max<int64_t>(core_count() / nproc, 1)));
  variables.emplace("OMP_DYNAMIC", "false");
  variables.emplace("OMP_WAIT_POLICY", "passive");
  return variables;
}

class Launch {
 public:
  Launch(const LaunchFlags& flags, CommandLine command)
      : flags_(flags),
        nproc_(rank_count(flags)),
        command_(std::move(command)),
        variables_(shared_variables(flags, nproc_)) {
    if (flags.log_dir.empty()) return;
    std::error_code error;
    fs::create_directories(flags.log_dir, error);
    if (error) {
      throw UserError("cannot make --log-dir '" + flags.log_dir + "': " + error.message());
    }
  }

  int run() {
    SignalQueue signals;
    for (int64_t restart = 0;; ++restart) {
      Ranks ranks(rank_options(restart));
      const std::optional<RankFailure> failure = ranks.run(signals);
      if (!failure) return exit_code_of(ranks);
      if (!ranks.received_stop_signal()) print_last_lines(*failure);
      if (ranks.received_stop_signal() || restart == flags_.max_restarts)
        return failure->exit_code();
      print_to(stderr, "fluidrun: starting all ranks again: restart {} of {}\n", restart + 1,
               flags_.max_restarts);
    }
  }

 private:
  std::vector<RankOptions> rank_options(int64_t restart) {
    const Master master =
        flags_.master.empty() ? master_at_free_port() : parse_master(flags_.master);
    variables_["MASTER_ADDR"] = master.host;
    variables_["MASTER_PORT"] = master.port;
    variables_["TORCHELASTIC_RESTART_COUNT"] = std::to_string(restart);
    std::vector<RankOptions> all;
    for (int64_t local = 0; local < nproc_; ++local) {
      RankOptions options{.rank = flags_.node_rank * nproc_ + local,
                          .command = command_,
                          .on_terminal = local == 0};
      variables_["RANK"] = std::to_string(options.rank);
      variables_["LOCAL_RANK"] = std::to_string(local);
      for (const auto& [name, value] : variables_) {
        options.command.environment.push_back(name + "=" + value);
      }
      if (!flags_.log_dir.empty()) {
        options.log = fs::path(flags_.log_dir) / fmt::format("workerlog.{}", options.rank);
      }
      if (restart > 0) options.heading = fmt::format("fluidrun: restart {}\n", restart);
      all.push_back(std::move(options));
    }
    return all;
  }

  /// Exit code of a launch in which no rank failed. Throws UserError if the output of rank 0 could
  /// not be written.
  static int exit_code_of(const Ranks& ranks) {
    if (const std::string why = ranks.terminal_error(); !why.empty()) {
      throw UserError("cannot write the output of rank 0: " + why);
    }
    return ranks.exit_code();
  }

  /// Reserves a free port until the next start, so that no other process takes it before rank 0
  /// listens.
  Master master_at_free_port() {
    reserved_port_ = comm::bind_at("127.0.0.1", 0);
    return {"127.0.0.1", std::to_string(comm::port_of(reserved_port_))};
  }

  static void print_last_lines(const RankFailure& failure) {
    for (const LastLines& lines : failure.last_lines) {
      const std::string where = lines.log.empty() ? "" : ", " + lines.log;
      print_to(stderr, "the last lines of rank {}{}:\n{}", lines.rank, where, lines.text);
    }
  }

  const LaunchFlags& flags_;
  int64_t nproc_;
  CommandLine command_;
  World::EnvironmentVariables variables_;
  comm::Socket reserved_port_;
};

}  // namespace

void add_launch(CLI::App& app, Action& action, std::vector<std::string> program) {
  CLI::App* command = app.add_subcommand("launch", "Start the ranks of a program on this node");
  const auto flags = std::make_shared<LaunchFlags>();
  const CLI::Range node_range(1, 10'000);
  begin_group(*command, kDistributedGroup);
  command
      ->add_option("--nproc", flags->nproc,
                   "ranks on this node; auto: one per usable GPU, or one per core if there is none")
      ->check(must_be_ranks)
      ->type_name("auto|N")
      ->capture_default_str();
  command->add_option("--nnodes", flags->nnodes, "number of nodes; run launch on each")
      ->check(validate_positive_integer)
      ->check(CLI::Range(node_range).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--node-rank", flags->node_rank, "index of this node, from 0")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--master", flags->master,
                   "rendezvous address at which rank 0 listens (default: a free port of this node)")
      ->type_name("HOST:PORT");
  command
      ->add_option("--max-restarts", flags->max_restarts,
                   "maximum number of restarts of all ranks after a rank fails")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  begin_group(*command, kFilesGroup);
  command
      ->add_option("--log-dir", flags->log_dir,
                   "write the output of rank N to workerlog.N in this directory; the first rank "
                   "also writes to the terminal")
      ->type_name("DIR");
  command->footer(
      "Examples:\n"
      "  fluidrun launch --nproc 2 --log-dir logs -- train mnist_fluid --data digits\n\n"
      "Notes:\n"
      "  A subcommand of fluidrun, or any program with its arguments, follows --.\n"
      "  Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as with "
      "torchrun. Unless OMP_NUM_THREADS is set, it is the number of cores divided by the ranks of "
      "this node.\n"
      "  Without --master, launch reserves the port with a bound socket: a program that listens at "
      "MASTER_PORT must set SO_REUSEADDR.");
  command->callback([&app, &action, flags, program = std::move(program)] {
    action = [&app, flags, program] {
      check_flags(*flags);
      std::vector<std::string> subcommands;
      for (const CLI::App* each : app.get_subcommands(nullptr)) {
        if (each->get_name() != "launch") subcommands.push_back(each->get_name());
      }
      std::signal(SIGPIPE, SIG_IGN);  // ignored, so that a write to a closed pipe fails with EPIPE
      return Launch(*flags, command_of(program, subcommands)).run();
    };
  });
}

}  // namespace fluid
