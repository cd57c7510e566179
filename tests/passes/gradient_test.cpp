// Compares the gradients of a whole network, after the training passes, with finite differences of
// its loss.

#include <gtest/gtest.h>

#include <cmath>

#include "ops/source_kind.h"
#include "passes/pass.h"
#include "tests/support/interpreter.h"
#include "tests/support/plain_target.h"
#include "tests/support/small_programs.h"

namespace fluid::testing::gradient_test {
namespace {

constexpr int64_t kSamples = 2;

const ConvNet kNet{.size = 16,
                   .first = 2,
                   .second = 3,
                   .hidden = 4,
                   .dropout = 0.25,
                   .optimizer = "sgd",
                   .dtype = DType::f64};

/// The passes before kernels are formed.
std::vector<Pass> passes_before_fusion(const Options& options) {
  std::vector<Pass> passes;
  for (const Pass& pass : pipeline(options)) {
    if (pass.name == "fuse") break;
    passes.push_back(pass);
  }
  return passes;
}

/// Values without ties or symmetry, of the right size.
Tensor some_tensor(const Type& type, size_t salt) {
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.at(kSamples));
  Tensor t(type.dtype, shape);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double x = std::sin(static_cast<double>(i + 1) * 12.9898 + static_cast<double>(salt) * 7);
    if (type.dtype == f64) t.as<double>()[static_cast<size_t>(i)] = x;
    if (type.dtype == i64) t.as<int64_t>()[static_cast<size_t>(i)] = (i * 3 + 1) % 10;
  }
  return t;
}

NamedTensors sources_of(const ir::Graph& graph) {
  NamedTensors sources;
  for (const auto& op : graph.ops) {
    if (source_kind(*op) == SourceKind::none) continue;
    sources[op->symbol] = some_tensor(op->results[0].type, sources.size());
  }
  return sources;
}

Interpreted step(const NamedTensors& sources) {
  const auto program = conv_net(kNet);
  const Options options{.mode = Mode::train, .batch = kSamples};
  run_passes(*program, passes_before_fusion(options), options, PlainTarget());
  return interpret(program->main(), sources, {.batch = kSamples, .definition = {}});
}

TEST(Gradients, OfAWholeNetworkAreItsFiniteDifferences) {
  const auto recorded = conv_net(kNet);
  NamedTensors sources = sources_of(recorded->main());
  sources["update"] = Tensor(i64, {});
  const Interpreted base = step(sources);
  ASSERT_FALSE(base.index_error);
  const double lr = 0.02, h = 1e-6;
  for (const auto& op : recorded->main().ops) {
    if (source_kind(*op) != SourceKind::parameter) continue;
    const std::string& name = op->symbol;
    ASSERT_TRUE(base.stores.contains(name)) << name;
    const Tensor original = sources[name].copy();
    const size_t last = static_cast<size_t>(original.numel()) - 1;
    for (const size_t i : {size_t{0}, last}) {
      auto loss_at = [&](double offset) {
        sources[name] = original.copy();
        sources[name].as<double>()[i] += offset;
        return step(sources).outputs.at("loss").item();
      };
      const double expected = (loss_at(h) - loss_at(-h)) / (2 * h);
      const auto at = static_cast<int64_t>(i);
      const double gradient = (original.at(at) - base.stores.at(name).at(at)) / lr;
      EXPECT_NEAR(gradient, expected, 1e-6 + 1e-5 * std::abs(expected)) << name << "[" << i << "]";
    }
    sources[name] = original;
  }
}

TEST(Gradients, AStepCountsItselfAndItsRandomNumbers) {
  const auto recorded = conv_net(kNet);
  NamedTensors sources = sources_of(recorded->main());
  sources["update"] = Tensor(i64, {});
  const Interpreted after = step(sources);
  EXPECT_EQ(after.stores.at("update").at(0), 1);
  const Tensor& before = sources.at("rng");
  EXPECT_EQ(after.stores.at("rng").at(0), before.at(0));
  EXPECT_EQ(after.stores.at("rng").at(1), before.at(1) + 1);
  EXPECT_EQ(after.stores.at("rng").at(2), before.at(2));
}

}  // namespace
}  // namespace fluid::testing::gradient_test
