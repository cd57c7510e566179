#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// Prints the progress of an epoch to stderr: a progress bar on a terminal, else a line every ten
/// seconds. On a narrow terminal, prints abbreviated fields without the bar. If the abbreviated
/// fields are still too long, omits fields in this order: memory, loss scale, learning rate,
/// samples per second.
class ProgressBar {
 public:
  /// With `quiet`, the progress bar prints nothing.
  ProgressBar(int64_t epochs, int64_t steps_per_epoch, bool quiet);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;

  void begin_epoch(int64_t epoch);  ///< `epoch`: number of the epoch, from 1
  /// Counts a finished step, and redraws the bar if enough time has passed.
  void update(const StepEvent& step) {
    ++steps_done_;
    samples_ += step.samples;
    if (redraw_due()) draw(step);
  }
  /// Erases the bar from the terminal, so that another line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool redraw_due();
  void draw(const StepEvent& step);

  int64_t epochs_, steps_per_epoch_;
  int64_t epoch_ = 1;
  int64_t steps_done_ = 0, samples_ = 0;  ///< steps and samples since begin_epoch()
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point epoch_start_, last_draw_;
};

/// Prints a table to stdout: a header line, then one line per epoch.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// Prints the line of `epoch`. The metrics of the first epoch define the columns. In a later
  /// epoch, `-` stands for a missing metric.
  void print(const EpochEvent& epoch);

 private:
  void print_header(const NamedScalars& values);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> columns_;
};

}  // namespace fluid
