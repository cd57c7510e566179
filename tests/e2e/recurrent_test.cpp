// Recurrent layers compared with PyTorch's: outputs, final states and gradients
// (tests/golden/recurrent.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/golden.h"

namespace fluid::recurrent_test {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

constexpr int64_t kSamples = 3, kLength = 4, kFeatures = 3, kUnits = 3;
/// Streams of random numbers. Parameter k has stream k.
constexpr uint64_t kInput = 100, kInitial = 110, kOutputWeights = 130, kStateWeights = 140;

Json golden_cases() {
  const Json golden = Json::parse(std::ifstream(FLUID_SOURCE_DIR "/tests/golden/recurrent.json"));
  const Json sizes = {{"N", kSamples}, {"T", kLength}, {"features", kFeatures}, {"H", kUnits}};
  EXPECT_EQ(golden.at("sizes"), sizes);
  return golden.at("cases");
}

/// The script's numbers(stream, shape), scaled.
Tensor numbers(uint64_t stream, const std::vector<int64_t>& shape, double fan_in = 1) {
  Tensor t(f64, shape);
  std::ranges::copy(testing::golden_parameter(stream, t.numel(), fan_in), t.as<double>().begin());
  return t;
}

/// A layer, and the loss of which PyTorch's gradients are.
class Work {
 public:
  explicit Work(const Json& golden) : golden_(golden) {
    const Value x = feed("x", numbers(kInput, {kSamples, kLength, kFeatures}));
    leaves_["grad_x"].push_back(x);
    Recurrent layer{.units = kUnits,
                    .layers = golden.at("layers"),
                    .bidirectional = golden.at("bidirectional"),
                    .bias = golden.at("bias")};
    for (size_t i = 0; i < golden.at("grad_initial").size(); ++i) {
      layer.initial.push_back(
          feed("initial" + std::to_string(i), numbers(kInitial + i, {kSamples, kUnits})));
    }
    leaves_["grad_initial"] = layer.initial;
    const Numbers lengths = golden.at("lengths");
    if (!lengths.empty()) {
      layer.lengths = feed("lengths", Tensor::of<double>({kSamples}, std::span(lengths)).cast(i64));
    }
    result_ = apply(x, layer);
    for (const auto& op : net_.ir().main().ops) {
      if (op->name == "param") leaves_["grad_parameters"].push_back(op->result());
    }
    loss_ = weighted(result_.output, "output_weights", kOutputWeights);
    for (size_t i = 0; i < result_.states.size(); ++i) {
      loss_ = loss_ +
              weighted(result_.states[i], "state_weights" + std::to_string(i), kStateWeights + i);
    }
  }

  Program& net() { return net_; }
  Value loss() const { return loss_; }
  const RecurrentResult& result() const { return result_; }
  const Batch& batch() const { return batch_; }
  /// Replaces the data of feed `name`.
  void set_feed(const std::string& name, const Tensor& t) {
    for (auto& [column, tensor] : batch_.columns) {
      if (column == name) tensor = t;
    }
  }
  /// The values of which `key` of the golden case holds gradients.
  const Values& leaves(const std::string& key) { return leaves_[key]; }

  Executor executor() const {
    Executor exe(net_, cpu());
    uint64_t k = 0;
    for (const auto& op : net_.ir().main().ops) {
      if (op->name != "param") continue;
      const std::vector<int64_t> shape = exe.parameter(op->symbol).shape();
      exe.set_parameter(op->symbol, numbers(k++, shape, kUnits));
    }
    return exe;
  }

 private:
  Value feed(const std::string& name, const Tensor& t) {
    batch_.size = kSamples;
    batch_.columns.emplace_back(name, t);
    Shape shape(t.shape().begin(), t.shape().end());
    shape[0] = kBatch;
    return net_.data(name, shape, t.dtype());
  }

  RecurrentResult apply(Value x, Recurrent layer) const {
    const std::string kind = golden_.at("kind");
    layer.relu = kind == "rnn_relu";
    return kind == "gru" ? gru(x, layer) : kind == "lstm" ? lstm(x, layer) : rnn(x, layer);
  }

