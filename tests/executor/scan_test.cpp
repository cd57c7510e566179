// Recurrences: values, gradients against finite differences, and the program transformations that a
// scan takes part in.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/fluid.h"
#include "tests/support/temp_dir.h"

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
    const ScanResult result =
        scan({start}, {x},
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

/// The parameters after two training steps on five samples.
std::map<std::string, Tensor> trained(const ExecutorOptions& options) {
  Executor exe(recurrent({}), cpu(), options);
  set_parameters(exe);
  for (int step = 0; step < 2; ++step) exe.run({{"x", numbers({5, 4, 3})}});
  std::map<std::string, Tensor> parameters;
  for (const auto& [name, shape] : kParameters) parameters[name] = exe.parameter(name).copy();
  return parameters;
}

TEST(Scan, GivesTheSameBitsWithAnyNumberOfThreadsAndAVerifiedPlan) {
  const auto expected = trained({.threads = 2});
  for (const ExecutorOptions& options :
       {ExecutorOptions{.threads = 1}, {.threads = 2, .debug = {.verify_plan = true}}}) {
    for (const auto& [name, value] : trained(options)) {
      for (int64_t i = 0; i < value.numel(); ++i) EXPECT_EQ(value.at(i), expected.at(name).at(i));
    }
  }
}

TEST(Scan, TrainsAlikeInMicroBatchesAndWithoutFusionOrLibraries) {
  const auto expected = trained({});
  for (const ExecutorOptions& options :
       {ExecutorOptions{.micro_batches = 2}, {.debug = {.fuse = false, .libraries = false}}}) {
    for (const auto& [name, value] : trained(options)) {
      for (int64_t i = 0; i < value.numel(); ++i) {
        EXPECT_NEAR(value.at(i), expected.at(name).at(i),
                    1e-10 * (1 + std::abs(expected.at(name).at(i))))
            << name;
      }
    }
  }
}

/// A scan over rows in whose steps a scan over columns runs.
TEST(Scan, RunsWithinAScan) {
  Program net("net");
  const Value x = transpose(net.data("x", {kBatch, 2, 3}, f64), {.perm = {1, 2, 0}});
  const Value w = net.parameter("w", {}, Init::constant(1), {.dtype = f64});
  const Value zero = sum(sum(x, {.axes = {0}}), {.axes = {0}}) * 0.0;
  const ScanResult rows = scan({zero}, {x}, [&](const Values& carry, const Values& row) {
    const ScanResult columns = scan({carry[0]}, {row[0]}, [&](const Values& c, const Values& e) {
      return ScanStep{.carries = {c[0] * w + e[0]}};
    });
    return ScanStep{.carries = {columns.carries[0] * w}, .collected = columns.carries};
  });
  const Value loss = sum(rows.carries[0]) + sum(rows.collected[0]);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  const Tensor xs = numbers({2, 2, 3});
  const auto loss_of = [&](double weight) {
    double total = 0;
    for (int64_t n = 0; n < 2; ++n) {
      double c = 0;
      for (int64_t i = 0; i < 6; ++i) {
        c = c * weight + xs.at(n * 6 + i);
        if (i % 3 != 2) continue;
        total += c;
        c *= weight;
      }
      total += c;
    }
    return total;
  };
  Executor exe(net, cpu());
  EXPECT_NEAR(exe.run({{"x", xs}})["loss"].item(), loss_of(1), 1e-12);
  const double slope = (loss_of(1 + 1e-5) - loss_of(1 - 1e-5)) / 2e-5;
  EXPECT_NEAR(1 - exe.parameter("w").item(), slope, 1e-7);
}

TEST(Scan, IsReadFromAFile) {
  const Program net = recurrent({.reverse = true});
  const TempDir folder;
  for (const char* name : {"net.fir", "net.fluid"}) {
    net.save(folder.path() + "/" + name);
    EXPECT_EQ(Program::load(folder.path() + "/" + name).text(), net.text());
  }
}

TEST(Scan, TrainsInMixedPrecision) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 6, 16}, f32);
  const Value y =
      mean(square(lstm(x, {.units = 16, .layers = 2, .bidirectional = true}).output - 0.3));
  net.output("loss", y);
  minimize(y, Adam{.lr = 0.02});
  const Tensor xs = numbers({8, 6, 16}).cast(f32);
  double f32_loss = 0;
  for (const bool half : {false, true}) {
    ExecutorOptions options;
    if (half) options.precision.amp = AmpOptions{.level = AmpLevel::o2};
    Executor exe(net, cpu(), options);
    double loss = 0;
    for (int step = 0; step < 30; ++step) loss = exe.run({{"x", xs}})["loss"].item();
    if (half) {
      EXPECT_NEAR(loss, f32_loss, 0.1 * f32_loss);
    } else {
      f32_loss = loss;
    }
  }
}

