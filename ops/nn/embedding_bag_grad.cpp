#include "ops/elementwise.h"
#include "ops/index/scatter_rows.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_embedding_bag_grad(const InferCtx& c) {
  const Type &dy = c.in(0), &index = c.in(1), &table = c.attr<Type>("input");
  const bool fit = is_float(table.dtype) && table.shape.rank() == 2 && !table.shape.has_batch() &&
                   is_integer(index.dtype) && index.shape.rank() == 2 && !index.shape[1].batch &&
                   dy == Type{table.dtype, {index.shape[0], table.shape[1]}, {}};
  c.require(fit, "dy " + dy.str() + " and index " + index.str() + " do not fit to the table " +
                     table.str());
  c.require(!c.has(2) || c.in(2) == Type{table.dtype, index.shape, {}},
            "the weights do not fit to index " + index.str());
  return {table};
}

kir::Kernel embedding_bag_grad_kernel(const LoopsCtx& c) {
  const Shape &table = c.out_type().shape, &index = c.in_type(1).shape;
  const Expr length = Expr::index(std::max<int64_t>(index[1].size, 1));
  const Expr width = Expr::index(table[1].size);
  KernelWriter k(c);
  scatter_rows(k, c,
               {.outer = 1,
                .inner = table[1],
                .count = index.numel(),
                .rows = table[0].size,
                .reduce = "add",
                .row = [&](const Expr&,
                           const Expr& n) { return scalar::cast(k.load(k.operand(1), n), i64); },
                .initial = nullptr,
                .update =
                    [&](const Expr& position, const Expr& i) {
                      const Expr bag = scalar::floordiv(position, length);
                      const Expr dy = k.load(k.operand(0), bag * width + i);
                      return c.arity() > 2 ? dy * k.load(k.operand(2), position) : dy;
                    }});
  return k.kernel();
}

std::optional<RowUpdates> row_updates_of_bags(const ExpandCtx& c) {
  const Shape flat{c.in(1).shape().numel()};
  return RowUpdates{reshape(cast(c.in(1), i64), flat), c.in(0),
                    c.arity() > 2 ? reshape(c.in(2), flat) : Value()};
}

Values embedding_bag_second_grad(const GradCtx& c) {
  const Value dy = c.in(0), index = cast(c.in(1), i64), ddtable = c.dout(0);
  const Value weights = c.arity() > 2 ? c.in(2) : Value();
  const auto each = [](Value v) { return unsqueeze(v, {.axes = -1}); };
  const double last = static_cast<double>(ddtable.shape()[0].size - 1);
  const Value inside = clip(index, {.min = 0.0, .max = last});
  const Value rows = gather(ddtable, inside);  // [N, L, D]
  const Value used = where(each(equal(inside, index)), rows, scalar_like(rows, 0));
  Values gradients(c.arity());
  gradients[0] = sum(weights ? used * each(weights) : used, {.axes = 1});
  if (weights) gradients[2] = sum(used * unsqueeze(dy, {.axes = 1}), {.axes = -1});
  return gradients;
}

}  // namespace

OpDef embedding_bag_grad_op() {
  return OpDef{
      .name = "embedding_bag_grad",
      .doc =
          "Gradient of a sum of embedding_bag with respect to the table: adds the row of dy of "
          "each "
          "bag, times the weight, at the indices of the bag. An index out of range adds nothing.",
      .inputs = {{"dy", "gradient of the sums, [N, D]"},
                 {"index", "index of embedding_bag, [N, L]"},
                 {.name = "weights", .doc = "weights of embedding_bag, [N, L]", .optional = true}},
      .attrs = {{"input", Type{}, "type of the table", true}},
      .outputs = {{"dtable", "of type `input`"}},
      .infer = infer_embedding_bag_grad,
      .grad = GradFn(embedding_bag_second_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const double updates = c.numel_in(1) * static_cast<double>(c.out[0].shape[1].size);
            return Cost{.flops = updates * (c.in.size() > 2 ? 2 : 1) + c.numel_out()};
          },
      .in_place = {},
      .lower = Loops{embedding_bag_grad_kernel},
      .kernels = {},
      .version = 1,
      .row_updates = row_updates_of_bags,
      .internal = true,
  };
}

}  // namespace fluid
