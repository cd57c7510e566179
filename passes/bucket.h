#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

/// Alignment of the tensors in a bucket, in elements. For every float dtype, the alignment in bytes
/// is a multiple of the 64-byte cache line.
inline constexpr int64_t kBucketAlignment = 32;

/// Number of elements that a tensor takes in a bucket, padding included: numel rounded up to a
/// multiple of kBucketAlignment. Does not depend on the dtype of the bucket.
inline int64_t bucket_elements(const Type& type) {
  const int64_t elements = type.bytes_at(1) / size_of(type.dtype);
  return (elements + kBucketAlignment - 1) / kBucketAlignment * kBucketAlignment;
}
inline int64_t bucket_bytes(const Type& type) {
  return bucket_elements(type) * size_of(type.dtype);
}

/// A process's shard of a bucket or of a parameter: the elements [begin, end).
struct BucketShard {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// The shard of process `rank` of `world` in a bucket of `elements` elements. All shards have the
/// same size, a multiple of kBucketAlignment, except the last ones, which may be smaller or empty.
inline BucketShard bucket_shard(int64_t elements, int64_t world, int64_t rank) {
  const int64_t lines = (elements + kBucketAlignment - 1) / kBucketAlignment;
  const int64_t each = (lines + world - 1) / world * kBucketAlignment;
  return {std::min(rank * each, elements), std::min((rank + 1) * each, elements)};
}

}  // namespace fluid
