#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// Progress of an epoch on stderr: a bar on a terminal, else a plain line every ten seconds. No
/// colours. A narrow terminal gets no bar, shorter words, and drops from the end: memory, loss
/// scale, learning rate, samples per second.
class Progress {
 public:
  /// `quiet`: prints nothing.
  Progress(int64_t epochs, int64_t steps, bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;

  void begin_epoch(int64_t epoch);  ///< from 1
  void step(const StepEvent& step) {
    ++done_;
    samples_ += step.samples;
    if (due()) draw(step);
  }
  /// Removes the bar, so that a line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void draw(const StepEvent& step);

  int64_t epochs_, steps_;
  int64_t epoch_ = 1;
  int64_t done_ = 0, samples_ = 0;  ///< since begin_epoch()
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_, last_;
};

/// Prints epochs as an aligned table on stdout: a line of names, then one line per epoch.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// The columns are the values of the first epoch; `-` marks a value that a later epoch lacks.
  void print(const EpochEvent& epoch);

 private:
  void print_names(const NamedScalars& values);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> names_;
};

}  // namespace fluid
