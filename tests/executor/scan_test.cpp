// Recurrences: values, gradients against finite differences, and the program transformations that a
// scan takes part in.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::scan_test {
namespace {

Tensor numbers(const std::vector<int64_t>& shape, double seed = 0.3) {
  Tensor t(f64, shape);
  double v = seed;
  for (double& x : t.as<double>()) x = v = std::fmod(v * 7.3, 2.0) - 0.7;
  return t;
}

TEST(Scan, CollectsTheCarriesOfEachStep) {
  for (const bool reverse : {false, true}) {
    Program net("net");
    const Value x = net.data("x", {5, kBatch, 3}, f64);
    const Value start = net.data("start", {kBatch, 3}, f64);
    const ScanResult result = scan(
        {start}, {x},
        [](const Values& carry, const Values& element) {
          const Value next = carry[0] * 0.5 + element[0];
          return ScanStep{.carries = {next}, .collected = {next * 2.0, carry[0]}};
        },
        {.reverse = reverse});
    net.output("last", result.carries[0]);
    net.output("twice", result.collected[0]);
    net.output("before", result.collected[1]);
    Executor exe(net, cpu());
    const Tensor xs = numbers({5, 2, 3}), first = numbers({2, 3}, 0.9);
    const OutputViews out = exe.predict({{"x", xs}, {"start", first}});
    for (int64_t i = 0; i < 6; ++i) {
      double carry = first.at(i);
      for (int64_t step = 0; step < 5; ++step) {
        const int64_t at = (reverse ? 4 - step : step) * 6 + i;
        EXPECT_EQ(out["before"].at(at), carry);
        carry = carry * 0.5 + xs.at(at);
        EXPECT_EQ(out["twice"].at(at), 2 * carry);
      }
      EXPECT_EQ(out["last"].at(i), carry);
    }
  }
}

const std::map<std::string, std::vector<int64_t>> kParameters = {
    {"scale", {4, 1, 5}}, {"w", {3, 5}}, {"u", {5, 5}}, {"b", {5}}, {"p", {}}, {"start", {1, 5}}};

/// A recurrence whose steps read parameters in products, in a broadcast, in a softmax, and in a sum
/// that is no sum over rows; and elements of sequences in a product that does not depend on the
/// carries.
Program recurrent(const ScanOptions& options) {
  Program net("recurrent");
  const Value x = transpose(net.data("x", {kBatch, 4, 3}, f64), {.perm = {1, 0, 2}});
  std::map<std::string, Value> of;
  for (const auto& [name, shape] : kParameters) {
    const Shape dims(shape.begin(), shape.end());
    of[name] = net.parameter(name, dims, Init::normal(0, 0.5), {.dtype = f64});
  }
  const Value start = matmul(sum(x, {.axes = {0}}), of["w"]) + of["start"];
  const ScanResult result = scan(
      {start, start * 0.1}, {x, of["scale"]},
      [&](const Values& carry, const Values& element) {
        const Value gates = matmul(tanh(element[0]), of["w"]) + matmul(carry[0], of["u"]) + of["b"];
        const Value c = carry[1] * sigmoid(gates) + tanh(gates) * element[1];
        const Value h = tanh(c) * of["p"] + softmax(gates) * exp(of["b"]);
        return ScanStep{.carries = {h, c}, .collected = {h, matmul(c, of["u"])}};
      },
      options);
  const Value loss = sum(square(result.collected[0])) +
                     sum(result.collected[1] * result.collected[0]) + sum(result.carries[1]);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  return net;
}

Tensor parameter_value(const std::string& name) {
  const std::vector<int64_t>& shape = kParameters.at(name);
  return numbers(shape, 0.1 + 0.07 * static_cast<double>(name.size() + shape.size()));
}

void set_parameters(Executor& exe) {
  for (const auto& [name, shape] : kParameters) exe.set_parameter(name, parameter_value(name));
}

TEST(Scan, HasTheGradientsOfFiniteDifferences) {
  for (const bool reverse : {false, true}) {
    Executor exe(recurrent({.reverse = reverse}), cpu());
    const Tensor x = numbers({2, 4, 3});
    set_parameters(exe);
    exe.run({{"x", x}});
    std::map<std::string, Tensor> after;
    for (const auto& [name, shape] : kParameters) after[name] = exe.parameter(name).copy();
    set_parameters(exe);
    for (const auto& [name, shape] : kParameters) {
      const Tensor before = parameter_value(name);
      for (int64_t i = 0; i < before.numel(); ++i) {
        constexpr double kStep = 1e-5;
        const auto loss_at = [&](double step) {
          Tensor moved = before.copy();
          moved.as<double>()[static_cast<size_t>(i)] += step;
          exe.set_parameter(name, moved);
          return exe.eval({{"x", x}})["loss"].item();
        };
        const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
        EXPECT_NEAR(before.at(i) - after.at(name).at(i), slope, 1e-8 * (10 + std::abs(slope)))
            << name << "[" << i << "]" << (reverse ? " reverse" : "");
      }
      exe.set_parameter(name, before);
    }
  }
}

}  // namespace
}  // namespace fluid::scan_test
