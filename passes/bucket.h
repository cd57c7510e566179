#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

inline constexpr int64_t kBucketLine = 32;  ///< elements: whole cache lines in any float dtype

/// Distance in elements from the start of a tensor in a bucket to the start of the next tensor. The
/// distance does not depend on the dtype of the bucket.
inline int64_t bucket_elements(const Type& type) {
  const int64_t elements = type.bytes_at(1) / size_of(type.dtype);
  return (elements + kBucketLine - 1) / kBucketLine * kBucketLine;
}
inline int64_t bucket_bytes(const Type& type) {
  return bucket_elements(type) * size_of(type.dtype);
}

/// The range of elements [begin, end).
struct BucketShard {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// The shard of process `rank` of `world` in a bucket of `elements`. Shards are multiples of
/// kBucketLine; the last shards may be smaller or empty.
inline BucketShard bucket_shard(int64_t elements, int64_t world, int64_t rank) {
  const int64_t lines = (elements + kBucketLine - 1) / kBucketLine;
  const int64_t each = (lines + world - 1) / world * kBucketLine;
  return {std::min(rank * each, elements), std::min((rank + 1) * each, elements)};
}

}  // namespace fluid
