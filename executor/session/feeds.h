#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

/// Normalisation of one channel (dimension 1): (x - mean) / std.
struct ChannelNorm {
  double mean = 0;
  double std = 1;
};
/// Reads the attributes `mean` and `std` of a `data` op. Returns one entry per channel, or one
/// entry that applies to all channels. Empty without normalisation.
std::vector<ChannelNorm> channel_norms_of(const ir::Op& data);

/// A feed of a compiled step.
struct Feed {
  std::string name;
  DType declared_dtype = DType::f32;  ///< dtype of the feed in the recorded program
  Type type;                          ///< type of the buffer that the step reads
  double scale = 1;                   ///< factor that copy_feed() applies before normalisation
  std::vector<ChannelNorm> channels = {};
  int64_t offset = 0;  ///< in bytes, from the start of the feed slot
  Loc loc;
};

/// Whether the dtype and the shape of `column`, of a batch of `samples` samples, match `feed`: see
/// check_feeds().
bool matches_feed(const Feed& feed, const Tensor& column, int64_t samples);

/// Throws UserError unless `batch` has a column of matching dtype and shape for every feed. Also
/// throws for a column that is not in `feed_names`, the names of all feeds of the program. A u8
/// column matches any float feed. An f64 column matches an f32 feed and is rounded; the first
/// rounding in a process is reported on stderr.
void check_feeds(const Batch& batch, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& feed_names);

/// Copies the samples [first, first + samples) of `column` to `to`: converts them to the step's
/// dtype, scales and normalises them. Copies the whole column if it has no batch dimension.
/// check_feeds() must have accepted the column.
void copy_feed(const Tensor& column, const Feed& feed, int64_t first, int64_t samples,
               std::byte* to, int threads);

/// Returns the index of the first finite element of `value` that overflows to infinity in `dtype`;
/// nullopt if there is none.
std::optional<int64_t> first_overflow(const Tensor& value, DType dtype);

/// Throws UserError if a finite element of `value` overflows to infinity in `dtype`. `tensor_name`:
/// name of the tensor in the message.
void check_no_overflow(const Tensor& value, DType dtype, const std::string& tensor_name);

}  // namespace fluid
