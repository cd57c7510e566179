#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "executor/fluidrun/child_process.h"
#include "executor/fluidrun/rank_output.h"

namespace fluid {

struct RankOptions {
  int64_t rank = 0;
  CommandLine command;
  std::string log;  ///< see RankOutput
  std::string heading;
  bool on_terminal = false;
};

/// The last lines that a rank printed, for ranks whose output does not go to the terminal.
struct LastLines {
  int64_t rank = 0;
  std::string log, text;
};

/// A rank that was killed or exited with an error.
struct RankFailure {
  int64_t rank = 0;
  bool killed = false;
  int number = 0;                     ///< the signal that killed it, or its exit code
  std::vector<LastLines> last_lines;  ///< of this rank, and of ranks that know the cause

  int exit_code() const { return killed ? 128 + number : number; }
  std::string text() const;  ///< "rank 2 was killed by signal 9 (Killed)"
};

/// The ranks of a node: when one fails, the others are stopped.
class Ranks {
 public:
  /// Starts all ranks. Throws DeviceError when the system fails.
  explicit Ranks(const std::vector<RankOptions>& options);
  /// Kills the running ranks.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  /// Waits until all ranks have exited and their output is copied; returns the first that failed.
  /// Forwards the first stop signal to all ranks and lets them finish; once a rank has failed, the
  /// others get a few seconds. The second signal kills them. Prints events to stderr.
  std::optional<RankFailure> run(SignalQueue& signals);
  bool received_stop_signal() const { return stop_signal_ != 0; }
  /// The exit code where no rank failed: 0, or 128 + the signal that stopped the ranks.
  int exit_code() const { return stopped_on_request_ ? 128 + stop_signal_ : 0; }
  /// The error of a failed write of rank 0's output to the terminal; "" without one.
  std::string output_failure() const;

 private:
  Ranks() = default;

  struct Rank {
    explicit Rank(const RankOptions& options)
        : number(options.rank),
          on_terminal(options.on_terminal),
          output(options.log, options.heading, options.on_terminal) {}
    int64_t number;
    bool on_terminal;
    pid_t id = -1;         ///< -1: exited
    bool gave_up = false;  ///< exited because a peer died or its GPU failed
    RankOutput output;
  };

  bool over() const;
  void wait(const SignalQueue& signals) const;
  void take(int signal);
  /// Reaps the ranks that have exited.
  void collect();
  bool stopped_on_request(const siginfo_t& ending) const;
  bool may_learn_cause(const siginfo_t& how) const;
  void fail();
  std::vector<LastLines> last_lines() const;
  void signal_all(int number);

  std::list<Rank> ranks_;
  int stop_signal_ = 0;              ///< the first stop signal; 0: none
  bool stopped_on_request_ = false;  ///< a rank exited with 128 + stop_signal_
  std::optional<RankFailure> failure_;
  const Rank* failed_ = nullptr;  ///< the failed rank: the first, or the cause
  siginfo_t how_ = {};            ///< how failed_ ended
  std::optional<std::chrono::steady_clock::time_point> verdict_;  ///< until then a cause may appear
  const Rank* witness_ = nullptr;  ///< the first rank that missed its peer
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace fluid
