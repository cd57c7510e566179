#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace fluid {

/// What a rank writes, on its way to its log and the terminal. A terminal that takes nothing, as
/// after Ctrl-S, holds up its rank but not this process.
class RankOutput {
 public:
  /// Writes to the file `log`, unless that is empty: over what is in it, or below after `heading`;
  /// and to this process's own streams if `on_terminal`. Throws UserError when the log cannot be
  /// written.
  RankOutput(std::string log, const std::string& heading, bool on_terminal);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;

  /// From now on the rank writes to these pipes, which are closed at the end.
  void read_from(int out, int err);
  bool open() const { return streams_[0].fd >= 0 || streams_[1].fd >= 0; }
  /// Appends what to wait for until pass_on() has something to do.
  void wait_for(std::vector<pollfd>& events) const;
  /// Passes on a piece of what has come, if any. Of a rank that has `ended` nothing is expected
  /// but what is there. Throws UserError when the log cannot be written. A terminal that cannot be
  /// written gets no more; where there is no log either, the rank's stream is closed.
  void pass_on(bool ended);
  /// The last lines, each ended by a line feed.
  std::string last_lines() const;
  const std::string& log() const { return log_; }
  /// Why the terminal has not got all that the rank wrote; "" when it has.
  const std::string& failure() const { return failure_; }
  /// From now on a failed write to the terminal is no failure: the terminal may be gone.
  void forgive_terminal() { forgiving_ = true; }
  /// Nothing more is written to the terminal, which may take no more.
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