  Value weighted(Value v, const std::string& name, uint64_t stream) {
    std::vector<int64_t> shape = {kSamples};
    for (size_t d = 1; d < v.shape().size(); ++d) shape.push_back(v.shape()[d].size);
    return sum(v * feed(name, numbers(stream, shape)));
  }

  const Json& golden_;
  Program net_{"recurrent"};
  Batch batch_;
  RecurrentResult result_;
  Value loss_;
  std::map<std::string, Values> leaves_;
};

std::string name_of(const Json& golden) {
  Json options;
  for (const char* key : {"kind", "layers", "bidirectional", "bias", "initial", "lengths"}) {
    options[key] = golden.at(key);
  }
  return options.dump();
}

void expect_near(const Tensor& actual, const Numbers& expected, const std::string& what) {
  ASSERT_EQ(actual.numel(), static_cast<int64_t>(expected.size())) << what;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double e = expected[static_cast<size_t>(i)];
    EXPECT_NEAR(actual.at(i), e, 1e-9 * std::max(1.0, std::abs(e))) << what << "[" << i << "]";
  }
}

TEST(Recurrent, ResultsAndGradientsArePyTorchs) {
  for (const Json& golden : golden_cases()) {
    SCOPED_TRACE(name_of(golden));
    Work work(golden);
    std::map<std::string, Numbers> expected;
    const auto add_output = [&](const std::string& key, size_t i, Value v) {
      const Json& numbers = golden.at(key);
      const std::string name = key + std::to_string(i);
      work.net().output(name, v);
      expected[name] = (numbers.at(0).is_array() ? numbers.at(i) : numbers).get<Numbers>();
    };
    add_output("output", 0, work.result().output);
    ASSERT_EQ(work.result().states.size(), golden.at("states").size());
    for (size_t i = 0; i < work.result().states.size(); ++i) {
      add_output("states", i, work.result().states[i]);
    }
    for (const char* key : {"grad_x", "grad_initial", "grad_parameters"}) {
      const Values& xs = work.leaves(key);
      if (xs.empty()) continue;
      const Values grads = gradients(work.loss(), xs);
      for (size_t i = 0; i < grads.size(); ++i) add_output(key, i, grads[i]);
    }
    Executor exe = work.executor();
    const OutputViews out = exe.predict(work.batch());
    for (const auto& [name, numbers] : expected) expect_near(out[name], numbers, name);
  }
}

/// A step of SGD with a learning rate of 1 subtracts the gradient.
TEST(Recurrent, TrainingStepsSubtractPyTorchsGradients) {
  for (const Json& golden : golden_cases()) {
    SCOPED_TRACE(name_of(golden));
    Work work(golden);
    work.net().output("loss", work.loss());
    minimize(work.loss(), SGD{.lr = 1});
    Executor exe = work.executor();
    const Values& parameters = work.leaves("grad_parameters");
    std::vector<Tensor> before;
    for (const Value& p : parameters) before.push_back(exe.parameter(p.op()->symbol).copy());
    exe.run(work.batch()).wait();
    ASSERT_EQ(parameters.size(), golden.at("grad_parameters").size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string& name = parameters[i].op()->symbol;
      Tensor change = before[i].copy();
      const Tensor after = exe.parameter(name);
      for (int64_t e = 0; e < change.numel(); ++e) {
        change.as<double>()[static_cast<size_t>(e)] -= after.at(e);
      }
      expect_near(change, golden.at("grad_parameters").at(i), name);
    }
  }
}

/// The outputs "output" and "states0"... of the layer.
void add_results(Work& work) {
  work.net().output("output", work.result().output);
  for (size_t i = 0; i < work.result().states.size(); ++i) {
    work.net().output("states" + std::to_string(i), work.result().states[i]);
  }
}

