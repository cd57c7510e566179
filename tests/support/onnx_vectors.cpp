#include "tests/support/onnx_vectors.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ops/record.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;

double number_of(const Json& value) {
  if (!value.is_string()) return value.is_boolean() ? value.get<bool>() : value.get<double>();
  const std::string text = value;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

Tensor tensor_of(const Json& json) {
  const auto name = json.at("dtype").get<std::string>();
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) throw onnx::Unsupported("no dtype " + name);
  Tensor t(*dtype, json.at("shape").get<std::vector<int64_t>>());
  const Json& data = json.at("data");
  if (*dtype == i64) {
    for (size_t i = 0; i < data.size(); ++i) t.as<int64_t>()[i] = data[i].get<int64_t>();
    return t;
  }
  Tensor wide(f64, t.shape());
  for (size_t i = 0; i < data.size(); ++i) wide.as<double>()[i] = number_of(data[i]);
  return wide.cast(*dtype);
}

Attr attr_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  const bool floats = std::ranges::any_of(value, [](const Json& v) { return v.is_number_float(); });
  if (floats) return value.get<std::vector<double>>();
  const bool texts = !value.empty() && value[0].is_string();
  if (texts) return value.get<std::vector<std::string>>();
  return value.get<std::vector<int64_t>>();
}

onnx::Graph graph_of(const Json& json, const Json& opset);

onnx::GraphNode node_of(const Json& json, const Json& opset) {
  onnx::Node node{.op = json.at("op")};
  node.opset = opset.value(json.value("domain", "ai.onnx"), int64_t{1});
  for (const auto& [name, value] : json.at("attrs").items()) {
    if (!value.is_object()) {
      node.attrs.set(name, attr_of(value));
    } else if (value.contains("nodes")) {
      node.graphs[name] = graph_of(value, opset);
    } else {
      node.tensors[name] = tensor_of(value);
    }
  }
  node.outputs = json.at("outputs").get<std::vector<std::string>>();
  return {node, json.at("inputs").get<std::vector<std::string>>()};
}

/// Names of the inputs or outputs of a graph. Those of a vector are tensors.
std::vector<std::string> names_of(const Json& values) {
  std::vector<std::string> names;
  for (const Json& value : values) names.push_back(value.is_string() ? value : value.at("name"));
  return names;
}

onnx::Graph graph_of(const Json& json, const Json& opset) {
  onnx::Graph graph{.inputs = names_of(json.at("inputs")), .outputs = names_of(json.at("outputs"))};
  for (const auto& [name, value] : json.at("initializers").items()) {
    graph.initializers[name] = tensor_of(value);
  }
  for (const Json& node : json.at("nodes")) graph.nodes.push_back(node_of(node, opset));
  return graph;
}

void add_operators(const Json& graph, std::vector<std::string>& names) {
  for (const Json& node : graph.at("nodes")) {
    const std::string name = node.at("op");
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    for (const Json& attr : node.at("attrs")) {
      if (attr.is_object() && attr.contains("nodes")) add_operators(attr, names);
    }
  }
}

/// Relative distance of neighbours, of which a rounded result may be either.
double step_of(DType dtype) { return dtype == bf16 ? 0x1p-7 : 0; }

std::string difference(const Tensor& got, const Tensor& wanted, double absolute, double relative) {
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) {
    return got.str() + ", not " + wanted.str();
  }
  relative = std::max(relative, step_of(got.dtype()));
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.at(i), w = wanted.at(i);
    const bool equal = g == w || (std::isnan(g) && std::isnan(w));
    if (equal || std::abs(g - w) <= absolute + relative * std::abs(w)) continue;
    std::ostringstream text;
    text << "element " << i << " is " << g << ", not " << w;
    return text.str();
  }
  return "";
}

}  // namespace

std::vector<Json> read_onnx_vectors(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return {};
  std::vector<char> chunk(1 << 16);
  for (int n = 0; (n = gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  gzclose(file);
  std::vector<Json> vectors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) vectors.push_back(Json::parse(line));
  return vectors;
}

std::vector<std::string> operators_of(const Json& vector) {
  std::vector<std::string> names;
  add_operators(vector, names);
  return names;
}

std::unique_ptr<OnnxProgram> record_onnx_vector(const Json& vector, bool inputs_known) {
  auto recorded = std::make_unique<OnnxProgram>();
  const auto feed = [&](const Tensor& tensor) {
    const std::string name = "feed" + std::to_string(recorded->sources.size());
    recorded->sources[name] = tensor;
    const Shape shape(tensor.shape().begin(), tensor.shape().end());
    return recorded->program.data(name, shape, tensor.dtype());
  };
  onnx::Operands inputs;
  for (const Json& input : vector.at("inputs")) {
    const Tensor tensor = tensor_of(input);
    inputs.emplace_back(feed(tensor), inputs_known ? std::optional(tensor) : std::nullopt);
  }
  for (const Json& output : vector.at("outputs")) tensor_of(output);  // throws for its dtype
  const onnx::Graph graph = graph_of(vector, vector.at("opset"));
  const onnx::Operands outputs =
      onnx::record_graph(recorded->program.ir().main(), graph, inputs, feed, {}, {});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value) {
      recorded->program.output(graph.outputs[i], outputs[i].value);
    } else {
      recorded->constants[graph.outputs[i]] = *outputs[i].constant;
    }
  }
  return recorded;
}

std::string difference_from_expected(const Json& vector, const NamedTensors& outputs) {
  for (const Json& output : vector.at("outputs")) {
    const std::string name = output.at("name");
    const auto got = outputs.find(name);
    if (got == outputs.end()) return name + " is missing";
    const std::string text = difference(got->second, tensor_of(output), vector.value("atol", 1e-7),
                                        vector.value("rtol", 1e-3));
    if (!text.empty()) return name + ": " + text;
  }
  return "";
}

}  // namespace fluid::testing
