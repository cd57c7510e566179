#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace fluid {

/// Copies the output of a rank to a log file and to the terminal. If the terminal is blocked, for
/// example after Ctrl-S, the rank waits but this process does not.
class RankOutput {
 public:
  /// Copies the output to the file `log`, unless the path is empty. With `on_terminal`, also copies
  /// the output to the stdout and stderr of this process. Truncates the log if `heading` is empty,
  /// else appends `heading` and the output to the log. Throws UserError if the log is not writable.
  RankOutput(std::string log, const std::string& heading, bool on_terminal);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;

  /// Takes ownership of `out` and `err`, the read ends of the pipes from the rank.
  void set_pipes(int out, int err);
  bool has_open_pipe() const { return streams_[0].fd >= 0 || streams_[1].fd >= 0; }
  /// Appends the file descriptors and events to pass to poll(). After one of these events,
  /// forward() can copy output.
  void append_pollfds(std::vector<pollfd>& fds) const;
  /// Copies at most one chunk of pending output from each pipe. `exited`: whether the rank has
  /// exited; if so, closes a pipe that has no pending output. Throws UserError if a write to the
  /// log fails. After a failed write to the terminal, copies to the log only. If there is no log,
  /// closes the pipe.
  void forward(bool exited);
  /// The last lines of the rank's output. Each ends with a line feed.
  std::string last_lines() const;
  const std::string& log() const { return log_; }
  /// The error message of the first failed write to the terminal; "" if no write failed.
  const std::string& terminal_error() const { return terminal_error_; }
  /// Ignores later failed writes to the terminal, because the user may have closed the terminal.
  void ignore_terminal_errors() { ignores_terminal_errors_ = true; }
  /// Stops the output to the terminal, because a blocked terminal would delay the exit.
  void detach_terminal() { streams_[0].terminal = streams_[1].terminal = -1; }

 private:
  struct Stream {
    int fd = -1;           ///< read end of the pipe from the rank; -1: closed
    int terminal = -1;     ///< stdout or stderr of this process; -1: no output to the terminal
    bool blocked = false;  ///< whether a write to the terminal would block
  };
  void forward(Stream& stream, bool exited);
  void write_terminal(Stream& stream, const char* bytes, size_t size);
  void write_log(const char* bytes, size_t size);

  std::string log_;
  int log_fd_ = -1;
  Stream streams_[2];
  std::string tail_;
  std::string terminal_error_;
  bool ignores_terminal_errors_ = false;
};

}  // namespace fluid
