#include "ops/op_def.h"

#include "ir/print.h"

namespace fluid {
namespace {

Expr read_of(const Type& type, size_t operand, std::vector<Expr> index) {
  check(index.size() == type.shape.size(), "a read needs one index a dimension");
  ExprNode n;
  n.op = ScalarOp::read;
  n.dtype = compute_dtype(type.dtype);
  n.ivalue = static_cast<int64_t>(operand);
  n.args = std::move(index);
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

}  // namespace

void InferCtx::fail(const std::string& message) const {
  throw UserError(loc_, std::string(op_) + ": " + message);
}

std::string InferCtx::attr_text(std::string_view name) const {
  return ir::print(*attrs_.find(name));
}

Expr LowerCtx::reduce_var(size_t d) const { return out_var(out_.at(0).shape.size() + d); }

std::vector<Expr> LowerCtx::out_vars() const {
  std::vector<Expr> vars;
  for (size_t d = 0; d < out_.at(0).shape.size(); ++d) vars.push_back(out_var(d));
  return vars;
}

Expr LowerCtx::extent(const Dim& d) const {
  if (!d.batch) return Expr::index(d.size);
  return Expr::make(ScalarOp::batch, DType::i64, {}) * Expr::index(d.size);
}

Expr LowerCtx::in(size_t i) const {
  const Shape& shape = in_.at(i).shape;
  const size_t rank = out_.at(0).shape.size();
  check(shape.size() <= rank, "an operand of higher rank than the result");
  std::vector<Expr> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    index.push_back(shape[d].is(1) ? Expr::index(0) : out_var(rank - shape.size() + d));
  }
  return read(i, std::move(index));
}

Expr LowerCtx::read(size_t i, std::vector<Expr> index) const {
  return read_of(in_.at(i), i, std::move(index));
}

Expr LowerCtx::read_or(size_t i, std::vector<Expr> index, double fallback) const {
  ExprNode n = read_of(in_.at(i), i, std::move(index)).node();
  n.guarded = true;
  n.fvalue = fallback;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

Expr LowerCtx::read_checked(size_t i, std::vector<Expr> index) const {
  ExprNode n = read_of(in_.at(i), i, std::move(index)).node();
  n.checked = true;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

}  // namespace fluid
