#pragma once

// Short forms for writing kernel IR by hand in tests.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/kernel_ir.h"

namespace fluid::testing {

inline Expr load(int64_t buffer, DType dtype, Expr offset, Expr guard = {}, double fallback = 0) {
  ExprNode n{.op = ScalarOp::load, .dtype = compute_dtype(dtype), .args = {std::move(offset)}};
  n.ivalue = buffer;
  n.fvalue = fallback;
  if (guard) n.args.push_back(std::move(guard));
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

/// A node that names something by its id: ScalarOp::let, ScalarOp::acc.
inline Expr named(ScalarOp op, DType dtype, int64_t id, std::vector<Expr> index = {}) {
  ExprNode n{.op = op, .dtype = dtype, .args = std::move(index)};
  n.ivalue = id;
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

inline Expr lanes(const Expr& acc) { return Expr::make(ScalarOp::lanes, acc.dtype(), {acc}); }

inline Expr batch() { return Expr::make(ScalarOp::batch, DType::i64, {}); }

inline kir::Stmt loop(kir::For::Kind kind, int64_t var, Expr begin, Expr end, kir::Block body) {
  return {kir::For{var, std::move(begin), std::move(end), kind,
                   std::make_shared<kir::Block>(std::move(body))}};
}

inline kir::Stmt store(int64_t buffer, Expr offset, Expr value, Expr mask = {}) {
  return {kir::StoreTo{buffer, std::move(offset), std::move(value), std::move(mask)}};
}

inline kir::Stmt prefetch(int64_t buffer, Expr offset) {
  return {kir::Prefetch{buffer, std::move(offset)}};
}

inline kir::Buffer input(const std::string& name, DType dtype, Dim elements) {
  return {name, dtype, elements, kir::Buffer::Role::in};
}

inline kir::Buffer output(const std::string& name, DType dtype, Dim elements) {
  return {name, dtype, elements, kir::Buffer::Role::out};
}

/// One block that runs `body`.
inline kir::Kernel one_block(std::vector<kir::Buffer> buffers, kir::Block body) {
  kir::Kernel kernel;
  kernel.name = "k";
  kernel.buffers = std::move(buffers);
  kernel.blocks = Expr::index(1);
  kernel.block_var = 1000;
  kernel.body = std::move(body);
  return kernel;
}

}  // namespace fluid::testing
