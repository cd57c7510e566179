#include "codegen/split_loops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "codegen/schedule_loops.h"

namespace fluid {
namespace {

// Limits the code size: maximum number of loops that replace the loops of one kernel.
constexpr size_t kMaxParts = 64;
// Maximum ratio of the memory accesses after and before a split.
constexpr double kMaxAccesses = 0.7;

/// A comparison of two linear functions of a loop variable.
class IndexComparison {
 public:
  /// Returns nullopt if `e` is no such comparison, or if a function might overflow for an index in
  /// [0, extent).
  static std::optional<IndexComparison> of(const Expr& e, int64_t var, int64_t extent) {
    if (e.op() < ScalarOp::eq || e.op() > ScalarOp::ge || extent > kMaxExtent) return std::nullopt;
    const auto left = linear(e.args()[0], var), right = linear(e.args()[1], var);
    if (!left || !right || left->slope == right->slope) return std::nullopt;
    return IndexComparison(e.op(), *left, *right);
  }

  bool at(int64_t index) const {
    return is_constant(
        scalar::compare(op_, Expr::index(left_.at(index)), Expr::index(right_.at(index))), 1);
  }

  /// Returns the indices in (begin, end) at which the result differs from the preceding one.
  std::vector<int64_t> changes(int64_t begin, int64_t end) const {
    // The functions are equal at most at one index, near this one.
    const int64_t root = (right_.offset - left_.offset) / (left_.slope - right_.slope);
    std::vector<int64_t> found;
    for (int64_t i = std::max(root - 1, begin + 1); i < std::min(root + 3, end); ++i) {
      if (at(i) != at(i - 1)) found.push_back(i);
    }
    return found;
  }

 private:
  struct Linear {
    int64_t slope, offset;
    int64_t at(int64_t index) const { return slope * index + offset; }
  };
  // With these limits neither the functions nor their difference overflow.
  static constexpr int64_t kMaxExtent = int64_t{1} << 30, kMaxSlope = int64_t{1} << 30,
                           kMaxOffset = int64_t{1} << 61;

  IndexComparison(ScalarOp op, Linear left, Linear right) : op_(op), left_(left), right_(right) {}

  static std::optional<Linear> linear(const Expr& e, int64_t var) {
    const std::optional<Affine> affine = as_affine(e);
    if (!affine) return std::nullopt;
    const Linear result{affine->coefficient(var), affine->offset};
    const bool depends_on_others = affine->terms.size() > (result.slope == 0 ? 0U : 1U);
    const bool is_small = result.slope <= kMaxSlope && result.slope >= -kMaxSlope &&
                          result.offset <= kMaxOffset && result.offset >= -kMaxOffset;
    return is_small && !depends_on_others ? std::optional(result) : std::nullopt;
  }

  ScalarOp op_;
  Linear left_, right_;
};

bool accumulates(const kir::Block& block) {
  return std::ranges::any_of(block, [](const kir::Stmt& s) {
    if (const auto* loop = std::get_if<kir::For>(&s)) return accumulates(*loop->body);
    if (const auto* branch = std::get_if<kir::If>(&s)) return accumulates(*branch->body);
    return std::holds_alternative<kir::Accumulate>(s);
  });
}

/// Returns the indices in (0, extent) at which a comparison in `body` changes its result.
std::set<int64_t> split_points(const kir::Block& body, int64_t var, int64_t extent) {
  std::set<int64_t> points;
  for_each_expr(body, [&](const Expr& root) {
    for_each_node(root, [&](const Expr& e) {
      const auto comparison = IndexComparison::of(e, var, extent);
      if (!comparison) return;
      const std::vector<int64_t> changes = comparison->changes(0, extent);
      points.insert(changes.begin(), changes.end());
    });
  });
  return points;
}

/// The loop indices [begin, end) of one of the loops that replace a loop over [0, extent).
struct LoopPart {
  int64_t var, begin, end, extent;
};

/// Copies the body of a loop for a part of the range. Comparisons whose result is the same in the
/// whole part become constants.
class Specializer {
 public:
  explicit Specializer(const LoopPart& part) : part_(part) {}