/// A product that leaves the loop mixes steps and samples in its rows. Parts of a batch still add
/// up.
TEST(Scan, TrainsInMicroBatchesWithHoistedProducts) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4, 16}, f64);
  const Value loss = mean(square(lstm(x, {.units = 16}).output - 0.3));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  std::vector<Tensor> trained;
  for (const int64_t parts : {1, 2}) {
    Executor exe(net, cpu(), {.micro_batches = parts});
    exe.run({{"x", numbers({64, 4, 16})}});
    trained.push_back(exe.parameter("lstm0.layer0.w").copy());
  }
  for (int64_t i = 0; i < trained[0].numel(); ++i) {
    EXPECT_NEAR(trained[0].at(i), trained[1].at(i), 1e-12);
  }
}

/// The steps read indices, elements of 8 bytes, which are copied, and produce the value.
TEST(Scan, IsSearchedForNonFiniteValues) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3, 2}, f32), w = net.parameter("w", {}, Init::constant(1));
  const Value times = arange(net.ir().main(), {.type = Type{i64, {3}, {}}});
  const Value loss = mean(scan({sum(x, {.axes = {1}})}, {transpose(x, {.perm = {1, 0, 2}}), times},
                               [&](const Values& carry, const Values& element) {
                                 const Value t = cast(element[1], f32);
                                 return ScanStep{.carries = {log(element[0] * w - t) + carry[0]}};
                               })
                              .carries[0]);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1});
  Executor exe(net, cpu(), {.debug = {.check_finite = true}});
  Tensor ones(f32, {2, 3, 2});
  for (float& v : ones.as<float>()) v = 1;
  const Batch batch{.size = 2, .columns = {{"x", ones}}};
  exe.run(batch);
  const std::string found = exe.first_nonfinite(batch);
  EXPECT_NE(found.find("log"), std::string::npos) << found;
}

/// In half precision, a backward step reads the values that the forward step stored.
TEST(Scan, KeepsHalfPrecisionMaximaForTheirGradients) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3, 8}, f32);
  const Value w = net.parameter("w", {8, 8}, Init::normal(0, 0.1));
  const ScanResult result =
      scan({sum(x, {.axes = {1}})}, {transpose(x, {.perm = {1, 0, 2}})},
           [&](const Values& carry, const Values& element) {
             const Value h = tanh(cast(matmul(carry[0], w) + element[0], bf16));
             const Value top = cast(max(h, {.axes = {1}, .keep_dims = true}), f32);
             return ScanStep{.carries = {carry[0]}, .collected = {top}};
           });
  net.output("loss", sum(result.collected[0]));
  net.output("gradient", gradients(sum(result.collected[0]), {w}).at(0));
  Executor exe(net, cpu());
  const Tensor gradient = exe.eval({{"x", numbers({4, 3, 8}).cast(f32)}})["gradient"].copy();
  double size = 0;
  for (int64_t i = 0; i < gradient.numel(); ++i) size += std::abs(gradient.at(i));
  EXPECT_GT(size, 0.1);
}

}  // namespace
}  // namespace fluid::scan_test
