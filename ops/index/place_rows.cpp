#include "ops/elementwise.h"

namespace fluid {
namespace {

std::vector<Type> infer_place_rows(const InferCtx& c) {
  Type type = c.in(0);
  const int64_t rows = c.attr<int64_t>("rows");
  c.require(type.dtype != DType::boolean && type.shape.rank() > 0,
            "x must be a numeric tensor of rank >= 1, not " + type.str());
  c.require(c.in(1) == Type{i64, {}, {}}, "start must be i64[], not " + c.in(1).str());
  c.require(rows >= 0, "attribute 'rows' must not be negative");
  type.shape[0] = rows;
  c.require(!type.shape.has_batch(), "only dimension 0 of x may be the batch: " + c.in(0).str());
  return {type};
}

std::vector<Expr> place_rows_body(const LowerCtx& c) {
  std::vector<Expr> at = c.out_vars();
  at[0] = at[0] - c.read(1, {});
  return {c.read_or(0, at, 0)};
}

}  // namespace

OpDef place_rows_op() {
  return OpDef{
      .name = "place_rows",
      .doc =
          "A tensor of `rows` rows that holds the rows of x from row `start` on, and is 0 "
          "elsewhere. Rows of x that are out of range are dropped.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}, {"start", "i64[]"}},
      .attrs = {{"rows", int64_t{0}, "number of rows of the result", true}},
      .outputs = {{"y", "x's dtype, [rows, k...]"}},
      .infer = infer_place_rows,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{place_rows_body},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