  kir::Block copy(const kir::Block& block) {
    kir::Block copied;
    for (const kir::Stmt& s : block) {
      if (const auto* let = std::get_if<kir::Let>(&s)) {
        const Expr value = specialized(let->value);
        if (is_constant(value)) {
          constants_[let->id] = value;
        } else {
          copied.push_back({kir::Let{let->id, value}});
        }
      } else if (const auto* loop = std::get_if<kir::For>(&s)) {
        copied.push_back({kir::For{loop->var, specialized(loop->begin), specialized(loop->end),
                                   loop->kind, copy_nested(*loop->body)}});
      } else if (const auto* branch = std::get_if<kir::If>(&s)) {
        const Expr condition = specialized(branch->condition);
        if (!is_constant(condition, 0)) {
          copied.push_back({kir::If{condition, copy_nested(*branch->body)}});
        }
      } else {
        copied.push_back(specialized(s));
      }
    }
    return copied;
  }

 private:
  std::shared_ptr<kir::Block> copy_nested(const kir::Block& block) {
    return std::make_shared<kir::Block>(copy(block));
  }

  kir::Stmt specialized(kir::Stmt s) {
    if (auto* accumulate = std::get_if<kir::Accumulate>(&s)) {
      accumulate->value = specialized(accumulate->value);
      if (accumulate->argmax_index)
        accumulate->argmax_index = specialized(accumulate->argmax_index);
    } else if (auto* store = std::get_if<kir::StoreTo>(&s)) {
      store->offset = specialized(store->offset);
      store->value = specialized(store->value);
      if (store->mask) store->mask = specialized(store->mask);
    } else if (auto* prefetch = std::get_if<kir::Prefetch>(&s)) {
      prefetch->offset = specialized(prefetch->offset);
    }
    return s;
  }

  Expr specialized(const Expr& root) {
    return rewrite(root, [&](const Expr& e) -> Expr {
      if (e.op() == ScalarOp::let) {
        const auto constant = constants_.find(e.node().ivalue);
        return constant == constants_.end() ? Expr() : constant->second;
      }
      if (e.op() == ScalarOp::load && e.args().size() > 1 && is_constant(e.args()[1])) {
        return is_constant(e.args()[1], 0) ? Expr::constant(e.dtype(), e.node().fvalue)
                                           : load(e.node().ivalue, e.dtype(), e.args()[0]);
      }
      const auto comparison = IndexComparison::of(e, part_.var, part_.extent);
      if (comparison && comparison->changes(part_.begin, part_.end).empty()) {
        return Expr::constant(boolean, comparison->at(part_.begin));
      }
      return folds(e.op()) ? Expr::make(e.op(), e.dtype(), e.args()) : Expr();
    });
  }

  /// Whether a constant result equals that of generated code. Elementary functions may differ in
  /// the last bit.
  static bool folds(ScalarOp op) {
    return (op >= ScalarOp::add && op <= ScalarOp::max) ||
           (op >= ScalarOp::eq && op <= ScalarOp::cast);
  }

  LoopPart part_;
  std::map<int64_t, Expr> constants_;  ///< values of the Lets that became constants
};

/// Removes the Lets that no expression of `block` reads. `used`: ids of the Lets that later
/// statements read; receives those that `block` reads.
void remove_unused_lets(kir::Block& block, std::set<int64_t>& used) {
  const auto add_uses = [&](const kir::Stmt& s) {
    for_each_expr({s}, [&](const Expr& root) {
      for_each_node(root, [&](const Expr& e) {
        if (e.op() == ScalarOp::let) used.insert(e.node().ivalue);
      });
    });
  };
  for (size_t i = block.size(); i-- > 0;) {
    if (auto* loop = std::get_if<kir::For>(&block[i])) remove_unused_lets(*loop->body, used);
    if (auto* branch = std::get_if<kir::If>(&block[i])) remove_unused_lets(*branch->body, used);
    const auto* let = std::get_if<kir::Let>(&block[i]);
    if (let && !used.contains(let->id)) {
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      add_uses(block[i]);
    }
  }
}

/// Iterations of a loop over `range` elements; a vector loop runs one iteration per vector.
double iterations(const kir::For& loop, double range, double lanes) {
  return loop.kind == kir::For::Kind::vector ? std::ceil(range / lanes) : range;
}

class Splitter {
 public:
  explicit Splitter(KernelBuilder& builder)
      : b_(builder), lanes_(static_cast<double>(b_.lanes())) {}

