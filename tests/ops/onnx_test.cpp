// ONNX's own operator vectors, evaluated by our ops' definitions: a check from outside. They are
// not part of the tree: FLUID_DATA or ../shared/data names the folder that holds them.

#include "tests/support/onnx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ops/operators.h"
#include "ops/record.h"
#include "tests/support/data_folder.h"
#include "tests/support/interpreter.h"

namespace fluid::testing::onnx_test {
namespace {

using Json = nlohmann::json;
using List = std::vector<int64_t>;

double number(const Json& value) {
  if (!value.is_string()) return value.is_boolean() ? value.get<bool>() : value.get<double>();
  const std::string text = value;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

/// Empty for dtypes that we do not have.
std::optional<Tensor> tensor_of(const Json& json) {
  const std::optional<DType> dtype = parse_dtype(json.at("dtype").get<std::string>());
  if (!dtype) return std::nullopt;
  Tensor wide(f64, json.at("shape").get<List>());
  for (size_t i = 0; i < json.at("data").size(); ++i) {
    wide.as<double>()[i] = number(json.at("data")[i]);
  }
  return *dtype == f64 ? wide : wide.cast(*dtype);
}

/// The node's inputs, fed or constant, in its order; empty where one is left out, absent where a
/// dtype is not ours.
std::optional<std::vector<Tensor>> inputs_of(const Json& test) {
  std::vector<Tensor> inputs;
  for (const Json& name : test.at("nodes")[0].at("inputs")) {
    if (name == "") {
      inputs.emplace_back(f32, List{0});
      continue;
    }
    const Json& constants = test.at("initializers");
    const Json* found = constants.contains(name) ? &constants.at(name) : nullptr;
    for (const Json& input : test.at("inputs")) {
      if (input.at("name") == name) found = &input;
    }
    const std::optional<Tensor> tensor = found != nullptr ? tensor_of(*found) : std::nullopt;
    if (!tensor) return std::nullopt;
    inputs.push_back(*tensor);
  }
  return inputs;
}

void expect_near(const Json& test, const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.shape(), wanted.shape()) << test.at("name");
  const double relative = test.value("rtol", 1e-3), absolute = test.value("atol", 1e-7);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.at(i), w = wanted.at(i);
    const bool equal = g == w || (std::isnan(g) && std::isnan(w));
    EXPECT_TRUE(equal || std::abs(g - w) <= absolute + relative * std::abs(w))
        << test.at("name") << " element " << i << ": " << g << ", not " << w;
  }
}

void expect_vector(const Json& test, const OnnxUse& use) {
  ir::Program program("onnx");
  Values operands;
  NamedTensors sources;
  const auto feed = [&](const Tensor& tensor) {
    const std::string name = std::to_string(sources.size());
    Type type{tensor.dtype(), Shape(tensor.shape().begin(), tensor.shape().end()), {}};
    sources[name] = tensor;
    return record_source(program.main(), "data", name, type, {}, {});
  };
  for (const Tensor& t : use.operands) operands.push_back(feed(t));
  Values results;
  if (use.layer) {
    sources.insert(use.parameters.begin(), use.parameters.end());
    results = use.layer(operands);
  } else {
    results = record(program.main(), use.op, operands, use.attrs, {});
    const auto& inference = op_named(use.op).inference;
    if (inference) results = inference(ExpandCtx(*results[0].op()));
  }
  if (use.bias) {
    Shape per_channel(results[0].shape().size() - 1, Dim(1));
    per_channel[0] = use.bias->numel();
    results[0] = results[0] + reshape(feed(*use.bias), per_channel);
  }
  for (size_t r = 0; r < use.results; ++r) {
    program.main().outputs.push_back({std::to_string(r), results.at(r)});
  }
  const NamedTensors outputs = interpret(program.main(), sources).outputs;
  for (size_t r = 0; r < use.results; ++r) {
    expect_near(test, outputs.at(std::to_string(r)), tensor_of(test.at("outputs")[r]).value());
  }
}

std::string read_vectors() {
  std::string text;
  gzFile file = gzopen((data_folder() + "/onnx_node_tests.jsonl.gz").c_str(), "rb");
  if (file == nullptr) return text;
  std::vector<char> chunk(1 << 16);
  for (int n = 0; (n = gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  gzclose(file);
  return text;
}

TEST(Onnx, OperatorVectors) {
  const std::string text = read_vectors();
  if (text.empty()) GTEST_SKIP() << "no onnx_node_tests.jsonl.gz in FLUID_DATA or ../shared/data";
  int checked = 0;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const Json test = Json::parse(text.begin() + static_cast<ptrdiff_t>(at),
                                  text.begin() + static_cast<ptrdiff_t>(end));
    const Json& nodes = test.at("nodes");
    if (nodes.size() != 1 || !tensor_of(test.at("outputs")[0])) continue;
    const std::optional<std::vector<Tensor>> inputs = inputs_of(test);
    const std::optional<OnnxUse> use = inputs ? use_of(nodes[0], *inputs) : std::nullopt;
    if (!use) continue;
    SCOPED_TRACE(test.at("name").get<std::string>());
    expect_vector(test, *use);
    ++checked;
  }
  EXPECT_GE(checked, 370);
  RecordProperty("vectors", checked);
}

}  // namespace
}  // namespace fluid::testing::onnx_test
