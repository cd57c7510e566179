#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "frontend/program.h"
#include "tests/support/training.h"

namespace fluid::testing {

/// Steps in f32, each from the variables of an executor in f64, so that the two runs have no time
/// to move apart.
class SingleSteps {
 public:
  /// Trains `net` on batches of `batch` samples. `states`: optimizer states of a parameter.
  SingleSteps(const Program& net, int64_t batch, std::vector<std::string> states)
      : states_(std::move(states)), led_(net, cpu(), {.batch = batch}) {}

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
  /// of a pool are equal but for rounding, f32 and f64 send the gradient to different ones.
  /// `median`: bound of the median error over all steps, relative to the change of the variable.
  void expect_small_errors(double median = 1e-5) {
    for (auto& [name, errors] : errors_) {
      std::ranges::sort(errors);
      EXPECT_LE(errors[errors.size() / 2], median) << name << ", the median of all steps";
      EXPECT_LE(errors.back(), 1e-2) << name << ", the worst step";
    }
  }

 private:
  using Variables = std::map<std::string, Tensor>;
  static constexpr double kRounding = 0x1p-23;  // half of it before the step, half after it

  Variables variables(Executor& exe) const {
    Variables all = {{"update", exe.parameter("update").copy()}};
    for (const std::string& name : exe.parameters()) {
      all.emplace(name, exe.parameter(name).copy());
      for (const std::string& state : states_) {
        all.emplace(name + "." + state, exe.parameter(name + "." + state).copy());
      }
    }
    return all;
  }

  /// |a - b|, the Euclidean norm.
  static double distance(const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (int64_t i = 0; i < a.numel(); ++i) sum += (a.at(i) - b.at(i)) * (a.at(i) - b.at(i));
    return std::sqrt(sum);
  }

  /// Adds the error of a step: the distance of f32 from f64, without what rounding the variables
  /// themselves explains, as a fraction of what the step changed.
  void add_errors(const Variables& before, const Variables& exact, const Variables& in_f32) {
    for (const auto& [name, value] : exact) {
      const double size = distance(value, Tensor(value.dtype(), value.shape()));
      const double error = distance(in_f32.at(name), value) - kRounding * size;
      errors_[name].push_back(error <= 0 ? 0 : error / distance(value, before.at(name)));
    }
  }

  std::vector<std::string> states_;
  Executor led_;
  std::map<std::string, std::vector<double>> errors_;
};

}  // namespace fluid::testing