TEST(Recurrent, ResultsDoNotDependOnElementsPastTheLength) {
  for (const Json& golden : golden_cases()) {
    const std::vector<int64_t> lengths = golden.at("lengths");
    if (lengths.empty()) continue;
    SCOPED_TRACE(name_of(golden));
    Work work(golden);
    add_results(work);
    Tensor x = numbers(kInput, {kSamples, kLength, kFeatures});
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t sample = i / kFeatures / kLength, at = i / kFeatures % kLength;
      const bool past = at >= lengths.at(static_cast<size_t>(sample));
      if (past) x.as<double>()[static_cast<size_t>(i)] = NAN;
    }
    work.set_feed("x", x);
    Executor exe = work.executor();
    const OutputViews out = exe.predict(work.batch());
    expect_near(out["output"], golden.at("output"), "output");
    for (size_t i = 0; i < work.result().states.size(); ++i) {
      const std::string name = "states" + std::to_string(i);
      expect_near(out[name], golden.at("states").at(i), name);
    }
  }
}

/// The output of two layers in a training step that changes no parameter, and in a prediction.
struct TwoLayers {
  Tensor trained, predicted;
};

TwoLayers outputs_of_two_layers(double dropout) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kLength, kFeatures}, f64);
  const Value y = gru(x, {.units = kUnits, .layers = 2, .dropout = dropout}).output;
  net.output("y", y);
  minimize(mean(y), SGD{.lr = 0});
  Executor exe(net, cpu(), {.batch = kSamples});
  uint64_t k = 0;
  for (const std::string& name : exe.parameters()) {
    exe.set_parameter(name, numbers(k++, exe.parameter(name).shape(), kUnits));
  }
  Batch batch{.size = kSamples};
  batch.columns.emplace_back("x", numbers(kInput, {kSamples, kLength, kFeatures}));
  TwoLayers outputs;
  outputs.trained = exe.run(batch)["y"].copy();
  outputs.predicted = exe.predict(batch)["y"].copy();
  return outputs;
}

/// The output of the second layer alone, in a prediction with an input of zeros.
Tensor output_of_second_layer_at_zero() {
  Program net("net");
  net.output("y", gru(net.data("x", {kBatch, kLength, kUnits}, f64), {.units = kUnits}).output);
  Executor exe(net, cpu());
  uint64_t k = exe.parameters().size();
  for (const std::string& name : exe.parameters()) {
    exe.set_parameter(name, numbers(k++, exe.parameter(name).shape(), kUnits));
  }
  Batch batch{.size = kSamples};
  batch.columns.emplace_back("x", Tensor(f64, {kSamples, kLength, kUnits}));
  return exe.predict(batch)["y"].copy();
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

TEST(Recurrent, DropoutReplacesTheInputOfTheNextLayerInTrainingOnly) {
  const TwoLayers without = outputs_of_two_layers(0), half = outputs_of_two_layers(0.5),
                  all = outputs_of_two_layers(1);
  EXPECT_TRUE(equal(without.trained, without.predicted));
  EXPECT_TRUE(equal(half.predicted, without.predicted));
  EXPECT_TRUE(equal(all.predicted, without.predicted));
  EXPECT_FALSE(equal(half.trained, without.trained));
  EXPECT_FALSE(equal(half.trained, all.trained));
  const Tensor at_zero = output_of_second_layer_at_zero();  // not zero: there is a bias
  ASSERT_EQ(all.trained.shape(), at_zero.shape());
  for (int64_t i = 0; i < at_zero.numel(); ++i) {
    EXPECT_NE(at_zero.at(i), 0);
    EXPECT_NEAR(all.trained.at(i), at_zero.at(i), 1e-14);
  }
}

TEST(Recurrent, EmptySequencesKeepTheInitialStates) {
  for (const Json& golden : golden_cases()) {
    if (golden.at("lengths").empty() || !golden.at("initial")) continue;
    SCOPED_TRACE(name_of(golden));
    Work work(golden);
    add_results(work);
    work.set_feed("lengths", Tensor(i64, {kSamples}));
    Executor exe = work.executor();
    const OutputViews out = exe.predict(work.batch());
    for (int64_t i = 0; i < out["output"].numel(); ++i) EXPECT_EQ(out["output"].at(i), 0);
    for (size_t i = 0; i < work.result().states.size(); ++i) {
      const Tensor initial = numbers(kInitial + i, {kSamples, kUnits});
      const Tensor& state = out["states" + std::to_string(i)];
      for (int64_t e = 0; e < initial.numel(); ++e) EXPECT_EQ(state.at(e), initial.at(e));
    }
  }
}

}  // namespace
}  // namespace fluid::recurrent_test
