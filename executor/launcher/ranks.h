#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "executor/launcher/child_process.h"
#include "executor/launcher/rank_output.h"

namespace fluid {

/// The command line and the output settings of a rank. `log`, `heading` and `on_terminal`: see
/// RankOutput.
struct RankOptions {
  int64_t rank = 0;
  CommandLine command;
  std::string log;
  std::string heading;
  bool on_terminal = false;
};

/// The last lines of output of a rank that does not print to the terminal.
struct LastLines {
  int64_t rank = 0;
  std::string log;   ///< path of the log file; empty: no log
  std::string text;  ///< the lines, each ending with a line feed
};

/// A rank that was killed or exited with an error.
struct RankFailure {
  int64_t rank = 0;
  bool killed = false;
  int status = 0;  ///< the signal that killed the rank, or the exit code of the rank
  std::vector<LastLines> last_lines;  ///< of this rank and of ranks that lost a peer

  int exit_code() const { return killed ? 128 + status : status; }
  std::string message() const;  ///< such as "rank 2 was killed by signal 9 (Killed)"
};

/// The processes of the ranks on a node. If a rank fails, stops the other ranks.
class Ranks {
 public:
  /// Starts a process for each element of `options`. Throws DeviceError if a system call fails.
  explicit Ranks(const std::vector<RankOptions>& options);
  /// Kills the ranks that are still running.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  /// Waits until all ranks have exited and their output is copied. Returns the first failure, if
  /// any. Forwards the first stop signal to all ranks and lets them finish; kills the ranks at the
  /// second stop signal. After a failure, stops the other ranks, and kills ranks that are still
  /// running a few seconds later. Prints signals and failures to stderr.
  std::optional<RankFailure> run(SignalQueue& signals);
  bool received_stop_signal() const { return stop_signal_ != 0; }
  /// Exit code of the launch if no rank failed: 0, or 128 + the signal that stopped the ranks.
  int exit_code() const { return stopped_on_request_ ? 128 + stop_signal_ : 0; }
  /// The error message of a failed write to the terminal; "" if no write failed.
  std::string terminal_error() const;

 private:
  Ranks() = default;

  struct Rank {
    explicit Rank(const RankOptions& options)
        : rank(options.rank),
          on_terminal(options.on_terminal),
          output(options.log, options.heading, options.on_terminal) {}
    int64_t rank;
    bool on_terminal;
    pid_t pid = -1;          ///< process id; -1 after the exit
    bool lost_peer = false;  ///< whether the rank exited because a peer died or a device failed
    RankOutput output;
  };

  /// Whether all ranks have exited and their output is copied.
  bool all_finished() const;
  void wait_for_events(const SignalQueue& signals) const;
  void handle_signal(int signal);
  void reap_exited_ranks();
  bool stopped_on_request(const siginfo_t& exit_info) const;
  bool root_cause_may_be_running(const siginfo_t& exit_info) const;
  /// Records the failure in `failure_`, prints it, and stops the other ranks.
  void report_failure_and_stop_ranks();
  std::vector<LastLines> last_lines() const;
  void signal_all(int signal);

  std::list<Rank> ranks_;
  int stop_signal_ = 0;              ///< the first stop signal that was received; 0: none
  bool stopped_on_request_ = false;  ///< whether a rank exited with 128 + stop_signal_
  std::optional<RankFailure> failure_;
  /// The first failed rank, or a later failed rank that is the likelier root cause.
  const Rank* failed_ = nullptr;
  siginfo_t failed_exit_ = {};             ///< exit information of failed_
  const Rank* first_lost_peer_ = nullptr;  ///< the first rank that exited because it lost its peer
  /// Time at which run() stops waiting for the rank at fault to exit, if the failed rank lost its
  /// peer.
  std::optional<std::chrono::steady_clock::time_point> root_cause_deadline_;
  /// Time at which run() kills the ranks that are still running.
  std::optional<std::chrono::steady_clock::time_point> kill_deadline_;
};

}  // namespace fluid
