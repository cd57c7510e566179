// Values that a kernel computes in several places: each has one rounding, and what looks at data
// looks at nothing else.

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "ir/parse.h"

namespace fluid::shared_values_test {
namespace {

Program parsed(const std::string& text) { return Program(ir::parse(text, "test.fir")); }

/// How many columns of a * b + c hold their maximum or minimum: all do. `dtype` of all values.
int64_t columns_hit(const std::string& extremum, const std::string& dtype, bool store_product) {
  const std::string text = R"(program @m {
  %x = param "x" {init = "normal"} : T[64, 40]
  %p = param "p" {init = "normal"} : T[40]
  %h = param "h" {init = "normal"} : T[40]
  %v = mul(%x, %p) : T[64, 40]
  %y = add(%v, %h) : T[64, 40]
  %m = EXTREMUM(%y) {axes = [0], keep_dims = true} : T[1, 40]
  %e = equal(%y, %m) : bool[64, 40]
  %hits = sum(%e) : i64[]
  output "hits" = %hits
  STORED
})";
  std::string filled = text;
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (size_t at = filled.find(what); at != std::string::npos; at = filled.find(what, at)) {
      filled.replace(at, what.size(), by);
    }
  };
  replace("T[", dtype + "[");
  replace("EXTREMUM", extremum);
  replace("STORED", store_product ? "output \"v\" = %v" : "");
  const Program program = parsed(filled);
  Executor exe(program, cpu(), {.batch = 1});
  return exe.run(Batch{.size = 1})["hits"].integer(0);
}

TEST(SharedValues, AMaximumIsEqualToTheElementThatItIs) {
  for (const char* extremum : {"max", "min"}) {
    for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
      for (const bool stored : {false, true}) {
        const int64_t hits = columns_hit(extremum, dtype, stored);
        const bool ties = dtype[0] == 'b' || dtype[1] == '1';  // half precision has few values
        EXPECT_TRUE(ties ? hits >= 40 && hits < 50 : hits == 40)
            << extremum << " " << dtype << (stored ? ", product stored: " : ": ") << hits;
      }
    }
  }
}

/// LLVM hoists what depends on a bad lane being there above the test that one is.
TEST(SharedValues, GoodLabelsAreNotLookedUpAsBadOnes) {
  const Program program = parsed(R"(program @p {
  %x = data "x" : f32[?, 13]
  %p = param "p" : f32[1, 13]
  %v1 = mul(%x, %p) : f32[?, 13]
  %z = reshape(%v1) {to = f32[?, 13, 1, 1]} : f32[?, 13, 1, 1]
  %l = data "l" : i64[?, 13, 1]
  %c = softmax_cross_entropy(%z, %l) : f32[?, 13, 1]
  %k = param "k" : f32[1, 5]
  %a = matmul(%c, %k) : f32[?, 13, 5]
  %b = mean(%a) {axes = [0, 1]} : f32[5]
  %t = tanh(%b) : f32[5]
  %s = sum(%t) : f32[]
  %q = param "q" : f32[1, 13, 1]
  %d = matmul(%c, %q) {transpose_a = true} : f32[?, 1, 1]
  %n = mean(%d) : f32[]
  %loss = add(%s, %n) : f32[]
  output "loss" = %loss
  train(%loss) {optimizer = "momentum", lr = 1.0}
})");
  Tensor x(f32, {3, 13});
  std::ranges::fill(x.as<float>(), 1.0f);
  const Batch batch{.size = 3, .columns = {{"x", x}, {"l", Tensor(i64, {3, 13, 1})}}};
  Executor exe(program, cpu(), {.batch = 3});
  EXPECT_EQ(exe.run(batch)["loss"].item(), 0);  // there is only one class
}

}  // namespace
}  // namespace fluid::shared_values_test
