// One Executor used by several threads: invalid uses are rejected, and valid ones work.

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "executor/executor.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::two_threads_test {
namespace {

Program scaled() {
  Program net("scaled");
  net.output("y", net.data("x", {kBatch, 2}, f32) * 3.0f);
  return net;
}

Batch batch_of(float value) {
  Batch batch{.size = 1};
  batch.columns.emplace_back("x", Tensor::of<float>({1, 2}, std::vector<float>{value, -value}));
  return batch;
}

/// Returns the message that `work` throws in another thread; "" if it throws nothing.
std::string thrown_in_a_thread(const std::function<void()>& work) {
  std::string what;
  std::thread thread([&] {
    try {
      work();
    } catch (const UserError& e) {
      what = e.what();
    }
  });
  thread.join();
  return what;
}

/// A program that rejects labels beyond 1.
Program classifier() {
  Program net("classifier");
  const Value x = net.data("x", {kBatch, 2}, f32);
  net.output("loss", mean(softmax_cross_entropy(x, net.data("label", {kBatch}, i64))));
  return net;
}

TEST(TwoThreads, AreRejectedInOneExecutor) {
  const TempDir dir;
  std::function<void()> within;
  ExecutorOptions options{.batch = 1};
  options.find_sample = [&](const std::string&, int64_t) {
    within();  // this thread is in a call of the executor
    return std::string();
  };
  Executor executor(classifier(), cpu(), options);
  Batch batch = batch_of(2);
  batch.columns.emplace_back("label", Tensor::of<int64_t>({1}, std::vector<int64_t>{5}));
  const std::function<void()> calls[] = {[&] { executor.run(batch); },
                                         [&] { executor.eval(batch); },
                                         [&] { executor.predict(batch); },
                                         [&] { executor.prepare({.eval = {3}}); },
                                         [&] { executor.save(dir.file("f")); },
                                         [&] { executor.load(dir.file("f")); },
                                         [&] { executor.parameters(); },
                                         [&] { executor.nonfinite_parameters(); },
                                         [&] { executor.set_parameter("w", Tensor(f32, {})); },
                                         [&] { executor.snapshot(); },
                                         [&] { executor.restore({}); },
                                         [&] { executor.memory(); }};
  int refused = 0;
  within = [&] {
    for (const auto& call : calls) {
      EXPECT_EQ(thrown_in_a_thread(call),
                "an Executor is used by two threads at once: give each thread an Executor of its "
                "own, or let threads take turns");
      ++refused;
    }
    EXPECT_TRUE(executor.parameters().empty()) << "calls of one thread may nest";
  };
  expect_user_error([&] { executor.run(batch); }, "label");
  EXPECT_EQ(refused, 12);
  within = [] {};
  expect_user_error([&] { executor.eval(batch); }, "label");
  EXPECT_EQ(thrown_in_a_thread([&] { executor.parameters(); }), "") << "threads may take turns";
}

TEST(TwoThreads, GoOnAfterACallThatFailed) {
  Executor executor(scaled(), cpu(), {.batch = 2, .strict_shapes = true});
  expect_user_error([&] { executor.eval(batch_of(1)); }, "was not prepared");
  EXPECT_EQ(thrown_in_a_thread([&] { executor.prepare({.eval = {1}}); }), "");
  EXPECT_EQ(executor.eval(batch_of(1))["y"].at(1), -3);
}

TEST(TwoThreads, ServeWithAnExecutorEach) {
  const TempDir cache;
  const Program program = scaled();
  std::vector<float> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      Executor executor(program, cpu(), {.threads = 1, .cache_dir = cache.path()});
      executor.prepare({.predict = {1}});
      for (int n = 0; n < 10; ++n) {
        results[i] += executor.predict(batch_of(static_cast<float>(i)))["y"].as<float>()[0];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<float>{0, 30, 60, 90}));
}

}  // namespace
}  // namespace fluid::two_threads_test
