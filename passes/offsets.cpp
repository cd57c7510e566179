#include "passes/offsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace fluid {
namespace {

/// A buffer with its assigned bytes [offset, end), live from op `first` to op `last`.
struct Placed {
  int64_t offset, end;
  int first, last;
};

/// Returns the best-fit offset for `wanted`: the start of the smallest sufficient gap between the
/// buffers that are live at the same time. If no gap is large enough, returns the highest end of
/// these buffers. `placed` is sorted by offset.
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

double lifetime(const Buffer& b) { return b.last - b.first + 1; }

template <class Before>
std::vector<size_t> ordered(const std::vector<Buffer>& buffers, Before before) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return before(buffers[a], buffers[b]); });
  return order;
}

/// Maximum number of bytes that are live at once, a lower bound on the total size of any placement.
int64_t peak_in_use(const std::vector<Buffer>& buffers) {
  std::map<int, int64_t> change;
  for (const Buffer& b : buffers) {
    change[b.first] += b.bytes;
    change[b.last + 1] -= b.bytes;
  }
  int64_t used = 0, most = 0;
  for (const auto& [at, bytes] : change) most = std::max(most, used += bytes);
  return most;
}

/// Pseudorandom number generator with the same sequence on all machines (Marsaglia, "Xorshift
/// RNGs", 2003).
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

/// An order in which to place buffers, the placed buffers and their total size.
struct Placement {
  std::vector<size_t> order;
  std::vector<Buffer> buffers;
  int64_t end = 0;

  Placement(const std::vector<Buffer>& unplaced, std::vector<size_t> by)
      : order(std::move(by)), buffers(unplaced), end(place(buffers, order)) {}
};

/// Maximum number of placements that the local search tries. Decreases with the number of buffers,
/// because the cost of a placement grows quadratically.
double placements_to_try(size_t buffers) {
  constexpr double kTries = 400, kComparisons = 50e6;
  const auto n = static_cast<double>(buffers);
  return std::min(kTries, kComparisons / (n * n / 2));
}

/// Local search over orders of placement that begin with the large buffers. Each try moves a random
/// large buffer to another position among the large buffers. The new order is kept if the total
/// size does not grow. Stops when the total size reaches `bound`, or after placements_to_try()
/// tries.
Placement improved(const Placement& start, int64_t bound) {
  const int64_t small = bound / 64;
  std::vector<size_t> order = start.order;
  const auto rest = std::ranges::stable_partition(
      order, [&](size_t i) { return start.buffers[i].bytes > small; });
  const size_t large = order.size() - rest.size();
  const double tries = placements_to_try(order.size());
  Placement best(start.buffers, std::move(order));
  Xorshift random;
  for (int i = 0; i < tries && best.end > bound && large > 1; ++i) {
    std::vector<size_t> moved = best.order;
    const size_t from = random.below(large), to = random.below(large);
    const size_t buffer = moved[from];
    moved.erase(moved.begin() + static_cast<ptrdiff_t>(from));
    moved.insert(moved.begin() + static_cast<ptrdiff_t>(to), buffer);
    Placement candidate(start.buffers, std::move(moved));
    if (candidate.end <= best.end) best = std::move(candidate);
  }
  return best;
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
  const int64_t bound = peak_in_use(buffers);
  Placement best(buffers, orders.front());
  const auto keep_if_lower = [&](Placement other) {
    if (other.end < best.end) best = std::move(other);
  };
  for (size_t i = 1; i < orders.size() && best.end > bound; ++i) {
    keep_if_lower(Placement(buffers, orders[i]));
  }
  if (best.end > bound && placements_to_try(buffers.size()) >= 1)
    keep_if_lower(improved(best, bound));
  buffers = std::move(best.buffers);
  return best.end;
}

}  // namespace fluid
