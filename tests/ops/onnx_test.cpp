// The mapping of ONNX's operators (frontend/onnx) against ONNX's own vectors, by the interpreter
// and by compiled kernels. The vectors are not part of the tree: FLUID_DATA or ../shared/data names
// the folder that holds them. tests/golden/onnx_cases.jsonl adds cases that they lack.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/executor.h"
#include "tests/support/data_folder.h"
#include "tests/support/facts.h"
#include "tests/support/golden_text.h"
#include "tests/support/onnx_vectors.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;

/// Records a vector, with inputs that are known only if the mapping needs them.
std::unique_ptr<OnnxProgram> recorded(const Json& vector) {
  try {
    return record_onnx_vector(vector, false);
  } catch (const onnx::Unsupported&) {
    return record_onnx_vector(vector, true);
  }
}

/// Outputs by the kernels that an Executor compiles.
NamedTensors compiled_outputs(const OnnxProgram& vector) {
  NamedTensors outputs = vector.constants;
  if (vector.program.ir().main().outputs.empty()) return outputs;
  Executor executor(vector.program, cpu(), {.threads = 1});
  Batch batch{.size = 1};
  for (const auto& [name, tensor] : vector.sources) batch.columns.emplace_back(name, tensor);
  for (const OutputView& output : executor.predict(batch)) {
    outputs[output.name] = output.value.copy();
  }
  return outputs;
}

/// Whether the interpreter runs the program: gradients are left to a pass.
bool is_interpretable(const OnnxProgram& vector) {
  return std::ranges::none_of(vector.program.ir().main().ops,
                              [](const auto& op) { return op->name == "gradients"; });
}

/// Outputs by the ops' definitions. Changes the program.
NamedTensors interpreted_outputs(OnnxProgram& vector) {
  NamedTensors outputs =
      interpret(vector.program.ir().main(), vector.sources, {.round_operations = true}).outputs;
  outputs.insert(vector.constants.begin(), vector.constants.end());
  return outputs;
}

