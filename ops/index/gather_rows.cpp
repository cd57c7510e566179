#include "ops/elementwise.h"
#include "ops/index/gather.h"

namespace fluid {
namespace {

std::vector<Type> infer_gather_rows(const InferCtx& c) {
  const Type &table = c.in(0), &rows = c.in(1);
  require_numeric(c, 0);
  c.require(table.shape.rank() == 2 && !table.shape.has_batch(),
            "the table must be a matrix without the batch dimension, not " + table.str());
  c.require(rows.dtype == i64 && rows.shape.rank() == 1,
            "the row numbers must be i64[n], not " + rows.str());
  return {Type{table.dtype, {rows.shape[0], table.shape[1]}, {}}};
}

}  // namespace

OpDef gather_rows_op() {
  return OpDef{
      .name = "gather_rows",
      .doc =
          "The rows of a table with the given numbers. A number out of range, such as -1 of "
          "coalesce_rows, gives zeros.",
      .inputs = {{"table", "numeric [V, D]"}, {"rows", "i64 [n]"}},
      .attrs = {},
      .outputs = {{"y", "table's dtype, [n, D]"}},
      .infer = infer_gather_rows,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = gather_cost,
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        return std::vector{c.read_or(0, {c.read(1, {c.out_var(0)}), c.out_var(1)}, 0)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
