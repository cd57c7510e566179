#include "frontend/files/process_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kGraceMilliseconds = 1000;  ///< between SIGTERM and SIGKILL
constexpr int kPollMilliseconds = 2;

/// Spawns `sh -c command` in a process group of its own. Returns the error number.
int spawn_shell(const std::string& command, int out, pid_t& pid) {
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
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  std::string shell = "sh", option = "-c", text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

ProcessPipe::ProcessPipe(const std::string& command, int timeout_seconds)
    : command_(command), timeout_seconds_(timeout_seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw DeviceError(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  fd_ = ends[0];
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  const int error = spawn_shell(command, ends[1], pid_);
  close(ends[1]);
  if (error == 0) return;
  close(fd_);
  throw DeviceError(std::string("cannot start /bin/sh: ") + std::strerror(error));
}

ProcessPipe::~ProcessPipe() {
  close(fd_);
  kill(-pid_, SIGTERM);
  has_exited(kGraceMilliseconds);
  kill(-pid_, SIGKILL);  // also ends what the shell started
  if (!exited_) waitpid(pid_, &status_, 0);
}

void ProcessPipe::fail(const std::string& why) const {
  throw UserError("command '" + command_ + "' " + why);
}

size_t ProcessPipe::read(std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    pollfd wanted = {.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = poll(&wanted, 1, timeout_seconds_ * 1000);
    if (ready == 0) fail("wrote nothing for " + std::to_string(timeout_seconds_) + " s");
    const ssize_t got = ready < 0 ? -1 : ::read(fd_, to.data() + done, to.size() - done);
    if (got == 0) break;
    if (got > 0) done += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
  }
  return done;
}

bool ProcessPipe::has_exited(int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!exited_) {
    exited_ = waitpid(pid_, &status_, WNOHANG) == pid_;
    if (exited_ || std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
  return exited_;
}

void ProcessPipe::wait() {
  if (!has_exited(timeout_seconds_ * 1000)) {
    fail("closed its output, but runs on after " + std::to_string(timeout_seconds_) + " s");
  }
  if (WIFSIGNALED(status_)) fail("was ended by signal " + std::to_string(WTERMSIG(status_)));
  if (WEXITSTATUS(status_) != 0) fail("exited with code " + std::to_string(WEXITSTATUS(status_)));
}

}  // namespace fluid
