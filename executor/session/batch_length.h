#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// Reads the length of a step (kLength) from the shapes of a batch's columns.
class BatchLength {
 public:
  explicit BatchLength(const ir::Program& recorded);

  /// Whether a shape in the program depends on the length.
  bool is_used() const { return is_used_; }
  /// Returns the length of the step for `batch`; 1 for a program without kLength. Does not
  /// allocate. Throws UserError if no column determines the length, if the lengths of two columns
  /// differ, or if the length is 0.
  int64_t of(const Batch& batch) const;
  /// Returns the sequence length for which to prepare a step. For a program with kLength, returns
  /// `length`, which must be at least 1. For a program without kLength, returns 1, and `length`
  /// must be 0. Throws UserError for any other `length`.
  int64_t checked(int64_t length) const;

 private:
  /// A feed dimension whose extent is a multiple of the length.
  struct FeedDim {
    std::string feed;
    size_t axis = 0;
    Type type;  ///< declared type of the feed
    Loc loc;
  };
  static int64_t length_in(const FeedDim& dim, const Tensor& column, int64_t samples);

  bool is_used_ = false;
  std::vector<FeedDim> dims_;
};

}  // namespace fluid
