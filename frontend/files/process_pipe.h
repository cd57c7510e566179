#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

namespace fluid {

/// A shell command whose output is read. The command runs in a process group of its own, with
/// /dev/null as its input and this process's stderr. The destructor ends the group: by SIGTERM, and
/// by SIGKILL if it still runs after a second.
class ProcessPipe {
 public:
  /// Starts `command` with /bin/sh. Each wait for the command takes at most `timeout_seconds`.
  /// Throws DeviceError if a system call fails.
  ProcessPipe(const std::string& command, int timeout_seconds);
  ~ProcessPipe();
  ProcessPipe(const ProcessPipe&) = delete;

  /// Reads to.size() bytes, or fewer at the end of the output. Returns their number. Throws
  /// UserError if the command writes nothing for the timeout.
  size_t read(std::span<std::byte> to);
  /// Waits for the command to exit, after the end of its output. Throws UserError if it fails.
  void wait();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  /// Waits up to `milliseconds` for the shell to exit. Returns whether it did.
  bool has_exited(int milliseconds);

  std::string command_;
  int timeout_seconds_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool exited_ = false;
  int fd_ = -1;
};

}  // namespace fluid
