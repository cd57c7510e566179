#include "tests/support/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "frontend/scan.h"
#include "ops/operators.h"

namespace fluid::testing::interpreter_test {
namespace {

Tensor iota(std::vector<int64_t> shape) {
  Tensor t(f64, std::move(shape));
  std::iota(t.as<double>().begin(), t.as<double>().end(), 0.0);
  return t;
}

std::vector<double> list(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.numel(); ++i) values.push_back(t.at(i));
  return values;
}

class Interpreter : public ::testing::Test {
 protected:
  Value feed(const std::string& name, Type type) {
    return record_source(program_.main(), "data", name, std::move(type), {}, {});
  }
  ir::Program program_{"p"};
  ir::Graph& graph_ = program_.main();
};

TEST_F(Interpreter, EvaluatesProgramsForABatch) {
  const Value x = feed("x", {f64, {kBatch, 3}, {}});
  const Value w = feed("w", {f64, {3, 2}, {}});
  graph_.outputs = {{"y", matmul(x, w) + 1.0}, {"mean", mean(x, {.axes = 0})}};
  const NamedTensors in = {{"x", iota({2, 3})}, {"w", iota({3, 2})}};
  const Interpreted result = interpret(graph_, in, {.batch = 2});
  EXPECT_EQ(list(result.outputs.at("y")), (std::vector<double>{11, 14, 29, 41}));
  EXPECT_EQ(list(result.outputs.at("mean")), (std::vector<double>{1.5, 2.5, 3.5}));
}

TEST_F(Interpreter, RoundsToTheDTypeOnceAnOp) {
  const Value x = feed("x", {f16, {1}, {}});
  graph_.outputs = {{"y", x + 2049.0}, {"z", cast(x, u8)}};
  const Interpreted result = interpret(graph_, {{"x", iota({1})}});
  EXPECT_EQ(result.outputs.at("y").item(), 2048);  // 2049 lies between two f16 values
  EXPECT_EQ(result.outputs.at("z").dtype(), u8);
}

TEST_F(Interpreter, EvaluatesFusedBodiesAndStores) {
  ir::Graph& body = program_.add_graph("g");
  const Type type{f64, {3}, {}};
  ir::Op* arg = body.append("arg", {}, {{"index", int64_t{0}}}, {type});
  body.outputs = {{"", square(arg->result())}};
  const Value x = feed("x", type);
  ir::Op* fused = graph_.append("fused", {x}, {{"body", GraphRef{"g"}}}, {type});
  record_store(graph_, "v", fused->result(), {});
  const Interpreted result = interpret(graph_, {{"x", iota({3})}});
  EXPECT_EQ(list(result.stores.at("v")), (std::vector<double>{0, 1, 4}));
}

TEST_F(Interpreter, RunsNestedScans) {
  const Value x = feed("x", {f64, {3, 2, kBatch}, {}}), start = feed("start", {f64, {kBatch}, {}});
  const Value factor = feed("factor", {f64, {}, {}});
  const auto multiply_add = [&](const Values& carries, const Values& elements) {
    const Value next = carries[0] * factor + elements[0];
    return ScanStep{.carries = {next}, .collected = {next}};
  };
  const ScanResult result = scan({start}, {x}, [&](const Values& carries, const Values& elements) {
    const ScanResult row = scan(carries, elements, multiply_add, {.reverse = true});
    return ScanStep{.carries = {row.carries[0] + 1.0}, .collected = row.collected};
  });
  graph_.outputs = {{"last", result.carries[0]}, {"all", result.collected[0]}};
  const NamedTensors in = {
      {"x", iota({3, 2, 2})}, {"start", iota({2})}, {"factor", Tensor::of<double>({}, {{2}})}};
  const Interpreted out = interpret(graph_, in, {.batch = 2});
  for (const int64_t sample : {0, 1}) {
    auto carry = static_cast<double>(sample);
    for (const int64_t row : {0, 1, 2}) {
      for (const int64_t column : {1, 0}) {
        const int64_t at = (row * 2 + column) * 2 + sample;
        carry = 2 * carry + in.at("x").at(at);
        EXPECT_EQ(out.outputs.at("all").at(at), carry);
      }
      carry += 1;
    }
    EXPECT_EQ(out.outputs.at("last").at(sample), carry);
  }
}

TEST_F(Interpreter, FindsTheFirstMaximum) {
  const Value x = feed("x", {f64, {2, 3}, {}});
  graph_.outputs = {{"at", argmax(x)}, {"nan", argmax(x * scalar_like(x, NAN))}};
  Tensor t(f64, {2, 3});
  t.as<double>()[1] = t.as<double>()[2] = 5;
  const Interpreted result = interpret(graph_, {{"x", t}});
  EXPECT_EQ(list(result.outputs.at("at")), (std::vector<double>{1, 0}));
  EXPECT_EQ(list(result.outputs.at("nan")), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace fluid::testing::interpreter_test
