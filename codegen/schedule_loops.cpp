#include "codegen/schedule_loops.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fluid {
namespace {

bool is_costly(ScalarOp op) {
  return op == ScalarOp::load || op == ScalarOp::div || op == ScalarOp::pow ||
         op == ScalarOp::philox || (op >= ScalarOp::sqrt && op <= ScalarOp::cos);
}

/// Returns `offset` without the terms that do not depend on `var`, such as the row offset of a
/// gather.
Expr varying_part(Expr offset, int64_t var) {
  while (offset.op() == ScalarOp::add) {
    const Expr a = offset.args()[0], b = offset.args()[1];
    if (depends_on(a, var) && depends_on(b, var)) break;
    offset = depends_on(a, var) ? a : b;
  }
  return offset;
}

double stride_score(const Expr& offset, int64_t var) {
  if (!depends_on(offset, var)) return 0.6;
  const std::optional<Affine> affine = as_affine(varying_part(offset, var));
  if (!affine) return 0.1;
  const int64_t stride = std::abs(affine->coefficient(var));
  return stride == 1 ? 1 : (stride <= 4 ? 0.5 : 0.1);
}

}  // namespace

kir::Block& add_loop(kir::Block& block, int64_t var, const Expr& begin, const Expr& end,
                     kir::For::Kind kind) {
  auto body = std::make_shared<kir::Block>();
  block.push_back({kir::For{var, begin, end, kind, body}});
  return *body;
}

kir::Block& bind_var(kir::Block& block, int64_t var, const Expr& value) {
  return add_loop(block, var, value, value + Expr::index(1));
}

kir::Block& add_if(kir::Block& block, const Expr& condition) {
  auto body = std::make_shared<kir::Block>();
  block.push_back({kir::If{condition, body}});
  return *body;
}

kir::Block& delinearize(KernelBuilder& b, const Expr& linear_index,
                        const std::vector<std::pair<int64_t, Expr>>& dims, kir::Block& out) {
  kir::Block* at = &out;
  Expr rest = linear_index;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto& [var, count] = dims[i];
    const bool last = i + 1 == dims.size();
    at = &bind_var(*at, var, last ? rest : scalar::mod(rest, count));
    if (!last) rest = append_let(b, scalar::floordiv(rest, count), *at);
  }
  return *at;
}

bool any_leaf(const Expr& e, const std::function<bool(const Expr& leaf)>& predicate) {
  bool found = false;
  for_each_node(e, [&](const Expr& n) { found = found || (n.args().empty() && predicate(n)); });
  return found;
}

bool depends_on(const Expr& e, int64_t var) {
  return any_leaf(
      e, [&](const Expr& leaf) { return leaf.op() == ScalarOp::var && leaf.node().ivalue == var; });
}

void for_each_expr(const kir::Block& block, FunctionRef<void(const Expr&)> visit) {
  for (const kir::Stmt& s : block) {
    if (const auto* loop = std::get_if<kir::For>(&s)) {
      visit(loop->begin);
      visit(loop->end);
      for_each_expr(*loop->body, visit);
    } else if (const auto* branch = std::get_if<kir::If>(&s)) {
      visit(branch->condition);
      for_each_expr(*branch->body, visit);
    } else if (const auto* let = std::get_if<kir::Let>(&s)) {
      visit(let->value);
    } else if (const auto* accumulate = std::get_if<kir::Accumulate>(&s)) {
      visit(accumulate->value);
      if (accumulate->argmax_index) visit(accumulate->argmax_index);
    } else if (const auto* store = std::get_if<kir::StoreTo>(&s)) {
      visit(store->offset);
      visit(store->value);
      if (store->mask) visit(store->mask);
    } else if (const auto* prefetch = std::get_if<kir::Prefetch>(&s)) {
      visit(prefetch->offset);
    }
  }
}

std::vector<Expr> loads_of(const Expr& e) {
  std::vector<Expr> loads;
  for_each_node(e, [&](const Expr& n) {
    if (n.op() == ScalarOp::load) loads.push_back(n);
  });
  return loads;
}

