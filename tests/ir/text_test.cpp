#include "ir/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>

#include "ir/parse.h"
#include "ir/print.h"
#include "tests/ir/random_program.h"
#include "tests/support/errors.h"

namespace fluid::ir::text_test {
namespace {

constexpr const char* kGolden = R"(program @mlp {
  %x = data "image" {scale = 0.00392156862745098} : f32[?, 784]
  %w = param "fc0.w" {init = "xavier_uniform"} : f32[784, 10]
  %y = matmul(%x, %w) {transpose = [1, 2], alpha = 1.0, body = @g0} : f32[?, 10]  @ "mnist.cpp:13"
  %0, %1 = split(%y) : bf16[4?, 2, 3, 3]{nChw16c}, u8[]  [backward, param "fc0.w", scope "fc0", #9]
  train(%0) {optimizer = "adam", lr = 1e-05, betas = floats[]}
  store "fc0.w" (%w)  [optimize]
  output "prob" = %y
  output "two \"words\"" = %1
  graph @g0 {
    %a = arg {index = 0} : f32[?, 10]
    output "0" = %a
  }
}
)";

std::string reprint(std::string_view text) { return print(*parse(text, "t.fir")); }

/// Expects that the statement, put on line 2 behind two blanks, fails with "t.fir:2:<column>:
/// part".
void expect_rejection(const std::string& statement, int column, const std::string& part) {
  const std::string text = "program @p {\n  " + statement + "\n}\n";
  expect_user_error([&] { parse(text, "t.fir"); },
                    "t.fir:2:" + std::to_string(column + 2) + ": " + part);
}

TEST(Text, GoldenProgramReadsAndPrints) {
  const auto program = parse(kGolden, "t.fir");
  EXPECT_EQ(print(*program), kGolden);

  const Graph& main = program->main();
  ASSERT_EQ(main.ops.size(), 6u);
  const Op& matmul = *main.ops[2];
  EXPECT_EQ(matmul.name, "matmul");
  EXPECT_EQ(matmul.operands, (Values{main.ops[0]->result(), main.ops[1]->result()}));
  EXPECT_EQ(matmul.attrs.get<std::vector<int64_t>>("transpose"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(matmul.attrs.get<double>("alpha"), 1.0);
  EXPECT_EQ(matmul.attrs.get<GraphRef>("body").name, "g0");
  EXPECT_EQ(matmul.loc, (Loc{"mnist.cpp", 13}));
  EXPECT_EQ(matmul.id, 2);
  const Op& split = *main.ops[3];
  EXPECT_EQ(split.role, Role::backward);
  EXPECT_EQ(split.param, "fc0.w");
  EXPECT_EQ(split.scope, "fc0");
  EXPECT_EQ(split.id, 9);
  EXPECT_EQ(split.results[0].name, "");
  EXPECT_EQ(split.results[0].type.shape, (Shape{Dim::of_batch(4), 2, 3, 3}));
  EXPECT_EQ(split.results[0].type.layout->blocks, (std::vector<Layout::Block>{{1, 16}}));
  EXPECT_EQ(main.ops[4]->id, 10);
  EXPECT_EQ(main.ops[5]->symbol, "fc0.w");
  EXPECT_EQ(main.outputs[1].name, "two \"words\"");
  EXPECT_EQ(program->find("g0")->outputs[0].name, "0");
}

TEST(Text, ExtentsThatDependOnTheLengthReadAndPrint) {
  const std::string text = "program @p {\n  %a = a : f32[?L, L, 16L, 3LL, 2, 0L]\n}\n";
  const auto program = parse(text, "t.fir");
  EXPECT_EQ(print(*program), text);
  Dim batches = kLength, square = Dim::of_length(3);
  batches.batch = true;
  square.length_power = 2;
  EXPECT_EQ(program->main().ops[0]->results[0].type.shape,
            (Shape{batches, kLength, Dim::of_length(16), square, 2, Dim::of_length(0)}));
  EXPECT_EQ(reprint("program @p { %a = a : f32[1?L, 1L] }"),
            "program @p {\n  %a = a : f32[?L, L]\n}\n");
}

TEST(Text, NewOpsGetIdsAfterTheParsedOnes) {
  const auto program = parse("program @p { a [#41] b [#7] }", "t.fir");
  EXPECT_EQ(program->main().append("c", {}, {}, {})->id, 42);
}

TEST(Text, PrintParsePrintIsTheIdentity) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const std::string text = print(*random_program(seed, *rc::gen::inRange(0, 25)));
    RC_ASSERT(reprint(text) == text);
  }));
}

