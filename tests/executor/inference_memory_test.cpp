// Tests the memory of inference: only parameters, and no initialiser if a file provides the values.

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ir/parse.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::inference_memory_test {
namespace {

/// Bytes of the parameters and states that files hold.
int64_t recorded_bytes(Executor& exe) {
  int64_t bytes = 0;
  for (const std::string& name : exe.parameters()) bytes += exe.parameter(name).bytes();
  return bytes;
}

Program adam_net() {
  Program net = mnist_fluid_program();
  for (const ir::Output& o : net.ir().main().outputs) {
    if (o.name == "loss") minimize(o.value, Adam{.lr = 0.01});
  }
  return net;
}

TEST(InferenceMemory, HoldsParametersWithoutTheOptimizersState) {
  const Program net = adam_net();
  Executor exe(net, cpu());
  exe.prepare({.eval = {4}, .predict = {4}});
  const int64_t recorded = recorded_bytes(exe);
  EXPECT_LT(exe.memory().state, recorded + (4 << 10));  // each is aligned, and a few counters
  exe.prepare({.train = {4}});
  EXPECT_GE(exe.memory().state, 3 * recorded);
}

TEST(InferenceMemory, TrainingMayBeginAfterInference) {
  const Program net = adam_net();
  const Batch batch = digit_batch(4);
  Executor late(net, cpu()), soon(net, cpu());
  late.prepare({.eval = {4}});
  const double before = late.eval(batch)["loss"].item();
  late.prepare({.train = {4}});
  soon.prepare({.train = {4}, .eval = {4}});
  EXPECT_EQ(soon.eval(batch)["loss"].item(), before);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(late.run(batch)["loss"].item(), soon.run(batch)["loss"].item());
  EXPECT_EQ(parameter_bytes(late), parameter_bytes(soon));
}

TEST(InferenceMemory, CompilesNoInitialiserOfWhatAFileGives) {
  const TempDir dir;
  const std::string path = dir.file("net.safetensors");
  const Program net = adam_net();
  const Batch batch = digit_batch(4);
  Executor from(net, cpu(), {.seed = 7});
  from.prepare({.predict = {4}});
  from.save(path);
  Executor to(net, cpu());
  to.load(path);
  to.prepare({.predict = {4}});
  EXPECT_LT(num_kernels(to), num_kernels(from));
  const OutputViews expected = from.predict(batch), given = to.predict(batch);
  for (int64_t i = 0; i < expected["prob"].numel(); ++i) {
    EXPECT_EQ(given["prob"].at(i), expected["prob"].at(i));
  }
  EXPECT_EQ(parameter_bytes(to), parameter_bytes(from));
}

Program scaled_program(const std::string& init) {
  const std::string text = R"(program @p {
    %x = data "x" : f32[?, 2]
    %w = param "w" {init = ")" +
                           init + R"("} : f32[2]
    %y = mul(%x, %w) : f32[?, 2]
    output "y" = %y
  })";
  return Program(ir::parse(text, "p.fir"));
}

/// The memory of a session comes zeroed.
TEST(InferenceMemory, CompilesNoInitialiserOfZeros) {
  const Program zeros = scaled_program("zeros"), ones = scaled_program("ones");
  Executor from_zeros(zeros, cpu()), from_ones(ones, cpu());
  for (Executor* exe : {&from_zeros, &from_ones}) exe->prepare({.predict = {4}});
  EXPECT_EQ(num_kernels(from_zeros), 1);
  EXPECT_EQ(num_kernels(from_ones), 2);
  EXPECT_EQ(from_zeros.parameter("w").at(1), 0);
  EXPECT_EQ(from_ones.parameter("w").at(1), 1);
  EXPECT_EQ(from_zeros.snapshot().find("w")->value.at(1), 0) << "it has a value";
}

TEST(InferenceMemory, WhatWasLoadedFirstIsTrainedFurther) {
  const TempDir dir;
  const std::string path = dir.file("net.safetensors");
  const Program net = adam_net();
  const Batch batch = digit_batch(4);
  Executor from(net, cpu(), {.seed = 7});
  from.save(path);  // nothing is prepared
  Executor first(net, cpu()), then(net, cpu());
  first.load(path);
  first.prepare({.train = {4}});
  then.prepare({.train = {4}});
  then.load(path);
  EXPECT_EQ(first.run(batch)["loss"].item(), then.run(batch)["loss"].item());
  EXPECT_EQ(parameter_bytes(first), parameter_bytes(then));
}

TEST(InferenceMemory, StatisticsOfABatchNormMayBeOutputs) {
  Program net("statistics");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const Value y = batch_norm(x, {});
  net.output("y", y);
  net.output("mean", Value(y.op(), 1));
  net.output("var", Value(y.op(), 2));
  Executor exe(net, cpu(), {.batch = 4});
  exe.prepare({.eval = {4}, .predict = {4}});
  Tensor data(f32, {4, 2});
  for (int i = 0; i < 8; ++i) data.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  const Batch batch{.size = 4, .columns = {{"x", data}}};
  EXPECT_EQ(exe.eval(batch)["mean"].at(1), 0);  // the running statistics, as they begin
  EXPECT_EQ(exe.predict(batch)["var"].at(0), 1);
}

}  // namespace
}  // namespace fluid::inference_memory_test
