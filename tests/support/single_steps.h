#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "frontend/program.h"
#include "ops/source_kind.h"
#include "tests/support/training.h"

namespace fluid::testing {

/// Steps in f32, each from the variables of an executor in f64, so that the two runs have no time
/// to move apart.
class SingleSteps {
 public:
  /// Trains `net` on batches of `batch` samples. `states`: optimizer states of a parameter.
  SingleSteps(const Program& net, int64_t batch, const std::vector<std::string>& states)
      : led_(net, cpu(), {.batch = batch}), names_(led_.parameters()) {
    names_.emplace_back("update");
    for (const auto& op : net.ir().main().ops) {
      const bool trained =
          source_kind(*op) == SourceKind::parameter && op->attrs.get_or("trainable", true);
      for (const std::string& state : states) {
        if (trained) names_.push_back(op->symbol + "." + state);
      }
    }
  }

  struct Losses {
    double exact = 0;  ///< loss of the step in f64
    double led = 0;    ///< loss of the step in f32
  };
  /// Runs the next step of `exact`, and the same step in f32.
  Losses run(Executor& exact, const Batch& batch) {
    const Variables before = variables(exact);
    for (const auto& [name, value] : before) led_.set_parameter(name, value);
    const Losses losses{exact.run(batch)["loss"].item(), led_.run(batch)["loss"].item()};
    add_errors(before, variables(exact), variables(led_));
    return losses;
  }

  /// Expects that the variables changed as in f64. A single step may differ more: where two pixels
  /// of a pool are equal but for rounding, or the input of a ReLU is zero but for rounding, f32 and
  /// f64 send the gradient to different elements. The fewer elements a layer has, the more one of
  /// them counts. `median` and `worst` bound the errors of all steps, relative to the change of the
  /// variable.
  void expect_small_errors(double median = 1e-5, double worst = 1e-2) {
    for (auto& [name, errors] : errors_) {
      std::ranges::sort(errors);
      EXPECT_LE(errors[errors.size() / 2], median) << name << ", the median of all steps";
      EXPECT_LE(errors.back(), worst) << name << ", the worst step";
    }
  }

 private:
  using Variables = std::map<std::string, Tensor>;
  static constexpr double kRounding = 0x1p-23;  // half of it before the step, half after it
  static constexpr double kStill = 1e-6;        // largest change by rounding errors in f32

  Variables variables(Executor& exe) const {
    Variables all;
    for (const std::string& name : names_) all.emplace(name, exe.parameter(name));
    return all;
  }

  /// Adds the error of a step: the distance of f32 from f64, without what rounding the variables
  /// themselves explains, as a fraction of what the step changed. Elements that f64 changes by
  /// rounding errors alone must stay in f32 as well.
  void add_errors(const Variables& before, const Variables& exact, const Variables& in_f32) {
    for (const auto& [name, value] : exact) {
      const Tensor &old = before.at(name), &led = in_f32.at(name);
      const auto moment = exact.find(name + ".m");
      double size = 0, change = 0, error = 0;
      for (int64_t i = 0; i < value.numel(); ++i) {
        // Adam divides a gradient by its own size: one of rounding errors becomes a whole step.
        if (moment != exact.end() && is_rounding_error(moment->second.at(i))) continue;
        if (is_rounding_error(value.at(i) - old.at(i))) {
          EXPECT_NEAR(led.at(i), value.at(i), kStill + kRounding * std::abs(value.at(i)))
              << name << ", element " << i << ", which f64 does not change";
          continue;
        }
        size += value.at(i) * value.at(i);
        change += (value.at(i) - old.at(i)) * (value.at(i) - old.at(i));
        error += (led.at(i) - value.at(i)) * (led.at(i) - value.at(i));
      }
      const double unexplained = std::sqrt(error) - kRounding * std::sqrt(size);
      errors_[name].push_back(unexplained <= 0 ? 0 : unexplained / std::sqrt(change));
    }
  }

  /// Whether `x` is zero but for the rounding errors of f64. The gradient of a bias that softmax or
  /// batch norm cancels, such as that of attention's keys, is one.
  static bool is_rounding_error(double x) { return std::abs(x) < 1e-12; }

  Executor led_;
  std::vector<std::string> names_;  ///< variables that are compared
  std::map<std::string, std::vector<double>> errors_;
};

}  // namespace fluid::testing
