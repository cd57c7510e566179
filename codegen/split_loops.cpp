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

bool is_comparison(ScalarOp op) { return op >= ScalarOp::eq && op <= ScalarOp::ge; }

/// Returns the difference of the operands of a comparison as slope * var + offset. Returns nullopt
/// if `e` is no comparison of this form.
std::optional<Affine> compared_difference(const Expr& e, int64_t var) {
  if (!is_comparison(e.op()) || e.args()[0].dtype() != i64) return std::nullopt;
  std::optional<Affine> difference = as_affine(e.args()[0] - e.args()[1]);
  if (!difference || difference->terms.size() != 1 || difference->coefficient(var) == 0) {
    return std::nullopt;
  }
  return difference;
}

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }

bool accumulates(const kir::Block& block) {
  return std::ranges::any_of(block, [](const kir::Stmt& s) {
    if (const auto* loop = std::get_if<kir::For>(&s)) return accumulates(*loop->body);
    if (const auto* branch = std::get_if<kir::If>(&s)) return accumulates(*branch->body);
    return std::holds_alternative<kir::Accumulate>(s);
  });
}

/// Returns the indices in (0, extent) at which a comparison in `body` changes its result. A
/// comparison of slope * var + offset with 0 changes where the sum becomes 0 and where it becomes
/// positive.
std::set<int64_t> split_points(const kir::Block& body, int64_t var, int64_t extent) {
  std::set<int64_t> points;
  for_each_expr(body, [&](const Expr& root) {
    for_each_node(root, [&](const Expr& e) {
      const std::optional<Affine> difference = compared_difference(e, var);
      if (!difference) return;
      const int64_t slope = difference->coefficient(var), offset = difference->offset;
      const bool rises = slope > 0;
      const bool strict = e.op() == ScalarOp::gt || e.op() == ScalarOp::le;
      const bool equality = e.op() == ScalarOp::eq || e.op() == ScalarOp::ne;
      const int64_t zero = ceil_divide(-offset, slope);
      const int64_t beyond = -offset % slope == 0 ? zero + 1 : zero;
      for (const int64_t point : {zero, beyond}) {
        const bool changes = equality || (point == beyond) == (strict == rises) || zero == beyond;
        if (changes && point > 0 && point < extent) points.insert(point);
      }
    });
  });
  return points;
}

/// Copies the body of a loop for the part of the range that begins at `first` and contains no
/// other split point.
class Specializer {
 public:
  Specializer(int64_t var, int64_t first) : var_(var), first_(first) {}

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
      if (compared_difference(e, var_)) {
        return rewrite(e, [&](const Expr& leaf) {
          if (leaf.op() == ScalarOp::var) return Expr::index(first_);
          return leaf.args().empty() ? Expr() : Expr::make(leaf.op(), leaf.dtype(), leaf.args());
        });
      }
      const bool folds = e.op() >= ScalarOp::add && e.op() <= ScalarOp::cast;
      return folds ? Expr::make(e.op(), e.dtype(), e.args()) : Expr();
    });
  }

  int64_t var_, first_;
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
      auto body = std::make_shared<kir::Block>(Specializer(loop.var, first).copy(*loop.body));
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
