#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fluid {

/// How far an epoch is, on stderr: a bar that redraws itself on a terminal, else a plain line every
/// ten seconds. No colours. A narrow terminal gets shorter words and no bar, and loses what matters
/// least: the memory, the learning rate, the samples a second.
class Progress {
 public:
  /// `quiet`: says nothing.
  Progress(int64_t epochs, int64_t steps, bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;

  void begin_epoch(int64_t epoch);  ///< from 1
  /// After each step: `figures` is asked for only when something is drawn.
  template <class F>
  void step(int64_t step, int64_t samples, double learning_rate, F figures) {
    samples_ += samples;
    learning_rate_ = learning_rate;
    if (due()) draw(step, figures());
  }
  /// Removes the bar, so that a line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool due();
  void draw(int64_t step, const std::string& figures);

  int64_t epochs_, steps_;
  int64_t epoch_ = 1;
  int64_t samples_ = 0;
  double learning_rate_ = 0;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_, last_;
};

}  // namespace fluid
