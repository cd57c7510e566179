#include <bit>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/kernel_writer.h"

namespace fluid {
namespace {

constexpr int64_t kMaxIndexBits = 31;  // upper bound of log2(number of indices)

std::vector<Type> infer_coalesce_rows(const InferCtx& c) {
  const Type &index = c.in(0), &updates = c.in(1);
  require_float(c, 1);
  c.require(
      index.dtype == i64 && index.shape.rank() == 1 && updates.shape.rank() == 2 &&
          !updates.shape[1].batch,
      "expects an index i64[n] and updates [m, D], got " + index.str() + " and " + updates.str());
  const Dim n = index.shape[0], m = updates.shape[0];
  c.require(n.batch == m.batch && n.size % std::max<int64_t>(m.size, 1) == 0 &&
                (m.size > 0 || n.size == 0),
            "the number of indices of " + index.str() + " is not a multiple of the updates of " +
                updates.str());
  c.require(!c.has(2) || c.in(2) == Type{updates.dtype, index.shape, {}},
            "the weights do not fit to index " + index.str());
  c.require(c.attr<int64_t>("rows") > 0, "attribute 'rows' must be positive");
  return {index, Type{updates.dtype, {n, updates.shape[1]}, {}}};
}

/// Writes the kernel. Block b handles the table rows r with r % blocks == b. It finds the positions
/// of these rows in operand 0, sorts the positions by row, and sums the updates of each row.
class CoalesceRows {
 public:
  explicit CoalesceRows(const LoopsCtx& c)
      : k_(c),
        weighted_(c.arity() > 2),
        blocks_(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(
            std::min(c.attr<int64_t>("rows"), preferred_blocks(c.device()) / 4))))),
        rows_(Expr::index(c.attr<int64_t>("rows"))),
        width_(Expr::index(c.in_type(1).shape[1].size)),
        count_(c.extent(c.in_type(0).shape[0])) {
    const Dim n = c.in_type(0).shape[0], m = c.in_type(1).shape[0];
    per_update_ = Expr::index(std::max<int64_t>(n.size / std::max<int64_t>(m.size, 1), 1));
    Dim twice = n;
    twice.size *= 2;
    keys_ = k_.scratch(i64, twice);
    positions_ = k_.scratch(i64, twice);
  }

  kir::Kernel write() {
    k_.blocks(Expr::index(blocks_), [&](const Expr& block) {
      const Expr start = first_slot_of(block);
      const Expr size = collect_rows_of(block, start);
      const Expr passes = k_.let(ceil_log2(size));
      sort(start, size, passes);
      const auto half = [&](const Expr& parity) {
        return k_.let(scalar::mod(parity, two()) * count_ + start);
      };
      const Expr sorted = half(passes);
      const Expr ends = half(passes + one());  // the sort leaves this half of positions_ free
      find_ends_of_runs(sorted, ends, size);
      sum_runs(sorted, ends, size);
    });
    return k_.kernel();
  }

 private:
  static Expr zero() { return Expr::index(0); }
  static Expr one() { return Expr::index(1); }
  static Expr two() { return Expr::index(2); }

  /// Returns the row number at position `n` of operand 0, or -1 if it is out of range.
  Expr key(const Expr& n) {
    const Expr row = k_.let(k_.load(k_.operand(0), n));
    const Expr in_range = scalar::logical_and(scalar::compare(ScalarOp::ge, row, zero()),
                                              scalar::compare(ScalarOp::lt, row, rows_));
    return k_.let(scalar::select(in_range, row, Expr::index(-1)));
  }
  Expr block_of(const Expr& key) const { return scalar::mod(key, Expr::index(blocks_)); }

  /// Returns the block's first slot in the scratch buffers: the number of index positions whose
  /// rows belong to earlier blocks.
  Expr first_slot_of(const Expr& block) {
    const auto earlier = k_.lane_accumulators(i64);
    k_.vector_loop(zero(), count_, [&](const Expr& n) {
      const Expr is_earlier = scalar::compare(ScalarOp::lt, block_of(key(n)), block);
      k_.accumulate(earlier, scalar::select(is_earlier, one(), zero()));
    });
    return k_.let(k_.total(earlier));
  }

