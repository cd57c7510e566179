#pragma once

#include <string>

#include "executor/trainer/learning_rate_finder.h"

namespace fluid {

/// Plots a learning rate range test as SVG: the losses and the smoothed losses over the logarithm
/// of the learning rate, and the suggested rate.
std::string learning_rate_svg(const LearningRateCurve& curve);
/// The points as CSV: learning_rate,loss,smoothed_loss.
std::string learning_rate_csv(const LearningRateCurve& curve);

/// Prints the suggested learning rate. Writes the curve to `file` (empty: no file), as CSV if the
/// name ends in .csv, else as SVG. Throws UserError for a curve without points.
void report_learning_rates(const LearningRateCurve& curve, const std::string& file);

}  // namespace fluid
