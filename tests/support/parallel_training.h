#pragma once

#include <optional>
#include <vector>

#include "executor/executor.h"
#include "frontend/optimizers.h"
#include "frontend/readers/reader.h"

namespace fluid::testing {

constexpr int64_t kWhole = 12;    ///< samples of a step, over all ranks
constexpr int64_t kSamples = 26;  ///< an epoch's: two steps, and one too small for three ranks
constexpr int64_t kUneven = 29;   ///< two steps, and one that no number of ranks shares evenly

/// With a convolution, dropout, a metric and an output of a row a sample; without batch statistics.
Program parallel_program(const MinimizeOptions& rules = {});

/// With normalisations, the first of data alone, the next of what is around `offset`; and dropout,
/// which drops `p` of what it is given.
Program normalising_program(double offset, const MinimizeOptions& rules = {}, double p = 0);

/// `count` samples for both programs.
Dataset parallel_samples(int64_t count = kSamples);

/// A rank's part of the first kWhole samples.
Batch shard_of_batch(const World& world);

/// The results of a rank.
struct Seen {
  /// For each step: loss, sum of the accuracy, and its weight; of a program of several recipes, the
  /// scalar outputs that the step computes. At the end, if the program has other metrics than the
  /// accuracy: all metrics and means over the steps.
  std::vector<double> figures;
  /// Parameters and running statistics, parameter averages if the recipe keeps them, and with f16
  /// the loss scale and the number of skipped steps.
  std::vector<double> parameters;
  bool operator==(const Seen&) const = default;
};

/// As processes send it to each other, and back.
std::string text_of(const Seen& seen);
Seen seen_in(const std::string& text);

/// `steps` steps of `net` on this rank's share of each; an epoch has `samples`. Several recipes
/// take turns. The schedule Plateau is told that no epoch is better, Manual gets another rate after
/// each step. After step `resume_at`, a new executor goes on from a snapshot.
Seen trained(const Program& net, ExecutorOptions options, int64_t steps, int64_t samples = kSamples,
             Place place = cpu(), std::optional<int64_t> resume_at = {});

/// Trains on `size` ranks, whose results must be equal. `place_of` gives the place of each rank.
using PlaceOf = Place (*)(int rank);
Seen trained_by(int size, const Program& net, const ExecutorOptions& options, int64_t steps,
                int64_t samples = kSamples, PlaceOf place_of = nullptr,
                std::optional<int64_t> resume_at = {});

/// Each number of `a` is within `relative` times the number of `b`.
void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative);

}  // namespace fluid::testing
