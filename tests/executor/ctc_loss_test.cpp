// The connectionist temporal classification loss against PyTorch's, which tests/golden/ctc.py
// recorded.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace fluid::ctc_loss_test {
namespace {

constexpr int64_t kT = 6, kC = 5, kS = 3;
// Repeated labels need a blank between them. The last target fits no alignment with its input.
const std::vector<int64_t> kTargets = {1, 1, 2, 3, 4, 0, 2, 0, 0, 4, 4, 4};
const std::vector<int64_t> kInputLengths = {6, 4, 5, 4}, kTargetLengths = {3, 2, 1, 3};

/// The script's logits.
Tensor logits(int64_t samples) {
  Tensor t(f64, {samples, kT, kC});
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto level = static_cast<double>((i * 7919 + 104729) % 1009);
    t.as<double>()[static_cast<size_t>(i)] = 3 * (level / 1009 - 0.5);
  }
  return t;
}

Tensor integers(const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  Tensor t(i64, std::move(shape));
  for (size_t i = 0; i < static_cast<size_t>(t.numel()); ++i) t.as<int64_t>()[i] = values[i];
  return t;
}

/// A program with the outputs "loss" and "gradient", the gradient of the sum of the losses.
Program ctc_program(const CtcLoss& options) {
  Program net("ctc");
  const Value x = net.data("x", {kBatch, kT, kC}, f64);
  const Value loss = ctc_loss(log_softmax(x, {.axis = 2}), net.data("targets", {kBatch, kS}, i64),
                              net.data("input_lengths", {kBatch}, i64),
                              net.data("target_lengths", {kBatch}, i64), options);
  net.output("loss", loss);
  net.output("gradient", gradients(loss, {x}).at(0));
  return net;
}

TEST(CtcLoss, IsPyTorchs) {
  const nlohmann::json json = testing::golden_json("ctc.json");
  for (const auto& golden : json.at("cases")) {
    const std::string reduction = golden.at("reduction");
    const int64_t n = golden.at("samples");
    Executor exe(ctc_program({.reduction = reduction, .zero_infinity = golden.at("zero_infinity")}),
                 cpu());
    const OutputViews out = exe.predict({{"x", logits(n)},
                                         {"targets", integers(kTargets, {n, kS})},
                                         {"input_lengths", integers(kInputLengths, {n})},
                                         {"target_lengths", integers(kTargetLengths, {n})}});
    testing::expect_golden(out["loss"], golden.at("loss"), reduction + " loss");
    testing::expect_golden(out["gradient"], golden.at("gradient"), reduction + " gradient");
  }
}

TEST(CtcLoss, OfATargetThatFitsNoAlignmentIsInfinite) {
  Executor exe(ctc_program({.reduction = "none"}), cpu());
  const OutputViews out = exe.predict({{"x", logits(4)},
                                       {"targets", integers(kTargets, {4, kS})},
                                       {"input_lengths", integers(kInputLengths, {4})},
                                       {"target_lengths", integers(kTargetLengths, {4})}});
  EXPECT_EQ(out["loss"].at(3), INFINITY);
  for (int64_t i = 3 * kT * kC; i < 4 * kT * kC; ++i) EXPECT_EQ(out["gradient"].at(i), 0);
}

/// Labels past the length of a target may be anything, and log-probabilities may be those of
/// impossible classes.
TEST(CtcLoss, IgnoresPaddingAndTakesInfinities) {
  Program net("ctc");
  const Value x = net.data("x", {kBatch, 3, 2}, f64);
  const Value loss =
      ctc_loss(x, net.data("targets", {kBatch, 2}, i64), net.data("n", {kBatch}, i64),
               net.data("m", {kBatch}, i64), {.reduction = "none"});
  net.output("loss", loss);
  Tensor log_probs(f64, {1, 3, 2});  // the classes 0, 1, 0 for certain
  for (int64_t i = 0; i < 6; ++i) {
    const bool likely = i == 0 || i == 3 || i == 4;
    log_probs.as<double>()[static_cast<size_t>(i)] = likely ? 0 : -INFINITY;
  }
  Executor exe(net, cpu());
  const auto loss_of = [&](const std::vector<int64_t>& target, int64_t length) {
    return exe
        .predict({{"x", log_probs},
                  {"targets", integers(target, {1, 2})},
                  {"n", integers({3}, {1})},
                  {"m", integers({length}, {1})}})["loss"]
        .item();
  };
  EXPECT_EQ(loss_of({1, -100}, 1), 0);
  EXPECT_EQ(loss_of({1, 1}, 2), INFINITY);
}

TEST(CtcLoss, RejectsOtherShapes) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kT, kC}, f32), lengths = net.data("n", {kBatch}, i64);
  const Value targets = net.data("targets", {kBatch, kS}, i64);
  expect_user_error([&] { ctc_loss(lengths, targets, lengths, lengths); }, "log_probs is i64[?]");
  expect_user_error([&] { ctc_loss(x, lengths, lengths, lengths); }, "targets is i64[?]");
  expect_user_error([&] { ctc_loss(x, targets, targets, lengths); }, "lengths are i64[?, 3]");
  expect_user_error([&] { ctc_loss(x, targets, lengths, lengths, {.blank = 5}); }, "blank 5");
  expect_user_error([&] { ctc_loss(x, targets, lengths, lengths, {.reduction = "max"}); }, "'max'");
}

}  // namespace
}  // namespace fluid::ctc_loss_test
