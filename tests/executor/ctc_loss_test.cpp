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
Program ctc_program(const CtcLoss& options, DType dtype = f64) {
  Program net("ctc");
  const Value x = net.data("x", {kBatch, kT, kC}, dtype);
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
    const CtcLoss options = {.blank = golden.at("blank"),
                             .reduction = golden.at("reduction"),
                             .zero_infinity = golden.at("zero_infinity")};
    const int64_t n = golden.at("samples");
    for (const DType dtype : {f64, f32}) {
      SCOPED_TRACE(options.reduction + ", blank " + std::to_string(options.blank) + ", " +
                   std::string(name_of(dtype)));
      Executor exe(ctc_program(options, dtype), cpu());
      const OutputViews out =
          exe.predict({{"x", logits(n).cast(dtype)},
                       {"targets", integers(golden.at("targets"), {n, kS})},
                       {"input_lengths", integers(kInputLengths, {n})},
                       {"target_lengths", integers(golden.at("target_lengths"), {n})}});
      const double tolerance = dtype == f64 ? 1e-9 : 1e-5;
      for (const char* name : {"loss", "gradient"}) {
        testing::expect_golden(out[name], golden.at(name), name, tolerance);
      }
    }
  }
}

TEST(CtcLoss, RejectsDataThatIsOutOfRange) {
  Executor exe(ctc_program({.reduction = "none"}), cpu());
  const auto run = [&](std::vector<int64_t> targets, std::vector<int64_t> input_lengths,
                       std::vector<int64_t> target_lengths) {
    exe.predict({{"x", logits(4)},
                 {"targets", integers(targets, {4, kS})},
                 {"input_lengths", integers(input_lengths, {4})},
                 {"target_lengths", integers(target_lengths, {4})}});
  };
  expect_user_error(
      [&] {
        run(kTargets, kInputLengths, {3, 2, 4, 3});
      },
      "in ctc_loss0: value 4 of feed 'target_lengths' is out of range [0, 4), in "
      "sample 2 of the batch");
  expect_user_error(
      [&] {
        run(kTargets, kInputLengths, {3, 2, 1, -1});
      },
      "in ctc_loss0: value -1 of feed 'target_lengths' is out of range [0, 4)");
  expect_user_error(
      [&] {
        run(kTargets, {6, 7, 5, 4}, kTargetLengths);
      },
      "in ctc_loss0: value 7 of feed 'input_lengths' is out of range [0, 7)");
  expect_user_error(
      [&] {
        run(kTargets, {6, 6, -2, 4}, kTargetLengths);
      },
      "in ctc_loss0: value -2 of feed 'input_lengths' is out of range [0, 7)");
  std::vector<int64_t> targets = kTargets;
  targets[1] = kC;
  expect_user_error([&] { run(targets, kInputLengths, kTargetLengths); },
                    "in ctc_loss0: index 5 is out of range [0, 5)");
  run(kTargets, kInputLengths, kTargetLengths);
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
