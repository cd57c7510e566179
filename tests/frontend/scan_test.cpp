// Tests the ops that scan() records and the calls that it rejects. executor.Scan tests its numbers.

#include "frontend/scan.h"

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/program.h"
#include "frontend/random.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/scan.h"
#include "tests/support/errors.h"

namespace fluid::scan_test {
namespace {

const Loc kAt{"net.cpp", 7};

class Scan : public ::testing::Test {
 protected:
  void expect_rejection(const Values& carries, const Values& sequences, const ScanBody& body,
                        const std::string& message, const ScanOptions& options = {}) {
    expect_user_error([&] { scan(carries, sequences, body, options, kAt); },
                      "net.cpp:7: scan: " + message);
  }

  Program net_{"net"};
  Value start_ = net_.data("start", {kBatch, 3}, f32);
  Value x_ = net_.data("x", {5, kBatch, 3}, f32);
};

ScanStep add_element(const Values& carries, const Values& elements) {
  return {.carries = {carries[0] + elements[0]}};
}

ScanStep keep(const Values& carries, const Values&) { return {.carries = carries}; }

TEST_F(Scan, ResultsAreFinalCarriesAndCollectedSequences) {
  const Value w = net_.data("w", {3, 2}, f32);
  const ScanResult result =
      scan({start_}, {x_}, [&](const Values& carries, const Values& elements) {
        const Value next = carries[0] + elements[0];
        return ScanStep{.carries = {next}, .collected = {matmul(next, w), elements[0], w}};
      });
  ASSERT_EQ(result.carries.size(), 1u);
  ASSERT_EQ(result.collected.size(), 3u);
  EXPECT_EQ(result.carries[0].type(), start_.type());
  EXPECT_EQ(result.collected[0].type(), (Type{f32, {5, kBatch, 2}, {}}));
  EXPECT_EQ(result.collected[1].type(), x_.type());
  EXPECT_EQ(result.collected[2].type(), (Type{f32, {5, 3, 2}, {}}));
}

TEST_F(Scan, StepsAreGivenWithoutSequences) {
  const ScanResult result =
      scan({start_}, {},
           [](const Values& carries, const Values&) {
             return ScanStep{.carries = {carries[0] * 0.5}, .collected = carries};
           },
           {.steps = 4});
  EXPECT_EQ(result.collected.at(0).type(), (Type{f32, {4, kBatch, 3}, {}}));
}

TEST_F(Scan, RejectsWrongSequences) {
  const Value scalar = net_.data("scalar", Shape{}, f32), batch = net_.data("b", {kBatch, 3}, f32),
              other = net_.data("other", {4, 3}, f32), empty = net_.data("empty", {0, 3}, f32);
  expect_rejection({start_}, {scalar}, add_element,
                   "the sequence f32[] has no constant first dimension");
  expect_rejection({start_}, {batch}, add_element,
                   "the sequence f32[?, 3] has no constant first dimension");
  expect_rejection({start_}, {x_, other}, add_element, "the sequence f32[4, 3] has not 5 elements");
  expect_rejection({start_}, {x_}, add_element, "the sequence f32[5, ?, 3] has not 6 elements",
                   {.steps = 6});
  expect_rejection({start_}, {empty}, add_element,
                   "needs a sequence that is not empty, or a number of steps");
}

TEST_F(Scan, RejectsWrongNumbersOfSteps) {
  expect_rejection({start_}, {x_}, add_element, "cannot take -1 steps", {.steps = -1});
  expect_rejection({start_}, {}, keep, "needs a sequence that is not empty, or a number of steps");
}

TEST_F(Scan, RejectsValuesThatAreNotOfTheProgram) {
  Program other("other");
  const Value stranger = other.data("x", {5, kBatch, 3}, f32);
  expect_rejection({}, {}, keep, "needs a carry or a sequence", {.steps = 2});
  expect_rejection({Value()}, {x_}, keep, "the input is an empty value");
  expect_rejection({start_}, {Value()}, keep,
                   "a carry or sequence is empty or belongs to another program");
  expect_rejection({start_}, {stranger}, keep,
                   "a carry or sequence is empty or belongs to another program");
  const std::string of_step = "a step returns an empty value or a value of another program";
  for (const Value v : {Value(), stranger}) {
    const auto carry = [v](const Values&, const Values&) { return ScanStep{.carries = {v}}; };
    expect_rejection({start_}, {x_}, carry, of_step);
    const auto collected = [v](const Values& carries, const Values&) {
      return ScanStep{.carries = carries, .collected = {v}};
    };
    expect_rejection({start_}, {x_}, collected, of_step);
  }
}

TEST_F(Scan, RejectsStepsThatDoNotKeepTheCarries) {
  const auto twice = [](const Values& carries, const Values&) {
    return ScanStep{.carries = {carries[0], carries[0]}};
  };
  expect_rejection({start_}, {x_}, twice, "a step returns 2 carries, not 1");
  const auto longer = [](const Values& carries, const Values& elements) {
    return ScanStep{.carries = {carries[0], concat({carries[1], elements[0]}, {.axis = 1})}};
  };
  expect_rejection({start_, start_}, {x_}, longer,
                   "carry 1 begins as f32[?, 3], but a step makes it f32[?, 6]");
  const auto wider = [](const Values& carries, const Values&) {
    return ScanStep{.carries = {cast(carries[0], f64)}};
  };
  expect_rejection({start_}, {x_}, wider,
                   "carry 0 begins as f32[?, 3], but a step makes it f64[?, 3]");
}

TEST_F(Scan, RejectsOpsThatDrawOrTrain) {
  const Loc inner{"net.cpp", 9};
  const auto drop = [&](const Values& carries, const Values&) {
    return ScanStep{.carries = {dropout(carries[0], {.p = 0.5}, inner)}};
  };
  expect_rejection({start_}, {x_}, drop,
                   "its body holds dropout of net.cpp:9, which draws random numbers: draw them "
                   "outside the scan, as a sequence");
  const auto normalize = [&](const Values& carries, const Values&) {
    return ScanStep{.carries = {batch_norm(carries[0], {}, inner)}};
  };
  expect_rejection(
      {start_}, {x_}, normalize,
      "its body holds batch_norm of net.cpp:9, which computes other values in training "
      "than in inference");
  const auto derive = [&](const Values& carries, const Values&) {
    return ScanStep{.carries = gradients(square(carries[0]), {carries[0]}, inner)};
  };
  expect_rejection({start_}, {x_}, derive,
                   "its body holds gradients of net.cpp:9, which takes gradients");
}

TEST_F(Scan, RejectsOutputsOfOneStep) {
  const auto body = [&](const Values& carries, const Values& elements) {
    net_.output("h", carries[0] + elements[0]);
    return ScanStep{.carries = carries};
  };
  expect_rejection({start_}, {x_}, body, "output 'h' is a value of one step: collect it");
}

TEST_F(Scan, NeedsItsBody) {
  const ir::Op* op = net_.ir().main().append("scan", {start_},
                                             {{"body", GraphRef{"absent"}},
                                              {"carries", int64_t{1}},
                                              {"sequences", int64_t{0}},
                                              {"steps", int64_t{2}},
                                              {"reverse", false}},
                                             {start_.type()}, kAt);
  expect_user_error([&] { verify_scan(*op); }, "net.cpp:7: scan: there is no graph 'absent'");
}

TEST_F(Scan, LeavesTheProgramAsItWasWhenItFails) {
  const size_t ops = net_.ir().main().ops.size();
  for (const bool invalid : {false, true}) {
    expect_user_error(
        [&] {
          scan({start_}, {x_}, [&](const Values& carries, const Values& elements) {
            scan({carries[0]}, {}, keep, {.steps = 2});
            if (invalid) return ScanStep{.carries = {sum(carries[0])}};
            return ScanStep{.carries = {carries[0] + elements[0] + start_ + x_}, .collected = {{}}};
          });
        },
        invalid ? "carry 0" : "empty value");
    EXPECT_EQ(net_.ir().main().ops.size(), ops);
    EXPECT_EQ(net_.ir().graphs.size(), 1u);
  }
}

}  // namespace
}  // namespace fluid::scan_test
