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

/// What a rank wrote last, which was not on the terminal.
struct LastLines {
  int64_t rank = 0;
  std::string log, text;
};

/// A rank that has ended badly.
struct RankFailure {
  int64_t rank = 0;
  bool killed = false;
  int number = 0;                     ///< the signal that killed it, or its exit code
  std::vector<LastLines> last_lines;  ///< its own, and of others that tell more of the cause

  int exit_code() const { return killed ? 128 + number : number; }
  std::string text() const;  ///< "rank 2 was killed by signal 9 (Killed)"
};

/// Processes that run together: when one fails, the others are stopped.
class Ranks {
 public:
  /// Starts them all. Throws DeviceError when the system refuses.
  explicit Ranks(const std::vector<RankOptions>& options);
  /// Kills those that still run.
  ~Ranks();
  Ranks(const Ranks&) = delete;

  /// Waits until all have ended and what they wrote is passed on; returns the first that failed.
  /// The first signal to stop is handed to all, which then take the time they need, or, when one of
  /// them fails, some seconds more; the next signal kills them. Says on stderr what happens.
  std::optional<RankFailure> run(SignalQueue& signals);
  bool stop_asked() const { return stop_signal_ != 0; }
  /// The exit code where no rank failed: 0, or 128 + the signal that stopped the ranks.
  int exit_code() const { return ended_as_asked_ ? 128 + stop_signal_ : 0; }
  /// Why the terminal has not got all that rank 0 wrote; "" when it has.
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
    pid_t id = -1;         ///< -1: it has ended
    bool gave_up = false;  ///< by itself, as another was gone or its GPU failed
    RankOutput output;
  };

  bool over() const;
  void wait(const SignalQueue& signals) const;
  void take(int signal);
  /// Notes which ranks have ended.
  void collect();
  bool ended_as_asked(const siginfo_t& ending) const;
  bool may_be_told_why(const siginfo_t& how) const;
  void fail();
  std::vector<LastLines> last_lines() const;
  void signal_all(int number);

  std::list<Rank> ranks_;
  int stop_signal_ = 0;          ///< the first signal to stop; 0: none came
  bool ended_as_asked_ = false;  ///< a rank, with an exit code that says so
  std::optional<RankFailure> failure_;
  const Rank* failed_ = nullptr;  ///< that ended badly, first or as the cause of it
  siginfo_t how_ = {};            ///< how it ended
  std::optional<std::chrono::steady_clock::time_point> verdict_;  ///< until when a cause may come
  const Rank* witness_ = nullptr;  ///< the first that could not go on without the one that failed
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace fluid
