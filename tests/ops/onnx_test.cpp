// ONNX's own operator vectors, evaluated by our ops' definitions: a check from outside. They are
// not part of the tree: FLUID_DATA or ../shared/data names the folder that holds them.

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ops/record.h"
#include "tests/support/interpreter.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;
using List = std::vector<int64_t>;

/// The ops of equal meaning, by ONNX's name.
const std::map<std::string, std::string> kOps = {
    {"Abs", "abs"},         {"Add", "add"},
    {"And", "logical_and"}, {"ArgMax", "argmax"},
    {"Concat", "concat"},   {"Div", "div"},
    {"Equal", "equal"},     {"Erf", "erf"},
    {"Exp", "exp"},         {"Flatten", "flatten"},
    {"Gelu", "gelu"},       {"Greater", "greater"},
    {"Less", "less"},       {"GreaterOrEqual", "greater_equal"},
    {"Log", "log"},         {"LessOrEqual", "less_equal"},
    {"MatMul", "matmul"},   {"LogSoftmax", "log_softmax"},
    {"Max", "maximum"},     {"Min", "minimum"},
    {"Mul", "mul"},         {"Neg", "neg"},
    {"Not", "logical_not"}, {"Or", "logical_or"},
    {"Pow", "pow"},         {"ReduceMax", "max"},
    {"ReduceMin", "min"},   {"ReduceMean", "mean"},
    {"ReduceSum", "sum"},   {"Relu", "relu"},
    {"Sigmoid", "sigmoid"}, {"Softmax", "softmax"},
    {"Sqrt", "sqrt"},       {"Sub", "sub"},
    {"Tanh", "tanh"},       {"Transpose", "transpose"},
    {"Where", "select"}};

double number(const Json& value) {
  if (!value.is_string()) return value.is_boolean() ? value.get<bool>() : value.get<double>();
  const std::string text = value;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

/// Empty for dtypes that we do not have.
std::optional<Tensor> tensor_of(const Json& json) {
  const std::optional<DType> dtype = dtype_named(json.at("dtype").get<std::string>());
  if (!dtype) return std::nullopt;
  Tensor wide(f64, json.at("shape").get<List>());
  for (size_t i = 0; i < json.at("data").size(); ++i) {
    wide.as<double>()[i] = number(json.at("data")[i]);
  }
  return *dtype == f64 ? wide : wide.cast(*dtype);
}

bool is_reduction(const std::string& op) { return op.starts_with("Reduce"); }

/// Whether the vector asks for what our op of that name does: no broadcasting of old, no mixed or
/// integer powers, no vectors in matmul, no reduction of nothing, and exactly two operands for the
/// binary ops.
bool applies(const Json& node, const std::vector<Tensor>& inputs) {
  const std::string op = node.at("op");
  for (const Tensor& t : inputs) {
    const bool index = &t != &inputs[0] && is_reduction(op);
    if (!index && op != "Where" && t.dtype() != inputs[0].dtype()) return false;
    if (op == "MatMul" && t.shape().size() < 2) return false;
  }
  const Json& attrs = node.at("attrs");
  if (attrs.contains("broadcast")) return false;
  if (op == "ArgMax") return !attrs.contains("select_last_index");
  if (op == "Flatten") return attrs.value("axis", 1) == 1;
  if (is_reduction(op))
    return !attrs.contains("noop_with_empty_axes") && inputs[0].numel() > 0 &&
           is_float(inputs[0].dtype());
  if (op == "Pow" || op == "Div" || op == "Abs") return is_float(inputs[0].dtype());
  return (op != "Max" && op != "Min") || inputs.size() == 2;
}

Attrs attrs_of(const Json& node, std::vector<Tensor>& inputs) {
  const std::string op = node.at("op");
  const Json& given = node.at("attrs");
  Attrs attrs;
  if (given.contains("perm")) attrs.set("perm", given.at("perm").get<List>());
  if (given.contains("approximate"))
    attrs.set("approximate", given.at("approximate").get<std::string>());
  if (given.contains("axis")) attrs.set("axis", given.at("axis").get<int64_t>());
  if (op == "ArgMax" && !given.contains("axis")) attrs.set("axis", int64_t{0});
  if (op == "ArgMax" || is_reduction(op)) attrs.set("keep_dims", given.value("keepdims", 1) != 0);
  if (!is_reduction(op)) return attrs;
  List axes = given.value("axes", List{});
  if (inputs.size() > 1) {
    for (int64_t i = 0; i < inputs[1].numel(); ++i)
      axes.push_back(inputs[1].as<int64_t>()[static_cast<size_t>(i)]);
  }
  inputs.resize(1);
  attrs.set("axes", axes);
  return attrs;
}

void expect_vector(const Json& test, std::vector<Tensor> inputs) {
  const Json& node = test.at("nodes")[0];
  const Attrs attrs = attrs_of(node, inputs);
  ir::Program program("onnx");
  Values operands;
  NamedTensors sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = std::to_string(i);
    Type type{inputs[i].dtype(), {}, {}};
    for (const int64_t n : inputs[i].shape()) type.shape.emplace_back(n);
    operands.push_back(record_source(program.main(), "data", name, type, {}, {}));
    sources[name] = inputs[i];
  }
  const Values y = record(program.main(), kOps.at(node.at("op")), operands, attrs, {});
  program.main().outputs.push_back({"y", y.at(0)});
  const Tensor got = interpret(program.main(), sources).outputs.at("y");
  const Tensor wanted = tensor_of(test.at("outputs")[0]).value();
  ASSERT_EQ(got.shape(), wanted.shape()) << test.at("name");
  const double relative = test.value("rtol", 1e-3), absolute = test.value("atol", 1e-7);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.at(i), w = wanted.at(i);
    const bool equal = g == w || (std::isnan(g) && std::isnan(w));
    EXPECT_TRUE(equal || std::abs(g - w) <= absolute + relative * std::abs(w))
        << test.at("name") << " element " << i << ": " << g << ", not " << w;
  }
}

std::string read_vectors() {
  const char* folder = std::getenv("FLUID_DATA");
  const std::string base = folder != nullptr ? folder : FLUID_SOURCE_DIR "/../shared/data";
  std::string text;
  gzFile file = gzopen((base + "/onnx_node_tests.jsonl.gz").c_str(), "rb");
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
    if (nodes.size() != 1 || !test.at("initializers").empty() ||
        !kOps.contains(nodes[0].at("op").get<std::string>())) {
      continue;
    }
    std::vector<Tensor> inputs;
    bool known = tensor_of(test.at("outputs")[0]).has_value();
    for (const Json& input : test.at("inputs")) {
      const std::optional<Tensor> tensor = tensor_of(input);
      known = known && tensor.has_value();
      if (tensor) inputs.push_back(*tensor);
    }
    if (!known || !applies(nodes[0], inputs)) continue;
    expect_vector(test, inputs);
    ++checked;
  }
  EXPECT_GE(checked, 90);
  RecordProperty("vectors", checked);
}

}  // namespace
}  // namespace fluid::testing