/// Lists the differences; "" if there are none. Throws Unsupported.
std::string failure_of(const Json& vector) {
  std::unique_ptr<OnnxProgram> program;
  try {
    program = recorded(vector);
    const std::string compiled = difference_from_expected(vector, compiled_outputs(*program));
    if (!compiled.empty()) return "compiled: " + compiled;
    if (!is_interpretable(*program)) return "";
    return difference_from_expected(vector, interpreted_outputs(*program));
  } catch (const onnx::Unsupported&) {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

struct Row {
  int passed = 0, failed = 0, unsupported = 0;
  std::string reason;  ///< reason of the first vector that is not mapped
};

/// Results by operator. A vector of several nodes counts for each of its operators.
struct Table {
  std::map<std::string, Row> rows;
  Row total;

  void print() const {
    std::printf("%-28s %7s %7s %11s\n", "ONNX operator", "passed", "failed", "not mapped");
    for (const auto& [op, row] : rows) {
      std::printf("%-28s %7d %7d %11d  %s\n", op.c_str(), row.passed, row.failed, row.unsupported,
                  row.reason.c_str());
    }
    std::printf("%-28s %7d %7d %11d\n", "vectors", total.passed, total.failed, total.unsupported);
    std::printf("%d operators with a pass\n", operators());
  }

  int operators() const {
    int passed = 0;
    for (const auto& [op, row] : rows) passed += row.passed > 0 ? 1 : 0;
    return passed;
  }
};

Table run_vectors(const std::vector<Json>& vectors) {
  Table table;
  for (const Json& vector : vectors) {
    try {
      const std::string failure = failure_of(vector);
      EXPECT_EQ(failure, "") << vector.at("name");
      for (const std::string& op : operators_of(vector)) {
        (failure.empty() ? table.rows[op].passed : table.rows[op].failed)++;
      }
      (failure.empty() ? table.total.passed : table.total.failed)++;
    } catch (const onnx::Unsupported& e) {
      ++table.total.unsupported;
      for (const std::string& op : operators_of(vector)) {
        Row& row = table.rows[op];
        ++row.unsupported;
        if (row.reason.empty()) row.reason = e.what();
      }
    }
  }
  return table;
}

constexpr const char* kNoVectors = "no onnx_node_tests.jsonl.gz in FLUID_DATA or ../shared/data";

/// ONNX's own vectors.
std::vector<Json> operator_vectors() {
  return read_onnx_vectors(data_folder() + "/onnx_node_tests.jsonl.gz");
}

std::vector<Json> further_cases() {
  return read_onnx_vectors(FLUID_SOURCE_DIR "/tests/golden/onnx_cases.jsonl");
}

TEST(Onnx, OperatorVectors) {
  const std::vector<Json> vectors = operator_vectors();
  if (vectors.empty()) GTEST_SKIP() << kNoVectors;
  const Table table = run_vectors(vectors);
  table.print();
  EXPECT_GE(table.operators(), 136);
  EXPECT_GE(table.total.passed, 516);
}

TEST(Onnx, FurtherCases) {
  const std::vector<Json> vectors = further_cases();
  const Table table = run_vectors(vectors);
  EXPECT_EQ(table.total.passed, static_cast<int>(vectors.size()));
  EXPECT_GE(vectors.size(), 136);
}

/// Names of the ops that a vector records, also in the bodies of scans. Empty if it is not mapped.
std::set<std::string> recorded_ops(const Json& vector) {
  std::set<std::string> names;
  try {
    const std::unique_ptr<OnnxProgram> program = recorded(vector);
    for (const auto& graph : program->program.ir().graphs) {
      for (const auto& op : graph->ops) names.insert(op->name);
    }
  } catch (const onnx::Unsupported&) {
    return {};
  }
  return names;
}

/// tests/golden/onnx_ops.json holds the number of vectors that record each op.
TEST(Onnx, OpsOfTheVectors) {
  std::vector<Json> vectors = operator_vectors();
  if (vectors.empty()) GTEST_SKIP() << kNoVectors;
  std::ranges::copy(further_cases(), std::back_inserter(vectors));
  std::map<std::string, int> counts;
  for (const Json& vector : vectors) {
    for (const std::string& op : recorded_ops(vector)) ++counts[op];
  }
  expect_golden_text("onnx_ops.json", Json(counts).dump(1) + "\n");
}

/// A node that Fluid does not map, and facts of the message.
struct Rejected {
  onnx::Node node;
  std::string states;
};

/// Records each node. Constants are replaced by `constant`.
void expect_unsupported(Program& program, const std::vector<Rejected>& nodes, Value constant) {
  for (const auto& [node, facts] : nodes) {
    try {
      onnx::record_node(program.ir().main(), node, [&](const Tensor&) { return constant; });
      ADD_FAILURE() << node.op << " is mapped: " << facts;
    } catch (const onnx::Unsupported& e) {
      EXPECT_TRUE(states(e.what(), facts));
    }
  }
}

TEST(Onnx, NamesTheReasonOfUnsupportedNodes) {
  Program program("onnx");
  const Value x = program.data("x", {2, 3}, f32), images = program.data("image", {kBatch, 3}, f32);
  const Value n = program.data("n", {3}, i64);
  const Tensor seven = Tensor::of<int64_t>({1}, std::vector<int64_t>{7});
  const std::vector<Rejected> nodes = {
      {{.op = "Unique", .inputs = {x}, .outputs = {"y"}}, "'Unique': no such operator"},
      {{.op = "Relu", .inputs = {{}}, .outputs = {"y"}}, "'Relu': input 0 is left out"},
      {{.op = "Reshape", .inputs = {x, n}, .outputs = {"y"}}, "'Reshape': input 1 is not a"},
      {{.op = "Relu", .inputs = {x}, .outputs = {"y", "z"}}, "'Relu': output 1 is not computed"},
      {{.op = "Split", .attrs = {{"axis", int64_t{2}}}, .inputs = {x}, .outputs = {"y"}},
       "'Split': axis 2 is out of range for f32[2, 3]"},
      {{.op = "Shape", .inputs = {images}, .outputs = {"y"}},
       "'Shape': axis 0 of f32[?, 3] is not fixed"},
      {{.op = "Cast", .attrs = {{"to", int64_t{8}}}, .inputs = {x}, .outputs = {"y"}},
       "'Cast': no dtype for data type 8"},
      {{.op = "Constant", .outputs = {"y"}}, "'Constant'"},
      {{.op = "EyeLike", .inputs = {n}, .outputs = {"y"}}, "'EyeLike': i64[3]"},
      {{.op = "Conv", .inputs = {x, x}, .outputs = {"y"}}, "'Conv': f32[2, 3] has not 1 to 3"},
      {{.op = "Attention", .inputs = {program.data("q", {1, 2, 4}, f32), x, x}, .outputs = {"y"}},
       "'Attention'"},
      {{.op = "Resize",
        .attrs = {{"mode", std::string("area")}},
        .inputs = {x, {}, seven},
        .outputs = {"y"}},
       "'Resize': mode 'area'"},
      {{.op = "Gradient", .attrs = {{"y", std::string("l")}}, .inputs = {x}, .outputs = {"y"}},
       "'Gradient': no value 'l'"},
      {{.op = "QuantizeLinear",
        .attrs = {{"block_size", int64_t{2}}},
        .inputs = {x, x},
        .outputs = {"y"}},
       "'QuantizeLinear': scales of blocks"},
      {{.op = "QuantizeLinear", .inputs = {x, program.data("d", {}, f64)}, .outputs = {"y"}},
       "'QuantizeLinear': a scale of f64 for a tensor of f32"},
      {{.op = "QuantizeLinear", .inputs = {x, program.data("s", {}, f32), n}, .outputs = {"y"}},
       "'QuantizeLinear': quantizes to i64"},
      {{.op = "DequantizeLinear", .inputs = {n, program.data("t", {}, f32)}, .outputs = {"y"}},
       "'DequantizeLinear': dequantizes i64"},
      {{.op = "Momentum", .inputs = {x, n, x}, .outputs = {"y"}}, "'Momentum'"}};
  expect_unsupported(program, nodes, x);
}

/// A graph that computes "y" by `op` from "x".
onnx::Graph graph_with(const std::string& op, std::vector<std::string> inputs,
                       std::vector<std::string> outputs) {
  return {.inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .nodes = {{{.op = op, .outputs = {"y"}}, {"x"}}}};
}

onnx::Node scan_node(onnx::Operands inputs, onnx::Graph body, const Attrs& attrs = {}) {
  onnx::Node node{.op = "Scan",
                  .opset = 16,
                  .attrs = {{"num_scan_inputs", int64_t{1}}},
                  .graphs = {{"body", std::move(body)}},
                  .inputs = std::move(inputs)};
  for (const auto& [name, value] : attrs) node.attrs.set(name, value);
  return node;
}

TEST(Onnx, NamesTheReasonOfUnsupportedScans) {
  Program program("onnx");
  const Value x = program.data("x", {2, 3}, f32), n = program.data("n", {3}, i64);
  const Value images = program.data("image", {kBatch, 3}, f32);
  const onnx::Graph relu = graph_with("Relu", {"s", "x"}, {"s", "y"});
  const auto with = [&](const char* name, const std::vector<int64_t>& values) {
    return scan_node({x, x}, relu, {{name, values}});
  };
  onnx::Node batched = scan_node({{}, x, x}, relu);
  batched.opset = 8;
  expect_unsupported(
      program,
      {{batched, "'Scan': operator set 8"},
       {{.op = "Scan", .inputs = {x}}, "'Scan': has no graph 'body'"},
       {scan_node({x, x}, relu, {{"num_scan_inputs", int64_t{3}}}),
        "'Scan': num_scan_inputs is 3 of 2 inputs"},
       {scan_node({x, x}, relu, {{"num_scan_inputs", int64_t{0}}}),
        "'Scan': num_scan_inputs is 0 of 2 inputs"},
       {scan_node({x}, relu), "'Scan': its graph takes 2 inputs, not 1"},
       {scan_node({x, x, x}, graph_with("Relu", {"s", "t", "x"}, {"s"})),
        "'Scan': its graph computes 1 of 2 states"},
       {scan_node({x, x}, graph_with("Relu", {"s", "x"}, {"y"})),
        "'Scan': state 0 is f32[2, 3], but its graph computes f32[3]"},
       {scan_node({x, x}, graph_with("Unique", {"s", "x"}, {"s", "y"})),
        "'Unique': no such operator"},
       {scan_node({x, x}, graph_with("Relu", {"s", "z"}, {"s"})), "'Relu': no value 'x'"},
       {scan_node({x, x}, graph_with("Relu", {"s", "x"}, {"s", "z"})), "ONNX graph: no value 'z'"},
       {with("scan_input_axes", {0, 0}), "'Scan': scan_input_axes holds 2 integers, not 1"},
       {with("scan_output_axes", {0, 0}), "'Scan': scan_output_axes holds 2 integers, not 1"},
       {with("scan_input_directions", {}), "'Scan': scan_input_directions holds 0 integers, not 1"},
       {with("scan_output_directions", {1, 0}),
        "'Scan': scan_output_directions holds 2 integers, not 1"},
       {with("scan_input_axes", {2}), "'Scan': axis 2 is out of range for f32[2, 3]"},
       {with("scan_output_axes", {-3}), "'Scan': axis -3 is out of range for f32[2, 3]"},
       {scan_node({images}, graph_with("Relu", {"x"}, {"y"})),
        "'Scan': axis 0 of input 0, f32[?, 3], has no fixed, positive number of steps"},
       {scan_node({program.data("none", {3, 0}, f32)}, graph_with("Relu", {"x"}, {"y"}),
                  {{"scan_input_axes", std::vector<int64_t>{1}}}),
        "'Scan': axis 1 of input 0, f32[3, 0], has no fixed, positive number of steps"},
       {scan_node({x, n}, graph_with("Relu", {"x", "z"}, {"y"}), {{"num_scan_inputs", int64_t{2}}}),
        "'Scan': input 1 has 3 steps, not 2"}},
      x);
}

TEST(Onnx, NamesTheReasonOfUnsupportedBranchesAndLoops) {
  Program program("onnx");
  const Value x = program.data("x", {2, 3}, f32);
  const auto known = [](int64_t value) {
    return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1));
  };
  const auto loop_node = [](onnx::Operands inputs, onnx::Graph body) {
    return onnx::Node{.op = "Loop", .graphs = {{"body", std::move(body)}}, .inputs = inputs};
  };
  const onnx::Graph endless = graph_with("Not", {"i", "x"}, {"x"});
  expect_unsupported(
      program,
      {{{.op = "If", .inputs = {x}},
        "'If': its condition is not a constant: fold constants before the import"},
       {{.op = "If", .inputs = {known(0)}}, "'If': has no graph 'else_branch'"},
       {{.op = "If", .graphs = {{"then_branch", endless}}, .inputs = {known(1)}},
        "'If': its graph takes 2 inputs, not 0"},
       {loop_node({x, {}}, endless), "'Loop': input 0 is not a constant"},
       {loop_node({known(0), {}}, endless), "'Loop': 0 iterations, not 1 to 1000000"},
       {loop_node({known(INT64_MAX), {}}, endless),
        "'Loop': 9223372036854775807 iterations, not 1 to 1000000"},
       {loop_node({known(3), known(0)}, endless),
        "'Loop': its condition is false at first or after a step"},
       {loop_node({known(3), x}, endless), "'Loop': its condition is not known to be always true"},
       {loop_node({known(3), {}}, graph_with("Not", {"i", "x"}, {"y"})),
        "'Loop': its condition is not known to be always true"},
       {loop_node({known(3), {}}, graph_with("Not", {"i", "x"}, {})),
        "'Loop': its condition is not known to be always true"},
       {loop_node({known(3), {}, x}, endless), "'Loop': its graph takes 2 inputs, not 3"}},
      program.data("true", {}, boolean));
}

