#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// Normalisation of a channel (dimension 1): (x - mean) / std.
struct Channel {
  double mean = 0;
  double std = 1;
};
/// The normalisation that a `data` op's attributes `mean` and `std` describe: one entry per
/// channel, one for all channels, or none.
std::vector<Channel> channels_of(const ir::Op& data);

/// A feed of a compiled step.
struct Feed {
  std::string name;
  DType recorded = DType::f32;  ///< dtype that the user declared and feeds
  Type type;                    ///< what the step reads
  double scale = 1;             ///< applied by the copy, before normalisation
  std::vector<Channel> channels = {};
  int64_t offset = 0;  ///< bytes from the start of the feed slot
  Loc loc;
};

/// Throws UserError unless `batch` has every feed with its dtype and shape. Also throws for a
/// column not in `known`, the names of all feeds. u8 is accepted for any float feed. f64 is
/// accepted for f32; the first rounding in a process is reported on stderr.
void check_feeds(const Batch& batch, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& known);

/// Copies `samples` samples of a checked column, from sample `first` on, to `to`. Converts to the
/// step's dtype, scales and normalises. A column without a batch dimension is copied whole.
void copy_feed(const Tensor& column, const Feed& feed, int64_t first, int64_t samples,
               std::byte* to, int threads);

/// Index of the first finite element of `value` that overflows to inf in `dtype`.
std::optional<int64_t> first_beyond(const Tensor& value, DType dtype);

/// Throws UserError when a finite element of `value` overflows to inf in `dtype`. `what`: name of
/// the tensor in the message.
void check_range(const Tensor& value, DType dtype, const std::string& what);

}  // namespace fluid