Expr read_let(int64_t id, DType dtype) {
  ExprNode n{.op = ScalarOp::let, .dtype = dtype, .args = {}};
  n.ivalue = id;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

Expr append_let(KernelBuilder& builder, const Expr& e, kir::Block& block) {
  if (e.op() == ScalarOp::let || is_constant(e)) return e;
  const int64_t id = builder.next_let++;
  block.push_back({kir::Let{id, e}});
  return read_let(id, e.dtype());
}

void eliminate_common_subexpressions(KernelBuilder& builder, const std::vector<Expr*>& exprs,
                                     kir::Block& block) {
  std::map<const ExprNode*, int> uses;
  std::map<const ExprNode*, bool> costly;
  for (const Expr* root : exprs) {
    ++uses[root->get()];
    for_each_node(*root, [&](const Expr& e) {
      if (costly.contains(e.get())) return;
      bool any = is_costly(e.op());
      for (const Expr& arg : e.args()) {
        ++uses[arg.get()];
        any = any || costly[arg.get()];
      }
      costly[e.get()] = any;
    });
  }
  std::map<const ExprNode*, Expr> done;
  std::function<Expr(const Expr&)> replace = [&](const Expr& e) -> Expr {
    if (e.args().empty() || !costly[e.get()]) return e;
    if (auto it = done.find(e.get()); it != done.end()) return it->second;
    ExprNode n = e.node();
    for (Expr& arg : n.args) arg = replace(arg);
    Expr result(std::make_shared<const ExprNode>(std::move(n)));
    if (uses[e.get()] > 1) result = append_let(builder, result, block);
    return done[e.get()] = result;
  };
  for (Expr* root : exprs) {
    const Expr original = *root;  // keeps the nodes alive: the maps are keyed by address
    *root = replace(original);
  }
}

void hoist(KernelBuilder& builder, const std::vector<Expr*>& exprs,
           const std::function<bool(const Expr& leaf)>& is_invariant, kir::Block& block) {
  std::map<const ExprNode*, bool> fixed;
  std::map<const ExprNode*, bool> costly;
  for (const Expr* root : exprs) {
    for_each_node(*root, [&](const Expr& e) {
      const bool leaf = e.op() == ScalarOp::var || e.op() == ScalarOp::let;
      bool all = !leaf || is_invariant(e);
      bool any = is_costly(e.op());
      for (const Expr& arg : e.args()) {
        all = all && fixed[arg.get()];
        any = any || costly[arg.get()];
      }
      fixed[e.get()] = all && e.op() != ScalarOp::acc && e.op() != ScalarOp::lanes;
      costly[e.get()] = any;
    });
  }
  std::map<const ExprNode*, Expr> lets;
  std::function<Expr(const Expr&)> replace = [&](const Expr& e) -> Expr {
    if (auto it = lets.find(e.get()); it != lets.end()) return it->second;
    Expr result = e;
    if (fixed[e.get()] && costly[e.get()]) {
      result = append_let(builder, e, block);
    } else if (!e.args().empty() && costly[e.get()]) {
      ExprNode n = e.node();
      for (Expr& arg : n.args) arg = replace(arg);
      result = Expr(std::make_shared<const ExprNode>(std::move(n)));
    }
    lets[e.get()] = result;
    return result;
  };
  for (Expr* root : exprs) {
    const Expr original = *root;  // keeps the nodes alive: the maps are keyed by address
    *root = replace(original);
  }
}

void emit_bounds_checks(const FlatRoot& root, kir::Block& block) {
  for (const IndexCheck& c : root.checks) {
    const Expr found = Expr::index(2 * c.input), where = Expr::index(2 * c.input + 1);
    block.push_back({kir::StoreTo{kErrorBuffer, found, Expr::index(1), c.out_of_range}});
    block.push_back(
        {kir::StoreTo{kErrorBuffer, where, scalar::cast(c.index, i64), c.out_of_range}});
  }
}

VectorizationScore vectorization_score(const KernelBuilder& builder, const FlatRoot& root,
                                       int64_t var) {
  VectorizationScore fit;
  auto add = [&](const Expr& offset, double weight) {
    fit.score += weight * stride_score(offset, var);
    fit.accesses += weight;
  };
  for_each_node(root.body, [&](const Expr& e) {
    if (e.op() == ScalarOp::load) add(e.args()[0], 1);
  });
  double stored = root.is_reduction() && root.source->reduces_rows ? 0 : 1.5;
  if (root.is_reduction()) stored /= estimated_trip_count(builder, root.reduce);
  for (const auto& [result, offset] : root.stores) add(offset, stored);
  return fit;
}

double estimated_extent(const Dim& extent) {
  return static_cast<double>(std::max<int64_t>(extent.at(kir::kNominalBatch), 1));
}

double lane_utilization(const Dim& extent, int64_t lanes) {
  const double n = estimated_extent(extent), width = static_cast<double>(lanes);
  return n / (std::ceil(n / width) * width);
}

double estimated_trip_count(const KernelBuilder& builder, const Vars& vars) {
  double n = 1;
  for (int64_t v : vars) n *= estimated_extent(builder.extent(v));
  return n;
}

double operation_count(const FlatRoot& root) {
  double n = 1;
  for_each_node(root.body, [&](const Expr& e) {
    if (e.op() >= ScalarOp::sqrt && e.op() <= ScalarOp::cos) n += 10;
    if (is_float(e.dtype()) && e.op() > ScalarOp::read) n += 1;
  });
  return n;
}

bool contains(const Vars& vars, int64_t v) { return std::ranges::find(vars, v) != vars.end(); }

Vars without(const Vars& vars, const Vars& removed) {
  Vars kept;
  std::ranges::copy_if(vars, std::back_inserter(kept),
                       [&](int64_t v) { return !contains(removed, v); });
  return kept;
}

Expr min_index(const Expr& a, const Expr& b) { return scalar::min(a, b); }

Expr ceil_div(const Expr& a, int64_t n) {
  return scalar::floordiv(a + Expr::index(n - 1), Expr::index(n));
}

int64_t ceil_of(int64_t a, int64_t n) { return (a + n - 1) / n; }

Expr trip_count(const KernelBuilder& builder, const Vars& vars) {
  Expr n = Expr::index(1);
  for (int64_t v : vars) n = n * extent_expr(builder.extent(v));
  return n;
}

Expr read_accumulator(int64_t accumulator_id, DType dtype, const std::vector<Expr>& index,
                      bool per_lane) {
  ExprNode n{.op = ScalarOp::acc, .dtype = dtype, .args = index};
  n.ivalue = accumulator_id;
  const Expr one(std::make_shared<const ExprNode>(std::move(n)));
  return per_lane ? Expr::make(ScalarOp::lanes, dtype, {one}) : one;
}

Expr read_argmax_index(int64_t accumulator_id, DType value_dtype, const std::vector<Expr>& index,
                       bool per_lane) {
  const DType dtype = value_dtype == i64 ? i32 : i64;
  return scalar::cast(read_accumulator(accumulator_id, dtype, index, per_lane), i64);
}

}  // namespace fluid
