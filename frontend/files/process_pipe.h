#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fluid {

/// Runs a shell command and reads its output. The command runs in a process group of its own, with
/// /dev/null as stdin and this process's stderr. The destructor sends SIGTERM to the group,
/// and SIGKILL if a process of the group still runs a second later. If this process dies before the
/// destructor runs, for example by SIGKILL, a watcher shell kills the group.
class ProcessPipe {
 public:
  struct Options {
    /// Timeout of wait(). Also limits how long read() waits for more output.
    int timeout_seconds = 60;
    /// Variables to add to this process's environment.
    std::vector<std::pair<std::string, std::string>> environment = {};
    /// File descriptor for cancellation: once it is readable, read() and wait() throw UserError. It
    /// must stay open during the lifetime of this object. -1: none.
    int interrupt_fd = -1;
  };

  /// Starts `command` with /bin/sh. Throws DeviceError if a system call fails.
  ProcessPipe(const std::string& command, Options options);
  ~ProcessPipe();
  ProcessPipe(const ProcessPipe&) = delete;

  /// Reads to.size() bytes, or fewer at the end of the output. Returns the number of bytes read.
  /// Throws UserError if the command writes nothing within the timeout.
  size_t read(std::span<std::byte> to);
  /// Waits for the command to exit. To be called after read() has reached the end of the output.
  /// Throws UserError if the command fails or does not exit within the timeout.
  void wait();

 private:
  /// The shell's si_code and si_status from waitid().
  struct Exit {
    int code = 0, status = 0;
  };

  void terminate_group();
  [[noreturn]] void fail(const std::string& why) const;
  /// Waits up to `timeout_ms` ms for the shell to exit. Returns whether it has exited.
  bool wait_for_exit(int timeout_ms);
  void throw_if_interrupted() const;

  std::string command_;
  Options options_;
  pid_t pid_ = -1;      ///< the shell, whose process group has the same ID
  pid_t watcher_ = -1;  ///< a shell that kills the group when `lifeline_` is closed
  int fd_ = -1, lifeline_ = -1;
  bool exited_ = false;
  Exit exit_;
};

}  // namespace fluid
