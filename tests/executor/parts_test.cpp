// Losses and outputs of every kind, in micro-batches and on several ranks, give the results of the
// whole batch.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "tests/support/all_within.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"

namespace fluid::parts_test {
namespace {

using testing::Ranks;

constexpr int64_t kSamples = 11;

/// Values that a loss may depend on.
struct Parts {
  Value x, y;    ///< [?, 4] of data, [?, 3] of them and w
  Value errors;  ///< [?]: error of each sample
  Value w;       ///< [4, 3]
};
using Loss = std::function<Value(const Parts&)>;

Value mean_of(const Parts& p) { return mean(p.errors); }
Value sum_of(const Parts& p) { return sum(p.errors); }
Value decay_of(const Parts& p) { return sum(square(p.w)); }

const std::vector<std::pair<std::string, Loss>> kLosses = {
    {"mean", mean_of},
    {"sum", sum_of},
    {"sum over a constant", [](const Parts& p) { return sum_of(p) / 64.0; }},
    {"mean over all elements", [](const Parts& p) { return mean(square(p.y)); }},
    {"mean over features, sum over samples",
     [](const Parts& p) { return sum(mean(square(p.y), {.axes = 1})); }},
    {"mean over samples, sum over features",
     [](const Parts& p) { return sum(mean(square(p.y), {.axes = 0})); }},
    {"mean with decay", [](const Parts& p) { return mean_of(p) + 0.1 * decay_of(p); }},
    {"sum with decay", [](const Parts& p) { return sum_of(p) - decay_of(p) / 3.0; }},
    {"sum and mean with decay",
     [](const Parts& p) { return 0.5 * (sum_of(p) + 2.0 * mean_of(p)) + sqrt(decay_of(p)); }},
    {"powers of the count", [](const Parts& p) {
       const Value n = internal::numel(*p.y.op()->graph(), {.of = p.errors.type()});
       return mean_of(p) - sum_of(p) + (decay_of(p) + mean_of(p)) / n + sum_of(p) * n * 0.01;
     }}};

Parts recorded(Program& net) {
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  const Value w = net.parameter("w", {4, 3}, Init::uniform(-1, 1));
  const Value y = matmul(x, w);
  return {x, y, softmax_cross_entropy(tanh(y), label), w};
}

Program program_of(const Loss& loss, bool all_outputs) {
  Program net("parts");
  const Parts parts = recorded(net);
  const Value l = loss(parts);
  net.output("loss", l);
  for (const auto& [name, output] : kLosses) {
    if (all_outputs) net.output(name, output(parts));
  }
  minimize(l, Adam{.lr = 0.01});
  return net;
}

/// Samples [first, first + count) of kSamples.
Batch batch_of(int64_t first, int64_t count) {
  Tensor x(f32, {count, 4}), label(i64, {count});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      const double at = 3.0 * static_cast<double>((first + i) * 4 + k);
      x.as<float>()[static_cast<size_t>(i * 4 + k)] = static_cast<float>(std::sin(at));
    }
    label.as<int64_t>()[static_cast<size_t>(i)] = (first + i) % 3;
  }
  return {.size = count,
          .columns = {{"x", x}, {"label", label}},
          .first = first,
          .global_batch_size = kSamples};
}

/// A tenth of the gradient, then the outputs, of a first step.
std::vector<double> first_step(const Program& net, int64_t first, int64_t count,
                               ExecutorOptions options) {
  options.batch = count;
  options.threads = 1;
  options.precision.dtype = f64;
  Executor exe(net, cpu(), options);
  const OutputViews outputs = exe.run(batch_of(first, count));
  std::vector<double> seen;
  const Tensor m = exe.parameter("w.m");
  for (int64_t i = 0; i < m.numel(); ++i) seen.push_back(m.at(i));
  for (const OutputView& o : outputs) seen.push_back(o.value.item());
  return seen;
}

