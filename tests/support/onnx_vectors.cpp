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

/// Records the nodes of a vector, one after the other.
class Recorder {
 public:
  explicit Recorder(OnnxProgram& to) : to_(to) {}

  Value feed(const Tensor& tensor) {
    const std::string name = "feed" + std::to_string(to_.sources.size());
    to_.sources[name] = tensor;
    const Shape shape(tensor.shape().begin(), tensor.shape().end());
    return to_.program.data(name, shape, tensor.dtype());
  }

  void add_input(const std::string& name, const Tensor& tensor, bool known) {
    values_[name] = {feed(tensor), known ? std::optional(tensor) : std::nullopt};
  }

  void record(const Json& json, const Json& opset) {
    onnx::Node node{.op = json.at("op")};
    node.opset = opset.value(json.value("domain", "ai.onnx"), int64_t{1});
    for (const auto& [name, value] : json.at("attrs").items()) {
      if (value.is_object()) {
        node.tensors[name] = tensor_of(value);
      } else {
        node.attrs.set(name, attr_of(value));
      }
    }
    for (const Json& name : json.at("inputs")) {
      node.inputs.push_back(name == "" ? onnx::Operand() : values_.at(name));
    }
    node.find = [this](const std::string& name) { return values_.at(name); };
    node.outputs = json.at("outputs").get<std::vector<std::string>>();
    const onnx::Operands outputs = onnx::record_node(
        to_.program.ir().main(), node, [this](const Tensor& t) { return feed(t); }, {});
    for (size_t i = 0; i < outputs.size(); ++i) values_[node.outputs[i]] = outputs[i];
  }

  void add_output(const std::string& name) {
    const onnx::Operand& operand = values_.at(name);
    if (operand.value) {
      to_.program.output(name, operand.value);
    } else {
      to_.constants[name] = *operand.constant;
    }
  }

 private:
  OnnxProgram& to_;
  std::map<std::string, onnx::Operand> values_;
};

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
  for (const Json& node : vector.at("nodes")) {
    const std::string name = node.at("op");
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::unique_ptr<OnnxProgram> record_onnx_vector(const Json& vector, bool inputs_known,
                                                std::string& recording) {
  auto program = std::make_unique<OnnxProgram>();
  Recorder recorder(*program);
  recording = vector.at("nodes")[0].at("op");
  for (const Json& input : vector.at("inputs")) {
    recorder.add_input(input.at("name"), tensor_of(input), inputs_known);
  }
  for (const auto& [name, value] : vector.at("initializers").items()) {
    recorder.add_input(name, tensor_of(value), true);
  }
  for (const Json& node : vector.at("nodes")) {
    recording = node.at("op");
    recorder.record(node, vector.at("opset"));
  }
  for (const Json& output : vector.at("outputs")) {
    tensor_of(output);
    recorder.add_output(output.at("name"));
  }
  return program;
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
