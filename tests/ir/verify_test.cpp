#include "ir/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ir/parse.h"
#include "tests/ir/random_program.h"
#include "tests/support/errors.h"

namespace fluid::ir::verify_test {
namespace {

/// Expects that the statements of a main graph parse, and fail verification with `message`.
void expect_rejection(const std::string& statements, const std::string& message) {
  const auto program = parse("program @p {\n" + statements + "\n}", "t.fir");
  expect_user_error([&] { verify(*program); }, message);
}

/// Expects the same of a program that `spoil` makes of main graph "%x = data "x"; %y = neg(%x)".
void expect_rejection(const std::function<void(Program&)>& spoil, const std::string& message) {
  const auto program = parse(
      "program @p { %x = data \"x\" : f32[?]  %y = neg(%x) : f32[?] @ \"n.cpp:7\" output \"y\" = "
      "%y "
      "graph @g { %z = one : f32[] } }",
      "t.fir");
  verify(*program);
  spoil(*program);
  expect_user_error([&] { verify(*program); }, message);
}

TEST(Verify, AcceptsRandomPrograms) {
  EXPECT_TRUE(
      rc::check([](uint64_t seed) { verify(*random_program(seed, *rc::gen::inRange(0, 25))); }));
}

TEST(Verify, CallsTheCheckOfEachOp) {
  const auto program = parse("program @p { a b graph @g { c } }", "t.fir");
  std::string seen;
  verify(*program, [&](const Op& op) { seen += op.name; });
  EXPECT_EQ(seen, "abc");
}

TEST(Verify, RejectsDanglingValues) {
  expect_rejection([](Program& p) { p.main().ops[1]->operands[0] = Value(); },
                   "n.cpp:7: neg %y: operand 0 is no value");
  expect_rejection([](Program& p) { p.main().ops[1]->operands[0] = p.graphs[1]->ops[0]->result(); },
                   "n.cpp:7: neg %y: operand 0 is not a result of an earlier op of graph @main");
  expect_rejection([](Program& p) { p.main().move_tail(1, 0); },
                   "n.cpp:7: neg %y: operand 0 is not a result of an earlier op of graph @main");
  expect_rejection([](Program& p) { p.main().ops[1]->operands[0] = p.main().ops[0]->result(1); },
                   "n.cpp:7: neg %y: operand 0 is result 1 of data \"x\", which has 1");
  expect_rejection([](Program& p) { p.main().outputs[0].value = p.graphs[1]->ops[0]->result(); },
                   "graph @main: output \"y\" is not a result of an earlier op of graph @main");
  expect_rejection(
      [](Program& p) {
        p.graphs[1]->outputs.push_back({"z", Value()});
      },
      "graph @g: output \"z\" is no value");
  expect_rejection([](Program& p) { std::swap(p.main().ops[1], p.graphs[1]->ops[0]); },
                   "one %z in graph @g: belongs to another graph");
}

TEST(Verify, RejectsNamesThatAreTakenOrMissing) {
  expect_rejection("%a = data \"x\" : f32[]  %b = param \"x\" : f32[]",
                   "param \"x\": \"x\" is declared twice");
  expect_rejection("store \"x\"  store \"x\"", "store \"x\": \"x\" is written twice");
  expect_rejection("%a = a : f32[] output \"o\" = %a output \"o\" = %a",
                   "graph @main: two outputs are named \"o\"");
  expect_rejection("%a = a : f32[] output \"\" = %a", "graph @main: an output has no name");
  expect_rejection([](Program& p) { p.graphs[1]->name = "main"; },
                   "graph @main: another graph has the same name");
  expect_rejection([](Program& p) { p.graphs.front()->name = "start"; },
                   "the first graph of program @p is not main");
  expect_rejection([](Program& p) { p.graphs.clear(); },
                   "the first graph of program @p is not main");
  expect_rejection([](Program& p) { p.main().ops[0]->name = "graph"; },
                   "\"graph\" cannot name an op");
  expect_rejection([](Program& p) { p.main().ops[0]->attrs.set("a b", true); },
                   "data \"x\": \"a b\" cannot name an attribute");
  expect_rejection(
      [](Program& p) {
        p.main().ops[0]->attrs = {{"a", true}, {"a", true}};
      },
      "data \"x\": attribute \"a\" is given twice");
}

TEST(Verify, RejectsIdsTwiceOrOutOfRange) {
  expect_rejection("a [#3] b [#3]", "b: another op of the graph has its id 3");
  expect_rejection([](Program& p) { p.main().ops[1]->id = -1; },
                   "n.cpp:7: neg %y: its id is out of range");
}

TEST(Verify, RejectsGraphsThatAreMissingOrRecurse) {
  expect_rejection("a {body = @g}", "a: there is no graph @g");
  expect_rejection("a {body = @main}", "graph @main: contains itself");
  expect_rejection("graph @g { a {body = @h} } graph @h { a {body = @g} }",
                   "graph @g: contains itself or is part of graphs that do");
}

TEST(Verify, RejectsImpossibleTypes) {
  const auto expect_type_error = [](const std::string& type, const std::string& message) {
    expect_rejection("%a = a : " + type, "a %a: " + message);
    expect_rejection("a {t = " + type + "}", "a: " + message);
  };
  expect_type_error("f32[?, 2?]", "shape [?, 2?] has two batch dimensions");
  expect_type_error("f32[-1]", "shape [-1] has a negative dimension");
  expect_type_error("f32[0, -1?]", "shape [0, -1?] has a negative dimension");
  expect_type_error("f32[1,1,1,1,1,1,1,1,1,1,1,1,1]", "a tensor has more than 12 dimensions");
  expect_type_error("f64[1152921504606846976]",
                    "the bytes of f64[1152921504606846976] overflow a 64-bit integer");
  expect_type_error("u8[4294967296, 0, 4294967296]",
                    "the bytes of u8[4294967296, 0, 4294967296] over");
  expect_type_error("u8[9223372036854775807]{N16n}", "the bytes of");
  expect_type_error("u8[1]{N9223372036854775807n9223372036854775807n}", "the bytes of");
}

TEST(Verify, RejectsImpossibleLayouts) {
  const auto expect_layout_error = [](const Layout& layout, const std::string& message) {
    expect_rejection([&](Program& p) { p.main().ops[1]->results[0].type.layout = layout; },
                     "n.cpp:7: neg %y: " + message);
  };
  expect_layout_error({{1}, {}}, "the layout names an axis that is not there, or one twice");
  expect_layout_error({{0, 0}, {}}, "the layout names an axis that is not there, or one twice");
  expect_layout_error({{}, {}}, "the layout leaves out an axis");
  expect_layout_error({{0}, {{1, 16}}}, "the layout has a block that fits no axis");
  expect_layout_error({{0}, {{0, 0}}}, "the layout has a block that fits no axis");
}

TEST(Verify, RejectsTooMuch) {
  expect_rejection(
      [](Program& p) {
        for (int i = 0; i < 257; ++i) p.main().ops[1]->attrs.set("a" + std::to_string(i), true);
      },
      "n.cpp:7: neg %y: too many attributes");
  std::string many;
  for (size_t i = 0; i < kMaxGraphs; ++i) many += "graph @g" + std::to_string(i) + " {}\n";
  expect_user_error([&] { parse("program @p {" + many + "}", "t.fir"); },
                    "the program has too many graphs");
  Program p("p");
  for (size_t i = 0; i < kMaxGraphs; ++i) {
    p.graphs.push_back(std::make_unique<Graph>(&p, "g" + std::to_string(i)));
  }
  expect_user_error([&] { verify(p); }, "the program has too many graphs");
}

TEST(Verify, RejectsTooManyFactorsOfTheLength) {
  Program p("p");
  Dim dim = kLength;
  dim.length_power = kMaxLengthPower + 1;
  p.main().append("a", {}, {}, {Type{f32, {dim}, {}}});
  expect_user_error([&] { verify(p); }, "shape [LLLLL] has a dimension with more than 4 factors");
}

TEST(Type, BytesOverflowAtALargeBatch) {
  const Type type{DType::f32, {kBatch, 1 << 20}, {}};
  EXPECT_EQ(type.bytes_at(100), int64_t{400} << 20);
  expect_user_error([&] { type.bytes_at(int64_t{1} << 50); },
                    "the bytes of f32[?, 1048576] with batch 1125899906842624 overflow");
  expect_user_error([&] { type.shape.numel_at(int64_t{1} << 50); },
                    "a shape has more elements than a 64-bit integer counts");
}

TEST(Type, BytesCountPadding) {
  const Type type{DType::f32, {2, 20, 3, 3}, Layout{{0, 1, 2, 3}, {{1, 16}}}};
  EXPECT_EQ(type.bytes_at(1), 2 * 32 * 9 * 4);
  EXPECT_EQ(type.str(), "f32[2, 20, 3, 3]{nChw16c}");
}

}  // namespace
}  // namespace fluid::ir::verify_test
