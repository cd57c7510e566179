#include "passes/offsets.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fluid {
namespace {

bool overlap_in_time(const Buffer& a, const Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The offset of the smallest gap between `placed` (sorted by offset) that takes `wanted`.
int64_t best_gap(const std::vector<const Buffer*>& placed, const Buffer& wanted) {
  int64_t best = -1, smallest = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Buffer* b : placed) {
    if (!overlap_in_time(*b, wanted)) continue;
    const int64_t gap = b->offset - end;
    if (gap >= wanted.bytes && gap < smallest) {
      best = end;
      smallest = gap;
    }
    end = std::max(end, b->offset + b->bytes);
  }
  return best >= 0 ? best : end;
}

int64_t place(std::vector<Buffer>& buffers, const std::vector<size_t>& order) {
  std::vector<const Buffer*> placed;
  int64_t end = 0;
  for (size_t i : order) {
    Buffer& b = buffers[i];
    if (b.bytes == 0) continue;
    b.offset = best_gap(placed, b);
    end = std::max(end, b.offset + b.bytes);
    placed.insert(std::ranges::upper_bound(placed, b.offset, {}, &Buffer::offset), &b);
  }
  return end;
}

double lifetime(const Buffer& b) { return b.last - b.first + 1; }

template <class Before>
std::vector<size_t> ordered(const std::vector<Buffer>& buffers, Before before) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return before(buffers[a], buffers[b]); });
  return order;
}

}  // namespace

int64_t assign_offsets(std::vector<Buffer>& buffers) {
  const std::vector<std::vector<size_t>> orders = {
      ordered(buffers, [](const Buffer& a, const Buffer& b) { return a.bytes > b.bytes; }),
      ordered(buffers,
              [](const Buffer& a, const Buffer& b) {
                return static_cast<double>(a.bytes) * lifetime(a) >
                       static_cast<double>(b.bytes) * lifetime(b);
              }),
      ordered(buffers, [](const Buffer& a, const Buffer& b) { return a.first < b.first; }),
  };
  int64_t lowest = std::numeric_limits<int64_t>::max();
  std::vector<Buffer> best;
  for (const std::vector<size_t>& order : orders) {
    std::vector<Buffer> candidate = buffers;
    const int64_t end = place(candidate, order);
    if (end >= lowest) continue;
    lowest = end;
    best = std::move(candidate);
  }
  buffers = std::move(best);
  return lowest;
}

}  // namespace fluid
