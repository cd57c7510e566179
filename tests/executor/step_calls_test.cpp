// The loops of a step list, against the calls of unrolled scans.

#include "executor/device/step_calls.h"

#include <gtest/gtest.h>

#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "executor/host/host_cpu.h"
#include "frontend/fluid.h"
#include "passes/pass.h"

namespace fluid::step_calls_test {
namespace {

/// The calls of `list` in the order in which they run: those of loops once per step.
std::vector<StepCall> in_execution_order(const std::vector<StepCall>& list) {
  std::vector<StepCall> calls;
  for (size_t begin = 0, end = 0; begin < list.size(); begin = end) {
    const auto loop_of = [&](size_t i) { return list[i].loop ? list[i].loop->id : 0; };
    for (end = begin + 1; end < list.size() && loop_of(end) == loop_of(begin);) ++end;
    const int64_t steps = list[begin].loop ? list[begin].loop->steps : 1;
    for (int64_t step = 0; step < steps; ++step) {
      for (size_t i = begin; i < end; ++i) {
        StepCall& call = calls.emplace_back(list[i]);
        if (!call.loop) continue;
        const CallLoop::Phase phase = CallLoop::phase_of(step, steps);
        if (phase != CallLoop::kFirst) call.refs = call.loop->refs[phase - size_t{1}];
        for (size_t b = 0; b < call.refs.size(); ++b) {
          call.refs[b].offset += CallLoop::distance(step, phase) * call.loop->strides[b];
        }
      }
    }
  }
  return calls;
}

/// Returns the number of calls of the step list of `net`.
size_t expect_loops_visit_the_buffers_of_unrolled_steps(const Program& net) {
  const auto program = net.ir().clone();
  const Options options{.mode = Mode::train, .batch = 3};
  run_passes(*program, pipeline(options), options, CpuTarget(describe_host(2)));
  const MemoryPlan plan = memory_plan(*program, options);
  const auto loops = step_calls(program->main(), plan, options, ScanLowering::loops);
  const auto expected = step_calls(program->main(), plan, options, ScanLowering::unrolled);
  const std::vector<StepCall> calls = in_execution_order(loops);
  EXPECT_EQ(calls.size(), expected.size());
  for (size_t i = 0; i < std::min(calls.size(), expected.size()); ++i) {
    EXPECT_EQ(calls[i].op, expected[i].op) << i;
    EXPECT_EQ(calls[i].copy_bytes, expected[i].copy_bytes) << i;
    EXPECT_EQ(calls[i].workspace.offset, expected[i].workspace.offset) << i;
    EXPECT_EQ(calls[i].refs.size(), expected[i].refs.size()) << i;
    for (size_t b = 0; b < std::min(calls[i].refs.size(), expected[i].refs.size()); ++b) {
      EXPECT_EQ(calls[i].refs[b].region, expected[i].refs[b].region) << i << " " << b;
      EXPECT_EQ(calls[i].refs[b].offset, expected[i].refs[b].offset) << i << " " << b;
      EXPECT_EQ(calls[i].refs[b].variable, expected[i].refs[b].variable) << i << " " << b;
    }
  }
  return loops.size();
}

/// A bidirectional LSTM on sequences of `length` elements. With 3 units, the elements are not
/// aligned, so steps work on copies of them.
Program recurrent(int64_t length, int64_t units) {
  Program net("recurrent");
  const Value x = net.data("x", {kBatch, length, 2}, f32);
  const Value y = lstm(x, {.units = units, .bidirectional = true}).output;
  const Value loss = mean(square(y));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  return net;
}

TEST(StepCalls, LoopsVisitTheBuffersOfUnrolledSteps) {
  for (const int64_t length : {1, 3, 4, 5, 9, 10}) {
    for (const int64_t units : {3, 16}) {
      SCOPED_TRACE(std::to_string(length) + " steps of " + std::to_string(units) + " units");
      expect_loops_visit_the_buffers_of_unrolled_steps(recurrent(length, units));
    }
  }
}

TEST(StepCalls, DoNotGrowWithTheStepsOfAScan) {
  const auto calls = [](int64_t length) {
    return expect_loops_visit_the_buffers_of_unrolled_steps(recurrent(length, 16));
  };
  EXPECT_EQ(calls(8), calls(200));
}

/// A scan over rows in whose steps a scan over columns runs: only the inner one is a loop.
TEST(StepCalls, AnOuterScanIsUnrolled) {
  Program net("nested");
  const Value x = net.data("x", {6, 5, kBatch}, f32),
              w = net.parameter("w", {1}, Init::constant(1));
  const Value zero = scalar_like(x, 0) * sum(x, {.axes = {0, 1}});
  const ScanResult rows = scan({zero}, {x * w}, [&](const Values& carry, const Values& row) {
    const ScanResult columns = scan({carry[0]}, {row[0]}, [&](const Values& c, const Values& e) {
      return ScanStep{.carries = {tanh(c[0] + e[0])}};
    });
    return ScanStep{.carries = {columns.carries[0]}};
  });
  const Value loss = sum(rows.carries[0]);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  expect_loops_visit_the_buffers_of_unrolled_steps(net);
}

}  // namespace
}  // namespace fluid::step_calls_test
