#pragma once

#include <string_view>

namespace fluid::testing {

/// Random numbers, moments and a schedule: all that a checkpoint has to keep.
inline constexpr std::string_view kDropping = R"(program @dropping {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %rng = state "rng" : i64[3]
  %w = param "w" {init = "xavier_uniform"} : f32[2, 8]
  %h = matmul(%x, %w) : f32[?, 8]
  %d = dropout(%h, %rng) {p = 0.3, stream = 3} : f32[?, 8]
  %v = param "v" {init = "xavier_uniform"} : f32[8, 1]
  %p = matmul(%d, %v) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "adam", lr = 0.01, schedule = "cosine", schedule_steps = 100}
  output "loss" = %loss
}
)";

}  // namespace fluid::testing
