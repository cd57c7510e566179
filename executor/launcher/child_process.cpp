#include "executor/launcher/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "executor/launcher/print_to.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"

namespace fluid {

namespace {

sigset_t queued_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&signals, number);
  struct sigaction sighup_action = {};
  sigaction(SIGHUP, nullptr, &sighup_action);
  if (sighup_action.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);  // nohup ignores SIGHUP
  return signals;
}

}  // namespace

SignalQueue::SignalQueue() {
  const sigset_t signals = queued_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  check(fd_ >= 0, "signals can be read");
}

SignalQueue::~SignalQueue() {
  const sigset_t signals = queued_signals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  close(fd_);
}

std::optional<int> SignalQueue::pop() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

namespace {

constexpr const char* kSelfPath = "/proc/self/exe";
constexpr int kCannotExecute = 126;  // exit code of a shell for a command that cannot be executed

[[noreturn]] void throw_start_error(const CommandLine& command, int error) {
  throw DeviceError("cannot start " + command.path + ": " + std::strerror(error));
}

std::vector<char*> null_terminated(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    read = ends[0];
    write = ends[1];
    fcntl(read, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  Pipe(const Pipe&) = delete;
};

/// Arguments of posix_spawn(): the child's process group, signal mask and standard streams.
class SpawnArguments {
 public:
  SpawnArguments(int out, int err) {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t all;
    sigfillset(&all);
    // The child starts with the handled signals blocked. exec_program() unblocks these signals,
    // unless the program is `fluidrun train`.
    const sigset_t blocked = SignalHandlers::handled_signals();
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  }
  ~SpawnArguments() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnArguments(const SpawnArguments&) = delete;

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

}  // namespace

ChildProcess start_child(const CommandLine& command) {
  Pipe out, err;
  if (out.read < 0 || err.read < 0) throw_start_error(command, errno);
  std::vector<std::string> arguments = {kChildName, std::to_string(getpid()), command.path};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  const SpawnArguments spawn(out.write, err.write);
  ChildProcess child;
  const int error =
      posix_spawn(&child.pid, kSelfPath, &spawn.actions, &spawn.attributes,
                  null_terminated(arguments).data(), null_terminated(command.environment).data());
  if (error != 0) throw_start_error(command, error);
  child.out = std::exchange(out.read, -1);
  child.err = std::exchange(err.read, -1);
  return child;
}

bool is_train_command(char** argv) {
  constexpr std::string_view kName = "fluidrun";
  if (argv[0] == nullptr || argv[1] == nullptr || argv[1] != std::string_view("train"))
    return false;
  return std::string_view(argv[0]).ends_with(kName);
}

int exec_program(char** argv) {
  const std::string parent = argv[1] == nullptr ? "" : argv[1];
  if (parent.empty() || argv[2] == nullptr) return kCannotExecute;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // whether the parent exited before the prctl() call
  const bool is_orphan = std::to_string(getppid()) != parent;
  if (is_orphan) return kCannotExecute;
  if (!is_train_command(argv + 3)) SignalHandlers::unblock();
  execv(argv[2], argv + 3);
  print_to(stderr, "fluidrun: cannot start {}: {}\n", argv[2], std::strerror(errno));
  return kCannotExecute;
}

}  // namespace fluid
