#pragma once

#include <cmath>
#include <cstdint>

#include "frontend/readers/column_table.h"

namespace fluid {

/// Mean and standard deviation of values that are added one by one (Welford 1962), or as the
/// moments of other values (Chan, Golub, LeVeque 1983).
class RunningMoments {
 public:
  void add(double value) {
    ++count_;
    const double difference = value - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference * (value - mean_);
  }
  void add(const RunningMoments& other) {
    if (other.count_ == 0) return;
    const auto both = static_cast<double>(count_ + other.count_);
    const double share = static_cast<double>(other.count_) / both;
    const double difference = other.mean_ - mean_;
    squares_ += other.squares_ + difference * difference * static_cast<double>(count_) * share;
    mean_ += difference * share;
    count_ += other.count_;
  }
  int64_t count() const { return count_; }
  /// Returns the moments of the values, of which there must be one.
  ColumnTable::Moments moments() const {
    const double std = std::sqrt(squares_ / static_cast<double>(count_));
    return {mean_, std > 0 ? std : 1};
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  ///< sum of the squared distances from the mean
};

}  // namespace fluid
