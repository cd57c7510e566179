#pragma once

#include <cstdint>
#include <string>

#include "executor/options/world.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/trainer.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Reads the first `samples` samples of `data`, or all if there are fewer, into memory. Omits the
/// bad records that `data` skips. Applies random augmentation once, and neither mixup nor cutmix.
/// `seed` seeds the shuffle and the augmentation. `world` must be the world of `data`.
Reader read_first_samples(Reader& data, int64_t samples, uint64_t seed, const World& world);

/// Trains on a few samples to find out whether a program can learn the samples. The test passes if
/// the minimized loss falls to 1% of its initial value, or if a metric reaches its best value.
class OverfitTest {
 public:
  /// `reader`: the result of read_first_samples().
  OverfitTest(const Program& program, Trainer& trainer, Reader& reader)
      : program_(program), trainer_(trainer), reader_(reader) {}

  /// Collective. Trains until the loss is small enough, for at most the epochs and steps of
  /// `options`. On rank 0, prints the scalar outputs before and after training, in inference mode.
  /// Throws UserError if the program has not learned the samples. Also throws UserError if
  /// `options` trains several recipes, or if the loss of the recipe is not an output. Returns the
  /// result of fit().
  History run(FitOptions options);

 private:
  bool loss_is_small(const NamedScalars& values) const;
  /// Name of a metric that has its best possible value, such as an accuracy of 1; empty: none.
  std::string perfect_metric(const NamedScalars& values) const;

  const Program& program_;
  Trainer& trainer_;
  Reader& reader_;
  std::string loss_;
  double first_loss_ = 0;
};

}  // namespace fluid
