#include "passes/offsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace fluid {
namespace {

/// A buffer that has its place.
struct Placed {
  int64_t offset, end;
  int first, last;
};

/// The offset of the smallest gap between `placed` (sorted by offset) that takes `wanted`.
int64_t best_gap(const std::vector<Placed>& placed, const Buffer& wanted) {
  int64_t best = -1, smallest = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed& p : placed) {
    if (p.first > wanted.last || p.last < wanted.first) continue;
    const int64_t gap = p.offset - end;
    if (gap >= wanted.bytes && gap < smallest) {
      best = end;
      smallest = gap;
    }
    end = std::max(end, p.end);
  }
  return best >= 0 ? best : end;
}

int64_t place(std::vector<Buffer>& buffers, const std::vector<size_t>& order) {
  std::vector<Placed> placed;
  placed.reserve(buffers.size());
  int64_t end = 0;
  const auto add = [&](const Buffer& b) {
    end = std::max(end, b.offset + b.bytes);
    placed.insert(std::ranges::upper_bound(placed, b.offset, {}, &Placed::offset),
                  {b.offset, b.offset + b.bytes, b.first, b.last});
  };
  for (const Buffer& b : buffers) {
    if (b.fixed) add(b);
  }
  for (size_t i : order) {
    Buffer& b = buffers[i];
    if (b.bytes == 0 || b.fixed) continue;
    b.offset = best_gap(placed, b);
    add(b);
  }
  return end;
}

int64_t end_of(const std::vector<Buffer>& buffers) {
  int64_t end = 0;
  for (const Buffer& b : buffers) end = std::max(end, b.offset + b.bytes);
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

/// The most bytes in use at once: no plan is smaller.
int64_t most_in_use(const std::vector<Buffer>& buffers) {
  std::map<int, int64_t> change;
  for (const Buffer& b : buffers) {
    change[b.first] += b.bytes;
    change[b.last + 1] -= b.bytes;
  }
  int64_t used = 0, most = 0;
  for (const auto& [at, bytes] : change) most = std::max(most, used += bytes);
  return most;
}

/// Random numbers that are the same everywhere (Marsaglia, "Xorshift RNGs", 2003).
class Xorshift {
 public:
  size_t below(size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>(state_ % n);
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15;
};

/// Moves one of the first `large` of the order to another place among them, as long as that does
/// not make the plan larger, until it is as small as can be or the tries are used up. A try
/// compares each buffer with half of the others, on average.
void improve(std::vector<Buffer>& buffers, std::vector<size_t> order, size_t large) {
  constexpr double kTries = 400, kComparisons = 50e6;
  const auto n = static_cast<double>(buffers.size());
  const double tries = std::min(kTries, kComparisons / (n * n / 2 + 1));
  const int64_t bound = most_in_use(buffers);
  int64_t lowest = place(buffers, order);
  Xorshift random;
  for (int i = 0; i < tries && lowest > bound && large > 1; ++i) {
    std::vector<size_t> moved = order;
    const size_t from = random.below(large), to = random.below(large);
    const size_t buffer = moved[from];
    moved.erase(moved.begin() + static_cast<ptrdiff_t>(from));
    moved.insert(moved.begin() + static_cast<ptrdiff_t>(to), buffer);
    std::vector<Buffer> candidate = buffers;
    const int64_t end = place(candidate, moved);
    if (end > lowest) continue;
    lowest = end;
    buffers = std::move(candidate);
    order = std::move(moved);
  }
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
  const std::vector<size_t>& best =
      *std::ranges::min_element(orders, {}, [&](const std::vector<size_t>& order) {
        std::vector<Buffer> candidate = buffers;
        return place(candidate, order);
      });
  const int64_t small = most_in_use(buffers) / 64;
  std::vector<size_t> order = best;
  const auto rest =
      std::ranges::stable_partition(order, [&](size_t i) { return buffers[i].bytes > small; });
  std::vector<Buffer> improved = buffers;
  improve(improved, order, order.size() - rest.size());
  const int64_t end = place(buffers, best), improved_end = end_of(improved);
  if (improved_end < end) buffers = std::move(improved);
  return std::min(end, improved_end);
}

}  // namespace fluid
