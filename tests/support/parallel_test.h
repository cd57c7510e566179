#pragma once

// Shared code of the tests of `fluidrun train` in several processes.

#include <vector>

#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid {

class ParallelTest : public FluidrunTest {
 protected:
  /// 103 samples: the last batch of an epoch is smaller, and the ranks' shares of it uneven.
  static std::string train(const std::string& flags, const std::string& program = "line.fir") {
    return "train " + program + " --data synthetic-linear?limit=103 " + flags;
  }
  static std::string launch(int ranks, const std::string& flags,
                            const std::string& program = "line.fir") {
    return "launch --nproc " + std::to_string(ranks) + " -- " + train(flags, program);
  }

  /// "wide.fir", whose products are large enough for libraries.
  void write_wide_program() const {
    std::ofstream(dir_.file("wide.fir")) << R"(program @wide {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %u = param "u" {init = "xavier_uniform"} : f32[2, 128]
  %v = param "v" {init = "xavier_uniform"} : f32[128, 128]
  %w = param "w" {init = "xavier_uniform"} : f32[128, 1]
  %h = matmul(%x, %u) : f32[?, 128]
  %g = matmul(%h, %v) : f32[?, 128]
  %p = matmul(%g, %w) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %s = square(%e) : f32[?, 1]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.001}
  output "loss" = %loss
}
)";
  }

  std::vector<double> losses(const std::string& log) const {
    std::vector<double> all;
    for (const auto& step : logged(dir_.file(log))) all.push_back(step["loss"]);
    return all;
  }
  /// Expects that the losses of runs in f64 are equal but for the order of sums.
  void expect_losses(const std::string& log, const std::string& expected_log) const {
    const std::vector<double> expected = losses(expected_log), seen = losses(log);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_NEAR(seen[i], expected[i], 1e-9 * expected[i]) << log << " " << i;
    }
  }
};

}  // namespace fluid
