#pragma once

#include <cmath>
#include <vector>

#include "frontend/fluid.h"

/// Hyperparameters of a recommendation model. The defaults are those of Naumov et al. for Criteo's
/// Kaggle data, except that all tables have equal size.
struct DlrmConfig {
  int64_t numeric_features = 13;
  int64_t categorical_features = 26;
  int64_t rows = 10000;  ///< rows per embedding table; indices are taken modulo `rows`
  int64_t width = 16;    ///< embedding size
  std::vector<int64_t> bottom = {512, 256, 64};  ///< units of the bottom MLP's hidden layers
  std::vector<int64_t> top = {512, 256};         ///< units of the top MLP's hidden layers
  bool sparse = true;                            ///< whether the gradients of the tables are sparse
};

/// A multilayer perceptron (MLP) with ReLU after every layer.
inline fluid::Value dlrm_mlp(fluid::Value x, const std::vector<int64_t>& widths) {
  for (const int64_t units : widths) {
    x = fluid::linear(
        x, {.units = units, .act = fluid::Act::relu, .weight_init = fluid::Init::xavier_normal()});
  }
  return x;
}

/// Returns the dot products [N, pairs] of all pairs of different vectors in x [N, vectors, width].
inline fluid::Value dlrm_interact(fluid::Value x) {
  const int64_t vectors = x.shape()[1].size;
  const auto products = fluid::matmul(x, x, {.transpose_b = true});
  fluid::Values pairs;
  for (int64_t i = 1; i < vectors; ++i) {
    const auto row =
        fluid::slice(products, {.starts = {i, 0}, .stops = {i + 1, i}, .axes = {1, 2}});
    pairs.push_back(fluid::reshape(row, {fluid::kBatch, i}));
  }
  return fluid::concat(pairs, {.axis = 1});
}

/// Deep learning recommendation model: Naumov et al., 2019. x: features
/// [N, numeric_features + categorical_features], numeric features first. Returns the logits [N, 1]
/// of a click.
inline fluid::Value dlrm(fluid::Value x, const DlrmConfig& config) {
  const fluid::Values parts =
      fluid::split(x, {.sizes = {config.numeric_features, config.categorical_features}, .axis = 1});
  std::vector<int64_t> widths = config.bottom;
  widths.push_back(config.width);
  const auto dense = dlrm_mlp(fluid::log1p(fluid::relu(parts[0])), widths);
  const auto category = fluid::cast(parts[1], fluid::i64);
  const auto index = fluid::mod(category, fluid::scalar_like(category, double(config.rows)));
  const double bound = 1 / std::sqrt(static_cast<double>(config.rows));
  fluid::Values vectors = {fluid::unsqueeze(dense, {.axes = {1}})};
  for (int64_t i = 0; i < config.categorical_features; ++i) {
    const auto column = fluid::slice(index, {.starts = {i}, .stops = {i + 1}, .axes = {1}});
    vectors.push_back(fluid::embedding(column, {.rows = config.rows,
                                                .units = config.width,
                                                .weight_init = fluid::Init::uniform(-bound, bound),
                                                .sparse = config.sparse}));
  }
  const auto pairs = dlrm_interact(fluid::concat(vectors, {.axis = 1}));
  return fluid::linear(dlrm_mlp(fluid::concat({dense, pairs}, {.axis = 1}), config.top),
                       {.units = 1});
}

/// Adds the feeds `x` and `y` [N, 1] (1 for a click), and the outputs "loss" and "click" (the
/// probability of a click). Returns the loss.
inline fluid::Value record_dlrm(fluid::Program& net, const DlrmConfig& config = {}) {
  const auto x = net.data(
      "x", {fluid::kBatch, config.numeric_features + config.categorical_features}, fluid::f32);
  const auto y = net.data("y", {fluid::kBatch, 1}, fluid::f32);
  const auto logits = dlrm(x, config);
  const auto loss = fluid::mean(fluid::binary_cross_entropy_with_logits(logits, y));
  net.output("loss", loss);
  net.output("click", fluid::sigmoid(logits));
  return loss;
}
