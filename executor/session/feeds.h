#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// How the elements of a channel, dimension 1, are normalised: (x - mean) / std.
struct Channel {
  double mean = 0;
  double std = 1;
};
/// Of a `data` op with attributes `mean` and `std`: one for each channel, one for all, or none.
std::vector<Channel> channels_of(const ir::Op& data);

/// A feed as a compiled step takes it.
struct Feed {
  std::string name;
  DType recorded = DType::f32;  ///< what the user declared, and feeds
  Type type;                    ///< what the step reads
  double scale = 1;             ///< the copy multiplies by this, then normalises:
  std::vector<Channel> channels = {};
  int64_t offset = 0;  ///< in the slot
  Loc loc;
};

/// Throws UserError unless `batch` has every feed in its dtype and shape, and no column beyond
/// `known`, the names of all feeds of the program. u8 fits any float feed, and f64 an f32 one: a
/// process says on stderr once that it rounds.
void check_feeds(const Batch& batch, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& known);

/// Copies `samples` samples of a checked column, from sample `first` on, into `to`, converted to
/// the step's dtype, scaled and normalised. A column without a batch extent is copied whole.
void copy_feed(const Tensor& column, const Feed& feed, int64_t first, int64_t samples,
               std::byte* to, int threads);

}  // namespace fluid
