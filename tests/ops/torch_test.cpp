// Layers, losses and optimizers against PyTorch's results, which tests/golden/ops.py and
// op_attributes.py recorded.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/record.h"
#include "tests/support/golden.h"
#include "tests/support/golden_attrs.h"
#include "tests/support/interpreter.h"

namespace fluid::torch_test {
namespace {

using Json = nlohmann::json;
using testing::golden_attrs;
using testing::NamedTensors;
using Numbers = std::vector<double>;

/// The lines that tests/golden/ops.py wrote.
const Json& golden() {
  static const Json json = testing::golden_json("ops.json");
  return json;
}

// The script's numbers(shape, seed, levels).
Tensor numbers(const std::vector<int64_t>& shape, int64_t seed, int64_t levels = 1009) {
  Tensor t(f64, shape);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t level = (i * 7919 + seed * 104729) % levels;
    t.as<double>()[static_cast<size_t>(i)] =
        static_cast<double>(level) / static_cast<double>(levels) - 0.5;
  }
  return t;
}

Shape shape_of(const Tensor& t) { return Shape(t.shape().begin(), t.shape().end()); }

double number_of(const Json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

Numbers numbers_of(const Json& list) {
  Numbers all;
  for (const Json& value : list) all.push_back(number_of(value));
  return all;
}

void expect_near(const Tensor& actual, const Numbers& expected, const std::string& what) {
  ASSERT_EQ(actual.numel(), static_cast<int64_t>(expected.size())) << what;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double e = expected[static_cast<size_t>(i)];
    if (std::isfinite(e)) {
      ASSERT_NEAR(actual.at(i), e, 1e-11 * std::max(1.0, std::abs(e))) << what << ", element " << i;
    } else {  // nan and infinities print alike when they are alike
      ASSERT_EQ(std::to_string(std::isnan(e) ? NAN : e),
                std::to_string(std::isnan(actual.at(i)) ? NAN : actual.at(i)))
          << what << ", element " << i;
    }
  }
}

// A program's inputs: data sources and what is fed to them.
struct Feeds {
  ir::Graph& graph;
  NamedTensors tensors;

  Value add(const Tensor& t) {
    const std::string name = "x" + std::to_string(tensors.size());
    tensors.insert({name, t});
    return record_source(graph, "data", name, {t.dtype(), shape_of(t), {}}, {}, {});
  }
};

/// Integers or bools in nested lists.
Tensor labels_of(const Json& labels) {
  std::vector<int64_t> shape;
  const Json* first = &labels;
  for (; first->is_array(); first = &first->at(0)) {
    shape.push_back(static_cast<int64_t>(first->size()));
  }
  Tensor t(i64, shape);
  auto element = t.as<int64_t>().begin();
  const std::function<void(const Json&)> add = [&](const Json& part) {
    if (part.is_boolean()) *element++ = part.get<bool>();
    if (part.is_number()) *element++ = part.get<int64_t>();
    if (part.is_array()) std::ranges::for_each(part, add);
  };
  add(labels);
  return first->is_boolean() ? t.cast(boolean) : t;
}

/// The gradients of sum(y * numbers(shape, 99)) at the operands of y's op.
Values gradients_of(Value y, Feeds& feeds) {
  std::vector<int64_t> extents;
  for (const Dim& d : y.shape()) extents.push_back(d.size);
  Values dout(y.op()->results.size());
  dout[0] = feeds.add(numbers(extents, 99));
  return std::get<GradFn>(*def_of(*y.op()).grad)(GradCtx(*y.op(), dout));
}

void run_case(const Json& c) {
  SCOPED_TRACE(c.at("op").get<std::string>() + " " + c.at("shapes").dump() + c.at("attrs").dump());
  ir::Program program("case");
  ir::Graph& graph = program.main();
  Feeds feeds{graph, {}};
  Values in;
  for (const Json& shape : c.at("shapes")) {
    Tensor x = numbers(shape, static_cast<int64_t>(in.size()) + 1, c.at("levels"));
    if (c.contains("inputs")) {
      std::ranges::copy(numbers_of(c.at("inputs").at(in.size())), x.as<double>().begin());
    }
    in.push_back(feeds.add(
        c.contains("dtype") ? x.cast(*parse_dtype(c.at("dtype").get<std::string>())) : x));
  }
  const auto label_at = c.value("label_at", static_cast<ptrdiff_t>(in.size()));
  if (c.contains("label")) {
    in.insert(in.begin() + label_at, feeds.add(labels_of(c.at("label"))));
  }
  const Value y = record(graph, c.at("op").get<std::string>(), in, golden_attrs(c.at("attrs")), {})
                      .at(c.value("result", size_t{0}));
  graph.outputs.push_back({"y", y});
  const Json expected = c.value("grads", Json::array());
  Values gradients;
  if (!expected.empty()) gradients = gradients_of(y, feeds);
  if (c.contains("label") && !expected.empty()) gradients.erase(gradients.begin() + label_at);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(static_cast<bool>(gradients.at(i)), !expected.at(i).is_null());
    if (gradients[i]) graph.outputs.push_back({"grad " + std::to_string(i), gradients[i]});
  }
  const NamedTensors out = testing::interpret(graph, feeds.tensors).outputs;
  expect_near(out.at("y"), numbers_of(c.at("y")), "result");
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string name = "grad " + std::to_string(i);
    if (gradients[i]) expect_near(out.at(name), numbers_of(expected.at(i)), name);
  }
}