  /// Copies the block's rows and their positions to the scratch buffers, from slot `start` on.
  /// Returns the number of copied positions.
  Expr collect_rows_of(const Expr& block, const Expr& start) {
    const auto size = k_.accumulators(i64);
    k_.loop(zero(), count_, [&](const Expr& n) {
      const Expr row = key(n);
      k_.branch(scalar::compare(ScalarOp::eq, block_of(row), block), [&] {
        const Expr slot = k_.let(start + k_.read(size));
        k_.store(keys_, slot, row);
        k_.store(positions_, slot, n);
        k_.accumulate(size, one());
      });
    });
    return k_.let(k_.read(size));
  }

  static Expr ceil_log2(const Expr& size) {
    Expr bits = zero();
    for (int64_t bit = 0; bit < kMaxIndexBits; ++bit) {
      const Expr more = scalar::compare(ScalarOp::gt, size, Expr::index(int64_t{1} << bit));
      bits = bits + scalar::select(more, one(), zero());
    }
    return bits;
  }

  /// Stable merge sort by row. Each pass moves the elements from one half of the scratch buffers to
  /// the other.
  void sort(const Expr& start, const Expr& size, const Expr& passes) {
    const auto widths = k_.accumulators(i64, Combine::prod);
    k_.loop(zero(), passes, [&](const Expr& pass) {
      const Expr width = k_.let(k_.read(widths));
      const Expr parity = k_.let(scalar::mod(pass, two()));
      const Expr from = k_.let(parity * count_ + start);
      const Expr to = k_.let((one() - parity) * count_ + start);
      const Expr pairs = k_.let(scalar::floordiv(size + two() * width - one(), two() * width));
      k_.loop(zero(), pairs, [&](const Expr& pair) {
        const Expr first = k_.let(pair * two() * width);
        const Expr middle = k_.let(scalar::min(first + width, size));
        const Expr end = k_.let(scalar::min(first + two() * width, size));
        merge(from, to, first, middle, end);
      });
      k_.accumulate(widths, two());
    });
  }

  void merge(const Expr& from, const Expr& to, const Expr& first, const Expr& middle,
             const Expr& end) {
    const auto taken_left = k_.accumulators(i64), taken_right = k_.accumulators(i64);
    k_.loop(first, end, [&](const Expr& slot) {
      const Expr left = k_.let(first + k_.read(taken_left));
      const Expr right = k_.let(middle + k_.read(taken_right));
      const Expr has_left = scalar::compare(ScalarOp::lt, left, middle);
      const Expr has_right = scalar::compare(ScalarOp::lt, right, end);
      const Expr left_key = k_.let(k_.load_if(has_left, keys_, from + left, 0));
      const Expr right_key = k_.let(k_.load_if(has_right, keys_, from + right, 0));
      const Expr in_order = scalar::logical_or(scalar::logical_not(has_right),
                                               scalar::compare(ScalarOp::le, left_key, right_key));
      const Expr takes_left = k_.let(scalar::logical_and(has_left, in_order));
      const Expr taken = k_.let(scalar::select(takes_left, left, right));
      k_.store(keys_, to + slot, scalar::select(takes_left, left_key, right_key));
      k_.store(positions_, to + slot, k_.load(positions_, from + taken));
      k_.accumulate(taken_left, scalar::select(takes_left, one(), zero()));
      k_.accumulate(taken_right, scalar::select(takes_left, zero(), one()));
    });
  }

  /// Whether slot `slot` + 1 exists and holds the same row as slot `slot`.
  Expr continues(const Expr& sorted, const Expr& slot, const Expr& size) {
    const Expr has_next = scalar::compare(ScalarOp::lt, slot + one(), size);
    const Expr next = k_.load_if(has_next, keys_, sorted + slot + one(), 0);
    const Expr same = scalar::compare(ScalarOp::eq, k_.load(keys_, sorted + slot), next);
    return k_.let(scalar::logical_and(has_next, same));
  }