  void split_in(kir::Block& block) {
    kir::Block result;
    for (kir::Stmt& s : block) {
      if (auto* loop = std::get_if<kir::For>(&s)) {
        for (kir::For& part : split(*loop)) {
          split_in(*part.body);
          result.push_back({std::move(part)});
        }
        continue;
      }
      if (auto* branch = std::get_if<kir::If>(&s)) split_in(*branch->body);
      result.push_back(std::move(s));
    }
    block = std::move(result);
  }

 private:
  /// Returns the loops that replace `loop`: itself, if a split would not pay.
  std::vector<kir::For> split(const kir::For& loop) {
    const bool reorders = loop.kind == kir::For::Kind::vector && accumulates(*loop.body);
    const int64_t extent = extent_of(loop.var);
    if (loop.kind == kir::For::Kind::unroll || reorders || extent == 0) return {loop};
    const std::set<int64_t> points = split_points(*loop.body, loop.var, extent);
    if (points.empty() || parts_ + points.size() + 1 > kMaxParts) return {loop};
    std::vector<kir::For> parts;
    double accesses_after = 0;
    int64_t first = 0;
    const auto add_part = [&](int64_t end) {
      auto body = std::make_shared<kir::Block>(
          Specializer({loop.var, first, end, extent}).copy(*loop.body));
      std::set<int64_t> used;
      remove_unused_lets(*body, used);
      accesses_after +=
          iterations(loop, static_cast<double>(end - first), lanes_) * accesses(*body);
      parts.push_back({loop.var,
                       first == 0 ? loop.begin : scalar::max(loop.begin, Expr::index(first)),
                       end == extent ? loop.end : scalar::min(loop.end, Expr::index(end)),
                       loop.kind, std::move(body)});
      first = end;
    };
    for (const int64_t point : points) add_part(point);
    add_part(extent);
    const double before =
        iterations(loop, static_cast<double>(extent), lanes_) * accesses(*loop.body);
    if (accesses_after > kMaxAccesses * before) return {loop};
    parts_ += parts.size();
    return parts;
  }

  /// Returns the extent of a variable, or 0 if it is unknown.
  int64_t extent_of(int64_t var) const {
    if (var >= std::ssize(b_.extents)) return 0;
    const Dim& extent = b_.extent(var);
    return extent.batch ? 0 : extent.size;
  }

  /// Returns the estimated number of loads and stores of one run of `block`.
  double accesses(const kir::Block& block) const {
    double n = 0;
    for (const kir::Stmt& s : block) {
      if (const auto* loop = std::get_if<kir::For>(&s)) {
        const int64_t extent = extent_of(loop->var);
        const bool binds = structurally_equal(loop->end, loop->begin + Expr::index(1));
        const double range = binds || extent == 0 ? 1 : static_cast<double>(extent);
        n += iterations(*loop, range, lanes_) * accesses(*loop->body);
      } else if (const auto* branch = std::get_if<kir::If>(&s)) {
        n += accesses(*branch->body);
      } else {
        n += std::holds_alternative<kir::StoreTo>(s) ? 1 : 0;
        for_each_expr({s}, [&](const Expr& e) { n += static_cast<double>(loads_of(e).size()); });
      }
    }
    return n;
  }

  KernelBuilder& b_;
  double lanes_;
  size_t parts_ = 0;  ///< number of loops that replaced others so far
};

}  // namespace

void split_loops(KernelBuilder& builder) { Splitter(builder).split_in(builder.kernel.body); }

}  // namespace fluid
