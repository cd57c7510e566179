// Analyses index expressions during emission: their strides between lanes, and their bounds.

#include "codegen/emit.h"
#include "ir/error.h"

namespace fluid::emit {
namespace {

int64_t floor_mod(int64_t a, int64_t m) { return (a % m + m) % m; }
int64_t floor_div(int64_t a, int64_t m) { return (a - floor_mod(a, m)) / m; }

}  // namespace

bool KernelEmitter::is_uniform(const Expr& e) {
  if (!vector_) return true;
  if (auto found = uniform_.find(e.get()); found != uniform_.end()) return found->second;
  const ExprNode& n = e.node();
  bool result = true;
  if (n.op == ScalarOp::var) result = n.ivalue != vector_->var;
  if (n.op == ScalarOp::let) result = !lets_.at(n.ivalue).value->getType()->isVectorTy();
  if (n.op == ScalarOp::acc) result = !find_accumulator(n.ivalue).varying;
  if (n.op != ScalarOp::lanes) {
    for (const Expr& arg : n.args) result = result && is_uniform(arg);
  }
  uniform_[e.get()] = result;
  return result;
}

std::optional<int64_t> KernelEmitter::lane_stride(const Expr& e) {
  if (is_uniform(e)) return 0;
  const ExprNode& n = e.node();
  switch (n.op) {
    case ScalarOp::var:
      return 1;
    case ScalarOp::let: {
      // Does not analyse a Let whose value reads memory or an accumulator, because the contents may
      // change between the Let and its use.
      const Expr& value = lets_.at(n.ivalue).expr;
      bool pure = true;
      for_each_node(value, [&](const Expr& node) {
        pure = pure && node.op() != ScalarOp::load && node.op() != ScalarOp::acc;
      });
      return pure ? lane_stride(value) : std::nullopt;
    }
    case ScalarOp::neg: {
      auto s = lane_stride(n.args[0]);
      return s ? std::optional(-*s) : std::nullopt;
    }
    case ScalarOp::add:
    case ScalarOp::sub: {
      auto s = lane_stride(n.args[0]), t = lane_stride(n.args[1]);
      if (!s || !t) return std::nullopt;
      return n.op == ScalarOp::add ? *s + *t : *s - *t;
    }
    case ScalarOp::mul:
      for (int side : {0, 1}) {
        auto factor = range(n.args[static_cast<size_t>(1 - side)]);
        auto s = lane_stride(n.args[static_cast<size_t>(side)]);
        if (s && factor && factor->low == factor->high) return *s * factor->low;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> KernelEmitter::constant_value(const Expr& e) {
  auto bounds = range(e);
  return bounds && bounds->low == bounds->high ? std::optional(bounds->low) : std::nullopt;
}

std::optional<int64_t> KernelEmitter::residue(const Expr& e, int64_t m) {
  if (m == 1) return 0;
  const ExprNode& n = e.node();
  auto combine_residues = [&](auto&& of) -> std::optional<int64_t> {
    auto a = residue(n.args[0], m), b = residue(n.args[1], m);
    return a && b ? std::optional(floor_mod(of(*a, *b), m)) : std::nullopt;
  };
  switch (n.op) {
    case ScalarOp::constant:
      return floor_mod(n.ivalue, m);
    case ScalarOp::var: {
      if (vector_ && n.ivalue == vector_->var) {
        const bool known = vector_->multiple == 0 || vector_->multiple % m == 0;
        return known ? std::optional(floor_mod(vector_->rest, m)) : std::nullopt;
      }
      auto value = constant_value(e);
      return value ? std::optional(floor_mod(*value, m)) : std::nullopt;
    }
    case ScalarOp::add:
      return combine_residues([](int64_t a, int64_t b) { return a + b; });
    case ScalarOp::sub:
      return combine_residues([](int64_t a, int64_t b) { return a - b; });
    case ScalarOp::min:
    case ScalarOp::max: {
      auto a = residue(n.args[0], m), b = residue(n.args[1], m);
      return a == b ? a : std::nullopt;
    }
    case ScalarOp::mul:
      for (const Expr& factor : n.args) {
        if (residue(factor, m) == 0) return 0;
      }
      return combine_residues([](int64_t a, int64_t b) { return a * b; });
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<int64_t>> KernelEmitter::lane_offsets(const Expr& e) {
  std::vector<int64_t> steps(static_cast<size_t>(lanes_));
  auto each = [&](auto&& of) {
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = of(i);
    return std::optional(steps);
  };
  if (auto s = lane_stride(e)) {
    return each([&](size_t i) { return static_cast<int64_t>(i) * *s; });
  }
  const ExprNode& n = e.node();
  if (n.args.size() != 2) return std::nullopt;
  auto a = lane_offsets(n.args[0]);
  if (n.op == ScalarOp::floordiv || n.op == ScalarOp::mod) {
    const auto m = constant_value(n.args[1]);
    const auto first = m && *m > 0 ? residue(n.args[0], *m) : std::nullopt;
    if (!a || !first) return std::nullopt;
    if (n.op == ScalarOp::mod) {
      return each([&](size_t i) { return floor_mod(*first + (*a)[i], *m) - *first; });
    }
    return each([&](size_t i) { return floor_div(*first + (*a)[i], *m); });
  }
  auto b = lane_offsets(n.args[1]);
  if (!a || !b) return std::nullopt;
  if (n.op == ScalarOp::add) return each([&](size_t i) { return (*a)[i] + (*b)[i]; });
  if (n.op == ScalarOp::sub) return each([&](size_t i) { return (*a)[i] - (*b)[i]; });
  if (n.op != ScalarOp::mul) return std::nullopt;
  for (int side : {0, 1}) {
    const auto factor = constant_value(n.args[static_cast<size_t>(side)]);
    if (factor) return each([&](size_t i) { return *factor * (*(side == 0 ? b : a))[i]; });
  }
  return std::nullopt;
}

std::optional<KernelEmitter::Range> KernelEmitter::range(const Expr& e) {
  if (e.dtype() != DType::i64) return std::nullopt;
  const ExprNode& n = e.node();
  auto pair = [&]() -> std::optional<std::pair<Range, Range>> {
    auto a = range(n.args[0]), b = range(n.args[1]);
    return a && b ? std::optional(std::pair(*a, *b)) : std::nullopt;
  };
  auto bounded = [](auto... corner) -> std::optional<Range> {
    // Bounds beyond kLimit enable no optimization. kLimit is 2^31 plus slack, because the last
    // vector of a loop may extend past the end of the loop. Products of two bounds within kLimit do
    // not overflow.
    constexpr int64_t kLimit = (int64_t{1} << 31) + (int64_t{1} << 24);
    Range r{std::min({corner...}), std::max({corner...})};
    return r.low >= -kLimit && r.high <= kLimit ? std::optional(r) : std::nullopt;
  };
  switch (n.op) {
    case ScalarOp::constant:
      return bounded(n.ivalue);
    case ScalarOp::batch:
      return max_batch_ > 0 ? std::optional(Range{0, max_batch_}) : std::nullopt;
    case ScalarOp::var: {
      auto found = var_ranges_.find(n.ivalue);
      return found == var_ranges_.end() ? std::nullopt : std::optional(found->second);
    }
    case ScalarOp::let: {
      auto found = lets_.find(n.ivalue);
      return found == lets_.end() ? std::nullopt : range(found->second.expr);
    }
    case ScalarOp::add:
      if (auto p = pair())
        return bounded(p->first.low + p->second.low, p->first.high + p->second.high);
      return std::nullopt;
    case ScalarOp::sub:
      if (auto p = pair())
        return bounded(p->first.low - p->second.high, p->first.high - p->second.low);
      return std::nullopt;
    case ScalarOp::mul:
      if (auto p = pair()) {
        auto [a, b] = *p;
        return bounded(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
      }
      return std::nullopt;
    case ScalarOp::min:
    case ScalarOp::max:
      if (auto p = pair()) {
        auto pick = [&](int64_t x, int64_t y) {
          return n.op == ScalarOp::min ? std::min(x, y) : std::max(x, y);
        };
        return Range{pick(p->first.low, p->second.low), pick(p->first.high, p->second.high)};
      }
      return std::nullopt;
    case ScalarOp::floordiv:
      if (auto p = pair(); p && p->first.low >= 0 && p->second.low > 0) {
        return Range{p->first.low / p->second.high, p->first.high / p->second.low};
      }
      return std::nullopt;
    case ScalarOp::mod:
      if (auto d = range(n.args[1]); d && d->low > 0) return Range{0, d->high - 1};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<bool> KernelEmitter::fold_comparison(const Expr& e) {
  if (e.op() < ScalarOp::eq || e.op() > ScalarOp::ge) return std::nullopt;
  auto a = range(e.args()[0]), b = range(e.args()[1]);
  if (!a || !b) return std::nullopt;
  auto known_result = [](bool yes, bool no) {
    return yes || no ? std::optional(yes) : std::nullopt;
  };
  switch (e.op()) {
    case ScalarOp::lt:
      return known_result(a->high < b->low, a->low >= b->high);
    case ScalarOp::le:
      return known_result(a->high <= b->low, a->low > b->high);
    case ScalarOp::gt:
      return known_result(a->low > b->high, a->high <= b->low);
    case ScalarOp::ge:
      return known_result(a->low >= b->high, a->high < b->low);
    default:
      return std::nullopt;
  }
}

bool KernelEmitter::zero_in_masked_lanes(const Expr& e) {
  const ExprNode& n = e.node();
  if (n.op == ScalarOp::mul || n.op == ScalarOp::product) {
    return zero_in_masked_lanes(n.args[0]) && zero_in_masked_lanes(n.args[1]);
  }
  // A load of stride 0 is a broadcast, which fills masked-off lanes too.
  return n.op == ScalarOp::load && n.fvalue == 0 && lane_stride(n.args[0]).value_or(0) > 0;
}

}  // namespace fluid::emit
