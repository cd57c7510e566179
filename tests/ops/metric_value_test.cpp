// Values of metrics whose statistics hold samples.

#include <gtest/gtest.h>

#include <cmath>
#include <variant>
#include <vector>

#include "ops/op_def.h"
#include "ops/table.h"

namespace fluid::metric_value_test {
namespace {

/// `rows`: scores and label of each sample.
double roc_auc_of(const std::vector<double>& rows, int64_t classes) {
  return std::get<Metric>(*find_op("roc_auc")->effects).value(rows, {{"classes", classes}});
}

TEST(RocAuc, OfALabelThatIsNoClassIsNaN) {
  EXPECT_EQ(roc_auc_of({0.1, 0, 0.9, 1, 0.2, 0}, 2), 1);
  EXPECT_TRUE(std::isnan(roc_auc_of({0.1, 0, 0.9, 1, 0.2, 2}, 2)));
  EXPECT_TRUE(std::isnan(roc_auc_of({0.1, 0, 0.9, 1, 0.2, -1}, 2)));
  const std::vector<double> scores = {1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 2};
  EXPECT_EQ(roc_auc_of(scores, 3), 1);
  std::vector<double> rows = scores;
  rows.insert(rows.end(), {0, 0, 1, 3});
  EXPECT_TRUE(std::isnan(roc_auc_of(rows, 3)));
}

}  // namespace
}  // namespace fluid::metric_value_test
