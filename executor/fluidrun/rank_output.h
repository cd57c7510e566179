#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace fluid {

/// Copies a rank's output to its log and the terminal. A blocked terminal, as after Ctrl-S, blocks
/// its rank but not this process.
class RankOutput {
 public:
  /// Writes to the file `log`, unless it is empty, and to this process's streams if `on_terminal`.
  /// Truncates the log, or with a `heading` appends it and what follows. Throws UserError when the
  /// log is not writable.
  RankOutput(std::string log, const std::string& heading, bool on_terminal);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;

  /// Takes over the read ends of the rank's pipes.
  void read_from(int out, int err);
  bool open() const { return streams_[0].fd >= 0 || streams_[1].fd >= 0; }
  /// Appends the poll events that pass_on() waits for.
  void wait_for(std::vector<pollfd>& events) const;
  /// Copies one piece of pending output. `ended`: the rank has exited, so its pipes are drained.
  /// Throws UserError when a write to the log fails. After a failed write the terminal gets no
  /// more; without a log the rank's stream is closed.
  void pass_on(bool ended);
  /// The last lines, each ended by a line feed.
  std::string last_lines() const;
  const std::string& log() const { return log_; }
  /// The error of a failed write to the terminal; "" without one.
  const std::string& failure() const { return failure_; }
  /// Ignores failed writes to the terminal from now on: the terminal may be gone.
  void forgive_terminal() { forgiving_ = true; }
  /// Stops writing to the terminal, which may be blocked.
  void leave_terminal() { streams_[0].terminal = streams_[1].terminal = -1; }

 private:
  struct Stream {
    int fd = -1;
    int terminal = -1;
    bool blocked = false;
  };
  void pass_on(Stream& stream, bool ended);
  void write_terminal(Stream& stream, const char* bytes, size_t size);
  void write_log(const char* bytes, size_t size);

  std::string log_;
  int log_fd_ = -1;
  Stream streams_[2];
  std::string tail_;
  std::string failure_;
  bool forgiving_ = false;
};

}  // namespace fluid
