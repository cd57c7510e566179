#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/reading_flags.h"
#include "frontend/program.h"

namespace fluid {

/// A measurement of `fluidrun bench --pipeline eval` or `--pipeline predict`.
struct InferenceBench {
  Mode mode = Mode::predict;      ///< eval or predict
  std::string data;               ///< SPEC of the batch; empty: random numbers
  int64_t batch = 0;              ///< samples per step; 0: those of the data, or 1
  std::optional<int64_t> length;  ///< length of the sequences in random numbers
  ReadingFlags reading;
  ProfileFlags profile;
  int64_t warmup = 0, steps = 1;

  /// Runs steps on one batch. Prints the median and the 95th percentile of their times, the samples
  /// per second, the time of the first step and the size of the arena. `options`: those of the
  /// executor.
  void run(Program program, Place place, ExecutorOptions options) const;
};

}  // namespace fluid