TEST(Torch, LayersAndLosses) {
  for (const Json& c : golden().at("cases")) run_case(c);
}

TEST(Torch, Attributes) {
  for (const Json& c : testing::golden_json("op_attributes.json").at("cases")) run_case(c);
}

Tensor scalar_of(DType dtype, double value) {
  return Tensor::of<double>({}, {{value}}).cast(dtype);
}

// One step on `state` (the parameter, then the optimizer's variables), in place.
void run_optimizer_step(const Json& c, int64_t step, std::vector<Tensor>& state) {
  ir::Program program("step");
  ir::Graph& graph = program.main();
  Feeds feeds{graph, {}};
  Values in = {feeds.add(state[0]), feeds.add(numbers({7}, 10 + step)),
               feeds.add(scalar_of(f64, c.at("lr"))),
               feeds.add(scalar_of(i64, static_cast<double>(step)))};
  for (size_t s = 1; s < state.size(); ++s) in.push_back(feeds.add(state[s]));
  const Values out =
      record(graph, c.at("op").get<std::string>(), in, golden_attrs(c.at("attrs")), {});
  for (const auto& [result, operand] : std::get<Updates>(*def_of(*out[0].op()).effects).results) {
    if (static_cast<size_t>(operand) >= in.size()) break;
    graph.outputs.push_back({std::to_string(operand), out.at(static_cast<size_t>(result))});
  }
  const NamedTensors updated = testing::interpret(graph, feeds.tensors).outputs;
  state[0] = updated.at("0");
  for (size_t s = 1; s < state.size(); ++s) state[s] = updated.at(std::to_string(s + 3));
}

TEST(Torch, Optimizers) {
  for (const Json& c : golden().at("optimizers")) {
    SCOPED_TRACE(c.at("op").get<std::string>() + " " + c.at("attrs").dump());
    const OpDef& optimizer = op_named(c.at("op").get<std::string>());
    const Attrs settings = complete_attrs(optimizer, golden_attrs(c.at("attrs")), {});
    const size_t states = optimizer_states(optimizer, settings).size();
    std::vector<Tensor> state = {numbers({7}, 1)};
    state.resize(1 + states, Tensor(f64, {7}));
    const auto params = c.at("params").get<std::vector<Numbers>>();
    for (size_t step = 0; step < params.size(); ++step) {
      run_optimizer_step(c, static_cast<int64_t>(step), state);
      expect_near(state[0], params[step], "after step " + std::to_string(step));
    }
  }
}

}  // namespace
}  // namespace fluid::torch_test
