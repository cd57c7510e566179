#include "ops/matched_forms.h"

#include "ops/quantization/quantization.h"
#include "ops/table.h"

namespace fluid {
namespace {

bool is_unary_map(const ir::Op& op) {
  return op.operands.size() == 1 && op.results.size() == 1 &&
         std::holds_alternative<Map>(*def_of(op).lower);
}

}  // namespace

bool is_relu(const ir::Op& op) {
  if (!is_unary_map(op)) return false;
  const Expr body = lower_op(op).bodies[0];
  return body.op() == ScalarOp::max && body.args()[0].op() == ScalarOp::read &&
         is_constant(body.args()[1], 0);
}

bool is_round_saturate(const ir::Op& op) {
  if (!is_unary_map(op) || !is_8bit_integer(op.results[0].type.dtype)) return false;
  const Expr body = lower_op(op).bodies[0];
  Expr read;
  for_each_node(body, [&](const Expr& e) {
    if (e.op() == ScalarOp::read) read = e;
  });
  return read && is_float(read.dtype()) &&
         structurally_equal(body, round_and_saturate(read, Expr(), op.results[0].type.dtype));
}

}  // namespace fluid