TEST(Text, FloatsKeepTheirBits) {
  EXPECT_TRUE(rc::check([](uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    const auto program = parse("program @p { a {x = " + float_text(value) + "} }", "t.fir");
    const double back = program->main().ops[0]->attrs.get<double>("x");
    RC_ASSERT((std::isnan(value) ? std::isnan(back) : std::bit_cast<uint64_t>(back) == bits));
  }));
  EXPECT_EQ(float_text(1), "1.0");
  EXPECT_EQ(float_text(-0.0), "-0.0");
  EXPECT_EQ(float_text(1e-5), "1e-05");
  EXPECT_EQ(float_text(-INFINITY), "-inf");
  EXPECT_EQ(float_text(-NAN), "nan");
}

TEST(Text, NamesThatCollideGetOthers) {
  Program p("p");
  for (const char* name : {"x", "x", "x_2", "two words", "0"}) {
    p.main().append("a", {}, {}, {Type{}})->results[0].name = name;
  }
  const std::string text = print(p);
  EXPECT_EQ(reprint(text), text);
  for (const char* line : {"%x = a", "%x_3 = a", "%x_2 = a", "%0 = a", "%1 = a"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Text, NamesByIdStayWhenOpsGo) {
  const auto p = parse(
      "program @p {\n  %0 = a : f32[]\n  %b_2 = b : f32[]\n"
      "  %1, %2 = b(%b_2) : f32[], f32[]\n  output \"y\" = %2\n}\n",
      "test.fir");
  p->main().erase_if([](const Op& op) { return op.name == "a"; });
  const std::string text = print_by_id(*p);
  EXPECT_EQ(text,
            "program @p {\n  %b_2 = b : f32[]\n  %b_2_2, %b_2.1 = b(%b_2) : f32[], f32[]\n"
            "  output \"y\" = %b_2.1\n}\n");
  EXPECT_EQ(reprint(text), text);
}

TEST(Text, CommentsAndSpacesAreSkipped) {
  EXPECT_EQ(reprint("// c\nprogram @p{//c\n\t%a=b:f32[]\r\n}// end"),
            "program @p {\n  %a = b : f32[]\n}\n");
}

TEST(Text, LocationsThatLookLikeOthersSurvive) {
  for (const char* loc : {"a:05", "a:99999999999999", "a:", "a", "a:b:3", "C:\\x.cpp:4"}) {
    const std::string text = "program @p {\n  a  @ " + quote(loc) + "\n}\n";
    EXPECT_EQ(reprint(text), text);
  }
}

TEST(Text, RejectsBrokenTokens) {
  expect_rejection("a \"b", 3, "the string has no closing quote");
  expect_rejection("a \"b\\q\"", 5,
                   "unknown escape in a string; there are \\\" \\\\ \\n \\t \\r and \\x1f");
  expect_rejection("a \"b\\xG0\"", 5, "expected two hexadecimal digits (0-9, a-f) after \\x");
  expect_rejection("% = a", 1, "expected a value's name after '%'");
  expect_rejection("a $", 3, "unexpected character: $");
  expect_rejection("a \x80", 3, "unexpected character: \"");
}

TEST(Text, RejectsBrokenStatements) {
  expect_rejection("%a = a(%b) : f32[]", 8, "%b is not defined above");
  expect_rejection("%a = a(a) : f32[]", 8, "expected a value such as %x but found 'a'");
  expect_rejection("%a, %a = a : f32[], f32[]", 5, "%a is defined twice");
  expect_rejection("%a, b = a : f32[], f32[]", 5, "expected a value such as %x but found 'b'");
  expect_rejection("%a = a", 6, "a has 1 results but 0 types");
  expect_rejection("%a = output : f32[]", 6, "'output' is a keyword, not an op");
  expect_rejection("%a = 3", 6, "expected an op's name but found '3'");
  expect_rejection("%a a", 4, "expected '=' but found 'a'");
  expect_rejection("%a = a(%a", 8, "%a is not defined above");
  expect_rejection("%a = a : f32[] graph @g { b(%a) }", 29,
                   "%a is a value of the outer graph, which this graph can only take as an "
                   "operand of the op that runs it");
  expect_rejection("graph @g { %a = a : f32[] } b(%a)", 31, "%a is not defined above");
  expect_rejection("a()(", 4, "expected a statement, a graph or '}' but found '('");
  expect_rejection("output prob", 8, "expected an output's name in quotes but found 'prob'");
  expect_rejection("output \"p\" = 3", 14, "expected a value such as %x but found '3'");
  expect_rejection("graph @g { graph", 12, "'graph' is a keyword, not an op");
  expect_rejection("graph @g { )", 12, "expected a statement or '}' but found ')'");
  expect_rejection("graph @g {} graph @g {}", 19, "there are two graphs named @g");
  expect_rejection("graph @main {}", 7, "there are two graphs named @main");
  expect_rejection("graph g", 7, "expected '@' but found 'g'");
  expect_rejection("graph @3", 8, "expected a graph's name but found '3'");
  expect_rejection(std::string(256, 'a'), 1, "a name has at most 255 characters");
}

TEST(Text, RejectsBrokenAttributes) {
  expect_rejection("a {x = 1, x = 2}", 11, "attribute 'x' is given twice");
  expect_rejection("a {3 = 1}", 4, "expected an attribute's name but found '3'");
  expect_rejection("a {x = )}", 8, "expected an attribute's value but found ')'");
  expect_rejection("a {x = maybe}", 8, "expected an attribute's value but found 'maybe'");
  expect_rejection("a {x = -nan}", 9, "expected a number but found 'nan'");
  expect_rejection("a {x = [1, 2.0]}", 8,
                   "the entries of a list must be of one kind: write floats as 1.0");
  expect_rejection("a {x = [true]}", 9, "a list holds integers, floats or strings");
  expect_rejection("a {x = [[1]]}", 9, "expected a number or a string but found '['");
  expect_rejection("a {x = 99999999999999999999}", 8, "99999999999999999999 is out of range");
  expect_rejection("a {x = 1e999}", 8, "1e999 is out of range");
  std::string many;
  for (int i = 0; i <= 256; ++i) many += (i > 0 ? ", a" : "a") + std::to_string(i) + " = 1";
  expect_rejection("a {" + many + "}", 2454, "the op has too many attributes");
  expect_rejection("a {x = 1e}", 8, "expected a number but found '1e'");
}

TEST(Text, RejectsBrokenTypesAndExtras) {
  expect_rejection("%a = a : f33[]", 10, "expected a type such as f32[?, 784] but found 'f33'");
  expect_rejection("%a = a : f32[x]", 14,
                   "expected a dimension: a number, ?, 256?, L or 16?L but found 'x'");
  expect_rejection("%a = a : f32[1.5]", 14, "expected a dimension: a number, ?, 256?, L or 16?L");
  expect_rejection("%a = a : f32[LLLLL]", 14, "256? 16?L 'LLLLL'");
  expect_rejection("%a = a : f32[4LM]", 15, "expected ']' but found 'LM'");
  expect_rejection("%a = a : f32[L?]", 15, "expected ']' but found '?'");
  expect_rejection("%a = a : f32[2]{3}", 17, "expected a layout such as nChw16c but found '3'");
  for (const char* layout :
       {"z", "n", "nn", "nC", "nc2", "nc2C", "NC02n", "nC99999999999999999999c"}) {
    expect_rejection("%a = a : f32[2, 3]{" + std::string(layout) + "}", 20,
                     "'" + std::string(layout) + "' is not a layout of a tensor of rank 2");
  }
  expect_rejection("a [sideways]", 4, "expected a role, param, scope or #id but found 'sideways'");
  expect_rejection("a [#x]", 5, "expected an id but found 'x'");
  expect_rejection("a [#-1]", 1, "an op's id is out of range");
  expect_rejection("a [param w]", 10, "expected a parameter's name in quotes but found 'w'");
  expect_rejection("a [scope w]", 10, "expected a scope's name in quotes but found 'w'");
  expect_rejection("a @ 3", 5, "expected a place such as \"mnist.cpp:13\" but found '3'");
}

TEST(Text, RejectsBrokenFiles) {
  expect_user_error([] { parse("", "t.fir"); },
                    "t.fir:1:1: expected 'program' but found the end of the file");
  expect_user_error([] { parse("program @p {", "t.fir"); },
                    "t.fir:1:13: expected a statement, a graph or '}' but found the end");
  expect_user_error([] { parse("program @p {}\n\"x\"", "t.fir"); },
                    "t.fir:2:1: expected the end of the file but found the string \"x\"");
}

}  // namespace
}  // namespace fluid::ir::text_test