TEST(Parts, MicroBatchesMakeTheStepOfTheWholeBatch) {
  for (const auto& [name, loss] : kLosses) {
    SCOPED_TRACE(name);
    const Program net = program_of(loss, false);
    testing::expect_all_within(first_step(net, 0, kSamples, {.micro_batches = 3}),
                               first_step(net, 0, kSamples, {}), 1e-12);
  }
}

TEST(Parts, RanksMakeTheStepOfTheWholeBatch) {
  const Program net = program_of(kLosses.back().second, true);
  const std::vector<double> whole = first_step(net, 0, kSamples, {});
  testing::expect_all_within(first_step(net, 0, kSamples, {.micro_batches = kSamples}), whole,
                             1e-12);
  for (const int size : {2, 3}) {
    const auto body = [&](const World& world) {  // the last rank has what is left
      const int64_t first = 5 * world.rank, end = world.rank + 1 == size ? kSamples : first + 5;
      const std::vector<double> seen = first_step(
          net, first, end - first, {.micro_batches = size - 1, .distributed = {.world = world}});
      return std::string(reinterpret_cast<const char*>(seen.data()), seen.size() * sizeof(double));
    };
    for (const std::string& text : Ranks(size, body).results()) {
      std::vector<double> seen(text.size() / sizeof(double));
      std::memcpy(seen.data(), text.data(), seen.size() * sizeof(double));
      testing::expect_all_within(seen, whole, 1e-12);
    }
  }
}

/// Expects the error for a loss, or for another output beside the mean, in micro-batches.
void expect_rejection(const Loss& value, const std::string& op, bool is_output = false) {
  Program net("refused");
  const Parts parts = recorded(net);
  const Value v = value(parts);
  net.output("figure", v);
  minimize(is_output ? mean_of(parts) : v, SGD{.lr = 0.1});
  const std::string what = is_output ? "output 'figure'" : "the loss";
  expect_user_error([&] { Executor(net, cpu(), {.batch = 4, .micro_batches = 2}); },
                    what +
                        " does not decompose into sums and means over samples, which micro-batches "
                        "and several ranks need: " +
                        op + " combines samples in another way");
  EXPECT_NO_THROW(Executor(net, cpu(), {.batch = 4}));
}

TEST(Parts, WhatIsNotMadeOfThemIsRejected) {
  expect_rejection([](const Parts& p) { return sqrt(mean_of(p)); }, "sqrt");
  expect_rejection([](const Parts& p) { return 1.0 + sqrt(mean_of(p)) * 2.0; }, "sqrt");
  expect_rejection([](const Parts& p) { return mean_of(p) * sum_of(p); }, "mul");
  expect_rejection([](const Parts& p) { return decay_of(p) / sum_of(p); }, "div");
  expect_rejection([](const Parts& p) { return max(p.errors); }, "max");
  expect_rejection(
      [](const Parts& p) { return mean(square(p.y - mean(p.y, {.axes = 0, .keep_dims = true}))); },
      "sub");
  expect_rejection([](const Parts& p) { return mean(softmax(transpose(p.y))); }, "softmax");
  expect_rejection(
      [](const Parts& p) {
        const Value mixed = reshape(transpose(p.y), {kBatch, 3});
        return mean(max(mixed, {.axes = 1}));
      },
      "reshape");
  expect_rejection(
      [](const Parts& p) {
        const Value seen = cast(greater(p.x, scalar_like(p.x, 0)), f32);
        return sum(p.x * seen) / sum(seen);
      },
      "div", true);
}

TEST(Parts, CountsAreFloats) {
  Program net("counted");
  const Parts parts = recorded(net);
  net.output("hits", sum(greater(parts.errors, scalar_like(parts.errors, 1))));
  minimize(mean_of(parts), SGD{.lr = 0.1});
  expect_user_error([&] { Executor(net, cpu(), {.batch = 4, .micro_batches = 2}); },
                    "output 'hits' is i64[], which does not add up over micro-batches and "
                    "processes: cast it to a float");
}

}  // namespace
}  // namespace fluid::parts_test
