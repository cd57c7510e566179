#include "ops/intern.h"

#include <algorithm>
#include <bit>

namespace fluid {

size_t Interner::NodeHash::operator()(const Expr& e) const {
  const ExprNode& n = e.node();
  uint64_t hash = static_cast<uint64_t>(n.op) << 8 | static_cast<uint64_t>(n.dtype);
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15; };
  add(static_cast<uint64_t>(n.ivalue));
  add(std::bit_cast<uint64_t>(n.fvalue));
  for (const Expr& arg : n.args) add(reinterpret_cast<uintptr_t>(arg.get()) >> 4);
  return hash >> 16;
}

bool Interner::NodeEqual::operator()(const Expr& a, const Expr& b) const {
  const ExprNode& m = a.node();
  const ExprNode& n = b.node();
  return m.op == n.op && m.dtype == n.dtype && m.ivalue == n.ivalue &&
         std::bit_cast<uint64_t>(m.fvalue) == std::bit_cast<uint64_t>(n.fvalue) &&
         m.guarded == n.guarded && m.checked == n.checked &&
         std::ranges::equal(m.args, n.args, {}, &Expr::get, &Expr::get);
}

Expr Interner::operator()(const Expr& e) {
  if (!e) return e;
  if (const Interned* known = done_.find(e.get())) return known->result;
  std::vector<Expr> args = changed_args(e, [&](const Expr& arg) { return (*this)(arg); });
  const Expr& result = *nodes_.insert(args.empty() ? e : with_args(e, std::move(args))).first;
  done_.add(e.get(), {e, result});
  done_.add(result.get(), {result, result});
  return result;
}

}  // namespace fluid
