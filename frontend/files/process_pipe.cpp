#include "frontend/files/process_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kGraceMilliseconds = 1000;  ///< delay between SIGTERM and SIGKILL
constexpr auto kPollInterval = std::chrono::milliseconds(2);
/// The shell reads a line from this descriptor before it starts the command.
constexpr int kStartSignalFd = 3;

/// Waits for a line from kStartSignalFd, then runs the command $1. If the parent process exits
/// before it writes the line, the command does not run.
constexpr const char* kCommandScript = R"(read -r go <&3 && exec 3<&- && exec /bin/sh -c "$1")";

/// Reads the ID of a process group from stdin, and kills the group when stdin reaches end of file.
constexpr const char* kWatcherScript =
    R"(trap '' HUP INT TERM; read -r group; read -r end; kill -s KILL -- "-$group")";

[[noreturn]] void fail_to_start(int error) {
  throw DeviceError(std::string("cannot start a command: ") + std::strerror(error));
}

/// The two ends of a pipe, closed by the destructor unless they were released.
struct PipeEnds {
  PipeEnds() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail_to_start(errno);
  }
  ~PipeEnds() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  PipeEnds(const PipeEnds&) = delete;
  int read_end() const { return ends[0]; }
  int write_end() const { return ends[1]; }
  int release(int index) { return std::exchange(ends[index], -1); }

  int ends[2] = {-1, -1};
};

/// Arguments of spawn_shell(). File descriptors `in` and `out` become stdin and stdout (-1:
/// /dev/null). File descriptor `start_signal` becomes kStartSignalFd (-1: none).
struct Shell {
  std::vector<std::string> arguments;    ///< arguments after "sh -c"
  std::vector<std::string> environment;  ///< entries NAME=value
  int in = -1, out = -1, start_signal = -1;
  bool quiet = false;  ///< whether stderr is /dev/null
};

/// Spawns /bin/sh in a process group of its own. Throws DeviceError if it cannot be started.
pid_t spawn_shell(Shell shell) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto set_stream = [&](int stream, int from, int flags) {
    if (from >= 0) {
      posix_spawn_file_actions_adddup2(&actions, from, stream);
    } else {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", flags, 0);
    }
  };
  set_stream(STDIN_FILENO, shell.in, O_RDONLY);
  set_stream(STDOUT_FILENO, shell.out, O_WRONLY);
  if (shell.quiet) set_stream(STDERR_FILENO, -1, O_WRONLY);
  if (shell.start_signal >= 0) set_stream(kStartSignalFd, shell.start_signal, 0);
  std::string sh = "sh", option = "-c";
  std::vector<char*> arguments = {sh.data(), option.data()};
  for (std::string& argument : shell.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& variable : shell.environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail_to_start(error);
  return pid;
}

/// Returns the environment of this process plus `added`. Values in `added` take precedence.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  for (char** present = environ; *present != nullptr; ++present) {
    const std::string_view variable = *present;
    const auto is_replaced = [&](const auto& entry) {
      return variable.starts_with(entry.first + "=");
    };
    if (std::ranges::none_of(added, is_replaced)) variables.emplace_back(variable);
  }
  return variables;
}

void write_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  ssize_t written = -1;
  do {
    written = write(fd, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) fail_to_start(errno);
}

/// Returns whether a process of `group` is running. Zombies do not count: their new parent, the
/// init process of the container, may reap them late. Returns true if /proc cannot be read.
bool group_runs(pid_t group) {
  if (kill(-group, 0) != 0) return false;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    std::ifstream file(entry->path() / "stat");
    std::string text;
    const bool is_process = static_cast<bool>(std::getline(file, text));
    const size_t name_end = text.rfind(')');
    if (!is_process || name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0, process_group = 0;
    fields >> state >> parent >> process_group;
    if (process_group == group && state != 'Z' && state != 'X') return true;
  }
  return static_cast<bool>(error);
}

void kill_and_reap(pid_t pid) {
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

ProcessPipe::ProcessPipe(const std::string& command, Options options)
    : command_(command), options_(std::move(options)) {
  PipeEnds output, start_signal, lifeline;
  const std::vector<std::string> environment = environment_with(options_.environment);
  watcher_ = spawn_shell({.arguments = {kWatcherScript},
                          .environment = environment,
                          .in = lifeline.read_end(),
                          .quiet = true});
  try {
    pid_ = spawn_shell({.arguments = {kCommandScript, "sh", command},
                        .environment = environment,
                        .out = output.write_end(),
                        .start_signal = start_signal.read_end()});
    write_line(lifeline.write_end(), std::to_string(pid_));
    write_line(start_signal.write_end(), "go");
  } catch (...) {
    kill_and_reap(watcher_);
    if (pid_ > 0) kill_and_reap(pid_);
    throw;
  }
  fcntl(output.read_end(), F_SETFL, O_NONBLOCK);
  fd_ = output.release(0);
  lifeline_ = lifeline.release(1);
}

ProcessPipe::~ProcessPipe() {
  terminate_group();
  kill_and_reap(watcher_);
  close(lifeline_);
}

/// Terminates all processes of the group and reaps the shell. Linux does not reuse the ID `pid_`
/// until the shell is reaped and the group is empty.
void ProcessPipe::terminate_group() {
  kill(-pid_, SIGTERM);
  close(fd_);  // after SIGTERM, so that the command dies before it can report a broken pipe
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kGraceMilliseconds);
  bool reaped = false;
  do {
    if (!reaped && wait_for_exit(0)) reaped = waitpid(pid_, nullptr, 0) == pid_;
    if (reaped && !group_runs(pid_)) return;
    std::this_thread::sleep_for(kPollInterval);
  } while (std::chrono::steady_clock::now() < end);
  kill(-pid_, SIGKILL);
  if (!reaped) kill_and_reap(pid_);
}

void ProcessPipe::fail(const std::string& why) const {
  throw UserError("command '" + command_ + "' " + why);
}

void ProcessPipe::throw_if_interrupted() const {
  pollfd interrupt = {.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0};
  if (interrupt.fd >= 0 && poll(&interrupt, 1, 0) > 0) fail("is no longer read");
}

size_t ProcessPipe::read(std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    pollfd wanted[] = {{.fd = fd_, .events = POLLIN, .revents = 0},
                       {.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0}};
    const int ready = poll(wanted, 2, options_.timeout_seconds * 1000);
    if (ready == 0) fail("wrote nothing for " + std::to_string(options_.timeout_seconds) + " s");
    throw_if_interrupted();
    const ssize_t got = ready < 0 ? -1 : ::read(fd_, to.data() + done, to.size() - done);
    if (got == 0) break;
    if (got > 0) done += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
  }
  return done;
}

bool ProcessPipe::wait_for_exit(int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!exited_) {
    siginfo_t info = {};
    exited_ = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
              info.si_pid == pid_;
    if (exited_) exit_ = {info.si_code, info.si_status};
    if (exited_ || std::chrono::steady_clock::now() >= end) break;
    throw_if_interrupted();
    std::this_thread::sleep_for(kPollInterval);
  }
  return exited_;
}

void ProcessPipe::wait() {
  if (!wait_for_exit(options_.timeout_seconds * 1000)) {
    fail("closed its output, but runs on after " + std::to_string(options_.timeout_seconds) + " s");
  }
  const std::string status = std::to_string(exit_.status);
  if (exit_.code != CLD_EXITED) fail("was ended by signal " + status);
  if (exit_.status != 0) fail("exited with code " + status);
}

}  // namespace fluid
