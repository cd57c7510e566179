#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// Prints the progress of an epoch to stderr. If `log_every` is set, prints a line after every
/// `log_every` steps. Otherwise, draws a progress bar on a terminal, or prints a line every ten
/// seconds elsewhere. If the number of steps per epoch is unknown, prints neither a bar nor the
/// remaining time. On a narrow terminal, prints abbreviated fields without the bar. If the line is
/// still too long, omits fields in this order: memory, loss scale, learning rate, samples per
/// second.
class ProgressBar {
 public:
  struct Options {
    int64_t epochs = 1;
    std::optional<int64_t> steps_per_epoch = 1;  ///< nullopt: unknown
    int64_t log_every = 0;                       ///< number of steps between lines; 0: not set
    bool quiet = false;                          ///< whether to print nothing
  };
  explicit ProgressBar(const Options& options);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;

  void begin_epoch(int64_t epoch);  ///< `epoch`: number of the epoch, from 1
  /// Counts a finished step, and redraws the bar if enough time has passed.
  void update(const StepEvent& step) {
    ++steps_done_;
    samples_ += step.samples;
    if (redraw_due(step.step)) draw(step);
  }
  /// Erases the bar from the terminal, so that another line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool redraw_due(int64_t step);
  void draw(const StepEvent& step);
  /// Returns the remaining time as text; "" if it is unknown.
  std::string time_left(const StepEvent& step, double ms_per_step) const;

  Options options_;
  int64_t epoch_ = 1;
  int64_t steps_done_ = 0, samples_ = 0;  ///< steps and samples since begin_epoch()
  bool draws_bar_;
  bool drawn_ = false;
  Clock::time_point epoch_start_, last_draw_;
};

/// Prints a table to stdout: a header line, then one line per epoch.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// Prints the table row of `epoch`. The metrics of the first epoch define the columns. In a later
  /// epoch, `-` stands for a missing metric.
  void print(const EpochEvent& epoch);

 private:
  void print_header(const NamedScalars& values);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> columns_;
};

}  // namespace fluid
