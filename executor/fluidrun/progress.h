#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"

namespace fluid {

/// A training step that is done.
struct DoneStep {
  int64_t number = 0;  ///< in its epoch, from 1
  int64_t samples = 0;
  double learning_rate = 0;
  std::optional<LossScaling> scaling;  ///< after it
};

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
  /// After each step: `figures` is asked for only when something is drawn.
  template <class F>
  void step(const DoneStep& step, F figures) {
    ++done_;
    samples_ += step.samples;
    if (due()) draw(step, figures());
  }
  /// Removes the bar, so that a line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void draw(const DoneStep& step, const std::string& figures);

  int64_t epochs_, steps_;
  int64_t epoch_ = 1;
  int64_t done_ = 0, samples_ = 0;  ///< since the epoch was begun here
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_, last_;
};

}  // namespace fluid
