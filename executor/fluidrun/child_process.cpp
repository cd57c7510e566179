#include "executor/fluidrun/child_process.h"

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

#include "executor/fluidrun/print_to.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"

namespace fluid {

namespace {

sigset_t queued() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&signals, number);
  struct sigaction hang_up = {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);  // ignored under nohup
  return signals;
}

}  // namespace

SignalQueue::SignalQueue() {
  const sigset_t signals = queued();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  check(fd_ >= 0, "signals can be read");
}

SignalQueue::~SignalQueue() {
  const sigset_t signals = queued();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  close(fd_);
}

std::optional<int> SignalQueue::take() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr int kNotStarted = 126;  // as shells say it

[[noreturn]] void refused(const CommandLine& command, int error) {
  throw DeviceError("cannot start " + command.path + ": " + std::strerror(error));
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
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

/// The child's group, signals and standard streams.
class Setting {
 public:
  Setting(int out, int err) {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t all;
    sigfillset(&all);
    const sigset_t held = Signals::blocked();  // until become_program() knows whether it will train
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &held);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  }
  ~Setting() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Setting(const Setting&) = delete;

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

}  // namespace

ChildProcess start_child(const CommandLine& command) {
  Pipe out, err;
  if (out.read < 0 || err.read < 0) refused(command, errno);
  std::vector<std::string> arguments = {kChildName, std::to_string(getpid()), command.path};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  const Setting setting(out.write, err.write);
  ChildProcess child;
  const int error =
      posix_spawn(&child.id, kSelf, &setting.actions, &setting.attributes,
                  pointers_to(arguments).data(), pointers_to(command.environment).data());
  if (error != 0) refused(command, error);
  child.out = std::exchange(out.read, -1);
  child.err = std::exchange(err.read, -1);
  return child;
}

bool will_train(char** argv) {
  constexpr std::string_view kName = "fluidrun";
  if (argv[0] == nullptr || argv[1] == nullptr || argv[1] != std::string_view("train"))
    return false;
  return std::string_view(argv[0]).ends_with(kName);
}

int become_program(char** argv) {
  const std::string parent = argv[1] == nullptr ? "" : argv[1];
  if (parent.empty() || argv[2] == nullptr) return kNotStarted;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != parent) return kNotStarted;  // the parent ended before prctl()
  if (!will_train(argv + 3)) Signals::unblock();
  execv(argv[2], argv + 3);
  print_to(stderr, "fluidrun: cannot start {}: {}\n", argv[2], std::strerror(errno));
  return kNotStarted;
}

}  // namespace fluid
