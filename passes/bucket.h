#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

inline constexpr int64_t kBucketLine = 32;  ///< elements; whole cache lines in every float dtype

/// Elements from the start of a tensor in a bucket to the start of the next: a bucket has one
/// layout whatever its dtype.
inline int64_t bucket_elements(const Type& type) {
  const int64_t elements = type.bytes_at(1) / size_of(type.dtype);
  return (elements + kBucketLine - 1) / kBucketLine * kBucketLine;
}
inline int64_t bucket_bytes(const Type& type) {
  return bucket_elements(type) * size_of(type.dtype);
}

/// Consecutive elements.
struct BucketShare {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// What process `rank` of `world` keeps of a bucket of `elements`: as even as can be, but in whole
/// lines, so that the last ones may have less, or nothing.
inline BucketShare bucket_share(int64_t elements, int64_t world, int64_t rank) {
  const int64_t lines = (elements + kBucketLine - 1) / kBucketLine;
  const int64_t each = (lines + world - 1) / world * kBucketLine;
  return {std::min(rank * each, elements), std::min((rank + 1) * each, elements)};
}

}  // namespace fluid
