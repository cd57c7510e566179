// The mapping of ONNX's operators (frontend/onnx) against ONNX's own vectors, by the interpreter
// and by compiled kernels. The vectors are not part of the tree: FLUID_DATA or ../shared/data names
// the folder that holds them. tests/golden/onnx_cases.jsonl adds cases that they lack.

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "executor/executor.h"
#include "tests/support/data_folder.h"
#include "tests/support/onnx_vectors.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;

/// Records a vector, with inputs that are known only if the mapping needs them.
std::unique_ptr<OnnxProgram> recorded(const Json& vector, std::string& recording) {
  try {
    return record_onnx_vector(vector, false, recording);
  } catch (const onnx::NotMapped&) {
    return record_onnx_vector(vector, true, recording);
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

/// Outputs by the ops' definitions. Changes the program.
NamedTensors interpreted_outputs(OnnxProgram& vector) {
  ir::Graph& graph = vector.program.ir().main();
  for (const auto& op : graph.ops) {
    if (op->name == "dropout") return vector.constants;
  }
  NamedTensors outputs = interpret(graph, vector.sources).outputs;
  outputs.insert(vector.constants.begin(), vector.constants.end());
  return outputs;
}

/// What differs; "" if nothing does. Throws NotMapped.
std::string failure_of(const Json& vector, std::string& recording) {
  std::unique_ptr<OnnxProgram> program;
  try {
    program = recorded(vector, recording);
    const std::string compiled = difference_from_expected(vector, compiled_outputs(*program));
    if (!compiled.empty()) return "compiled: " + compiled;
    return difference_from_expected(vector, interpreted_outputs(*program));
  } catch (const onnx::NotMapped&) {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

struct Row {
  int passed = 0, failed = 0, not_mapped = 0;
  std::string reason;  ///< of the first vector that is not mapped
};

/// Results by operator. A vector of several nodes counts for each of its operators.
struct Table {
  std::map<std::string, Row> rows;
  Row total;

  void print() const {
    std::printf("%-28s %7s %7s %11s\n", "ONNX operator", "passed", "failed", "not mapped");
    for (const auto& [op, row] : rows) {
      std::printf("%-28s %7d %7d %11d  %s\n", op.c_str(), row.passed, row.failed, row.not_mapped,
                  row.reason.c_str());
    }
    std::printf("%-28s %7d %7d %11d\n", "vectors", total.passed, total.failed, total.not_mapped);
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
    std::string recording;
    try {
      const std::string failure = failure_of(vector, recording);
      EXPECT_EQ(failure, "") << vector.at("name");
      for (const std::string& op : operators_of(vector)) {
        (failure.empty() ? table.rows[op].passed : table.rows[op].failed)++;
      }
      (failure.empty() ? table.total.passed : table.total.failed)++;
    } catch (const onnx::NotMapped& e) {
      Row& row = table.rows[recording];
      ++row.not_mapped;
      ++table.total.not_mapped;
      if (row.reason.empty()) row.reason = e.what();
    }
  }
  return table;
}

TEST(Onnx, OperatorVectors) {
  const std::vector<Json> vectors = read_onnx_vectors(data_folder() + "/onnx_node_tests.jsonl.gz");
  if (vectors.empty()) {
    GTEST_SKIP() << "no onnx_node_tests.jsonl.gz in FLUID_DATA or ../shared/data";
  }
  const Table table = run_vectors(vectors);
  table.print();
  EXPECT_GE(table.operators(), 135);
  EXPECT_GE(table.total.passed, 515);
}

TEST(Onnx, FurtherCases) {
  const std::vector<Json> vectors =
      read_onnx_vectors(FLUID_SOURCE_DIR "/tests/golden/onnx_cases.jsonl");
  const Table table = run_vectors(vectors);
  EXPECT_EQ(table.total.passed, static_cast<int>(vectors.size()));
  EXPECT_GE(vectors.size(), 60);
}

}  // namespace
}  // namespace fluid::testing
