#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// A feed as a compiled step takes it.
struct Feed {
  std::string name;
  DType recorded = DType::f32;  ///< what the user declared, and feeds
  Type type;                    ///< what the step reads
  double scale = 1;             ///< the copy multiplies by this
  int64_t offset = 0;           ///< in the slot
  Loc loc;
};

/// Throws UserError unless `batch` has every feed in its dtype and shape, and no column beyond
/// `known`, the names of all feeds of the program.
void check_feeds(const Batch& batch, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& known);

/// Copies a checked column into `to`, converted to the step's dtype and scaled.
void copy_feed(const Tensor& column, const Feed& feed, std::byte* to, int threads);

}  // namespace fluid
