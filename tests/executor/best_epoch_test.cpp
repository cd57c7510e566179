// Whether the maximum or the minimum of a metric is best.

#include "executor/trainer/best_epoch.h"

#include <gtest/gtest.h>

#include "frontend/fluid.h"
#include "tests/support/errors.h"

namespace fluid::best_epoch_test {
namespace {

TEST(BestEpoch, MaximizesMetricsWhoseLargerValuesAreBetter) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 3}, f32), label = net.data("label", {kBatch}, i64);
  net.output("accuracy", accuracy(x, label));
  net.output("f1", f1_score(x, label));
  net.output("perplexity", perplexity(x, label));
  net.output("loss", mean(softmax_cross_entropy(x, label)));
  Reader validation(Dataset{{{"x", Tensor(f32, {1, 3})}}}, {});
  const auto criterion = [&](const std::string& best) {
    return BestEpoch({.validation = &validation, .best = best}, net, "loss").criterion();
  };
  EXPECT_EQ(criterion("accuracy"), "accuracy:max");
  EXPECT_EQ(criterion("accuracy:min"), "accuracy:min");
  EXPECT_EQ(criterion("f1"), "f1:max");
  EXPECT_EQ(criterion("perplexity"), "perplexity:min");
  EXPECT_EQ(criterion("loss"), "loss:min");
  EXPECT_EQ(criterion(""), "loss:min");
  expect_user_error([&] { criterion("score"); },
                    "best: no scalar output has the name 'score'; there are 'accuracy', 'loss'");
}

}  // namespace
}  // namespace fluid::best_epoch_test