/// A node whose first input has the batch dimension, and the shape of the first output.
struct Batched {
  onnx::Node node;
  Shape input, output;
};

TEST(Onnx, KeepsTheBatchDimension) {
  const auto floats = [](std::vector<int64_t> shape) { return Tensor(f32, std::move(shape)); };
  const auto ints = [](std::vector<int64_t> v) {
    return Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v);
  };
  const Tensor scales = Tensor::of<float>({4}, std::vector<float>{1, 1, 2.5, 1});
  const Tensor w = floats({1, 20, 3}), r = floats({1, 20, 5});
  const onnx::Operand none;
  const std::vector<int64_t> two = {2, 2};
  const std::vector<Batched> nodes = {
      {{.op = "Conv", .inputs = {none, floats({4, 3, 3, 3}), floats({4})}},
       {kBatch, 3, 8, 8},
       {kBatch, 4, 6, 6}},
      {{.op = "MaxPool", .attrs = {{"kernel_shape", two}, {"strides", two}}, .inputs = {none}},
       {kBatch, 3, 8, 8},
       {kBatch, 3, 4, 4}},
      {{.op = "BatchNormalization",
        .opset = 15,
        .inputs = {none, floats({3}), floats({3}), floats({3}), floats({3})}},
       {kBatch, 3, 8, 8},
       {kBatch, 3, 8, 8}},
      {{.op = "Flatten", .inputs = {none}}, {kBatch, 3, 8}, {kBatch, 24}},
      {{.op = "Reshape", .inputs = {none, ints({0, -1})}}, {kBatch, 3, 8}, {kBatch, 24}},
      {{.op = "Gemm", .inputs = {none, floats({3, 5}), floats({5})}}, {kBatch, 3}, {kBatch, 5}},
      {{.op = "Softmax", .opset = 11, .inputs = {none}}, {kBatch, 3, 8}, {kBatch, 3, 8}},
      {{.op = "Gather", .attrs = {{"axis", int64_t{1}}}, .inputs = {none, ints({-1, 0})}},
       {kBatch, 3, 8},
       {kBatch, 2, 8}},
      {{.op = "Resize",
        .opset = 13,
        .attrs = {{"mode", std::string("linear")}},
        .inputs = {none, none, scales}},
       {kBatch, 3, 8, 8},
       {kBatch, 3, 20, 8}},
      {{.op = "DepthToSpace", .attrs = {{"blocksize", int64_t{2}}}, .inputs = {none}},
       {kBatch, 8, 2, 3},
       {kBatch, 2, 4, 6}},
      {{.op = "LSTM", .attrs = {{"layout", int64_t{1}}}, .inputs = {none, w, r}},
       {kBatch, 7, 3},
       {kBatch, 7, 1, 5}},
      {scan_node({none, floats({7, 3})}, graph_with("Relu", {"s", "x"}, {"s", "y"})),
       {kBatch, 5},
       {kBatch, 5}},
      {scan_node({none}, graph_with("Relu", {"x"}, {"y"}),
                 {{"scan_input_axes", std::vector<int64_t>{1}},
                  {"scan_output_axes", std::vector<int64_t>{-1}}}),
       {kBatch, 7, 3},
       {kBatch, 3, 7}}};
  for (auto [node, input, output] : nodes) {
    SCOPED_TRACE(node.op);
    Program program("onnx");
    int constants = 0;
    node.inputs[0] = program.data("x", input, f32);
    node.outputs = {"y"};
    const onnx::Operands y = onnx::record_node(program.ir().main(), node, [&](const Tensor& t) {
      return program.data("constant" + std::to_string(constants++),
                          Shape(t.shape().begin(), t.shape().end()), t.dtype());
    });
    EXPECT_EQ(y.at(0).value.shape(), output) << y[0].value.shape().str();
  }
}

TEST(Onnx, ScansSequencesOfDynamicLength) {
  Program program("onnx");
  const Value x = program.data("x", {3, kLength}, f32), s = program.data("s", {3}, f32);
  onnx::Node node = scan_node({s, x}, graph_with("Relu", {"s", "x"}, {"s", "y"}),
                              {{"scan_input_axes", std::vector<int64_t>{1}}});
  node.outputs = {"t", "y"};
  const onnx::Operands outputs = onnx::record_node(program.ir().main(), node, {});
  EXPECT_EQ(outputs.at(0).value.shape(), s.shape());
  EXPECT_EQ(outputs.at(1).value.shape(), Shape({kLength, 3}));
}

TEST(Onnx, ListsMappedOperators) {
  const std::vector<std::string> names = onnx::supported_operators();
  EXPECT_GE(names.size(), 143);
  EXPECT_TRUE(std::ranges::binary_search(names, "Attention"));
}

}  // namespace
}  // namespace fluid::testing
