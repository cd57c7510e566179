#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// How far an epoch is, on stderr: a bar that redraws itself on a terminal, else a plain line every
/// ten seconds. No colours. A narrow terminal gets shorter words and no bar, and loses what matters
/// least: the memory, the loss scale, the learning rate, the samples a second.
class Progress {
 public:
  /// `quiet`: says nothing.
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
  int64_t done_ = 0, samples_ = 0;  ///< since the epoch was begun here
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_, last_;
};

/// Prints epochs as an aligned table on stdout: a line of names, then a line an epoch.
class EpochTable {
 public:
  explicit EpochTable(int64_t epochs) : epochs_(epochs) {}

  /// The columns are the values of the first epoch; `-` stands for a value that a later epoch
  /// lacks.
  void print(const EpochEvent& epoch);

 private:
  void print_names(const NamedScalars& values);
  size_t epoch_width() const;

  int64_t epochs_;
  std::vector<std::string> names_;
};

}  // namespace fluid
