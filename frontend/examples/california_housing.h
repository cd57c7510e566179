#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a multilayer perceptron.
struct CaliforniaHousingConfig {
  int64_t layers = 3;
  int64_t width = 64;
};

/// Adds a regression of house prices to `net`. Outputs: "price" and "error" in dollars, and "loss".
/// Returns the loss. Feed `x`: the 8 features of a district, in the column order of the data file.
/// Feed `y`: the median house value of the district in dollars (Pace and Barry, "Sparse spatial
/// autoregressions", 1997). Both feeds are normalised by mean and standard deviation over all
/// districts.
inline fluid::Value record_california_housing(fluid::Program& net,
                                              const CaliforniaHousingConfig& config = {}) {
  constexpr double kMean = 206856, kDeviation = 115393;
  const auto x = net.data("x", {fluid::kBatch, 8}, fluid::f32,
                          {.mean = {-119.57, 35.632, 28.639, 2635.8, 537.9, 1425.5, 499.5, 3.871},
                           .std = {2.003, 2.136, 12.585, 2181.6, 421.2, 1132.4, 382.3, 1.900}});
  const auto y =
      net.data("y", {fluid::kBatch, 1}, fluid::f32, {.mean = {kMean}, .std = {kDeviation}});
  fluid::Value h = x;
  for (int64_t i = 0; i < config.layers; ++i) {
    h = fluid::linear(h, {.units = config.width, .act = fluid::Act::relu});
  }
  const auto predicted = fluid::linear(h, {.units = 1});
  const auto loss = fluid::mean(fluid::mse_loss(predicted, y));
  net.output("loss", loss);
  net.output("error", fluid::mean(fluid::l1_loss(predicted, y)) * kDeviation);
  net.output("price", predicted * kDeviation + kMean);
  return loss;
}