  /// Stores for each slot the end of its run: the slot after the last slot with the same row.
  void find_ends_of_runs(const Expr& sorted, const Expr& ends, const Expr& size) {
    k_.loop(zero(), size, [&](const Expr& i) {
      const Expr slot = k_.let(size - one() - i);
      const Expr is_inside = continues(sorted, slot, size);
      const Expr end = k_.load_if(is_inside, positions_, ends + slot + one(), 0);
      k_.store(positions_, ends + slot, scalar::select(is_inside, end, slot + one()));
    });
  }

  void sum_runs(const Expr& sorted, const Expr& ends, const Expr& size) {
    k_.loop(zero(), size, [&](const Expr& slot) {
      const Expr row = k_.let(k_.load(keys_, sorted + slot));
      const Expr has_previous = scalar::compare(ScalarOp::gt, slot, zero());
      const Expr previous = k_.load_if(has_previous, keys_, sorted + slot - one(), -1);
      // An out-of-range index has row -1. At slot 0, `previous` is -1, so no slot with row -1
      // counts as the first of its row.
      const Expr is_first = k_.let(scalar::compare(ScalarOp::ne, row, previous));
      const Expr position = k_.let(k_.load(positions_, sorted + slot));
      const Expr end = k_.let(scalar::select(is_first, k_.load(positions_, ends + slot), slot));
      k_.store(k_.result(0), position, scalar::select(is_first, row, Expr::index(-1)));
      k_.vector_loop(zero(), width_, [&](const Expr& i) {
        const auto sum = k_.accumulators(compute_dtype(k_.result(1).dtype));
        k_.loop(slot, end, [&](const Expr& addend) {
          k_.accumulate(sum, update(k_.let(k_.load(positions_, sorted + addend)), i));
        });
        k_.store(k_.result(1), position * width_ + i, k_.read(sum));
      });
    });
  }

  /// Returns element `i` of the update for index[position], times the weight of this index, if any.
  Expr update(const Expr& position, const Expr& i) {
    const Expr element =
        k_.load(k_.operand(1), scalar::floordiv(position, per_update_) * width_ + i);
    return weighted_ ? element * k_.load(k_.operand(2), position) : element;
  }

  KernelWriter k_;
  bool weighted_;
  int64_t blocks_;
  Expr rows_, width_;
  Expr count_;       ///< number of indices
  Expr per_update_;  ///< number of indices that share one update
  /// Row numbers (the sort keys), and their positions in operand 0. Both arrays are double buffers
  /// of 2 * count_ elements.
  KernelWriter::Array keys_, positions_;
};

}  // namespace

OpDef coalesce_rows_op() {
  return OpDef{
      .name = "coalesce_rows",
      .doc =
          "Sums of the updates of each row of a table, like torch.Tensor.coalesce for a sparse "
          "gradient. Update i belongs to the n / m indices from i * n / m on. rows[p] is index[p] "
          "if no earlier position has this index, and sums[p] is the sum of the row's updates, in "
          "the order of the index. At other positions and at indices out of range, rows[p] is -1 "
          "and sums[p] is 0.",
      .inputs = {{"index", "i64 [n]"},
                 {"updates", "float [m, D]; n is a multiple of m"},
                 {.name = "weights",
                  .doc = "updates' dtype, [n]: factors of the updates",
                  .optional = true}},
      .attrs = {{"rows", int64_t{0}, "number of rows of the table", true}},
      .outputs = {{"rows", "i64 [n]: row numbers without duplicates, or -1"},
                  {"sums", "updates' dtype, [n, D]"}},
      .infer = infer_coalesce_rows,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const double n = c.numel_in(0);
            return Cost{.flops = c.numel_out(1) * (c.in.size() > 2 ? 2 : 1) +
                                 n * std::log2(std::max(n, 2.0))};
          },
      .in_place = {},
      .lower = Loops{[](const LoopsCtx& c) { return CoalesceRows(c).write(); }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
