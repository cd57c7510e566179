#include <cmath>

#include "ops/elementwise.h"
#include "ops/internal_functions.h"
#include "ops/nn/embedding.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_embedding_bag(const InferCtx& c) {
  require_embedding(c);
  const Type &table = c.in(0), &index = c.in(1);
  c.require(index.shape.rank() == 2 && !index.shape[1].batch,
            "the index must be a matrix [N, L] with constant L, not " + index.str());
  const std::string& mode = c.attr<std::string>("mode");
  c.require(mode == "sum" || mode == "mean" || mode == "max",
            R"(mode must be "sum", "mean" or "max", not ")" + mode + "\"");
  c.require(!c.has(2) || mode == "sum", R"(weights require mode = "sum")");
  c.require(!c.has(2) || c.in(2) == Type{table.dtype, index.shape, {}},
            "expects weights " + Type{table.dtype, index.shape, {}}.str() + ", got " +
                (c.has(2) ? c.in(2).str() : ""));
  return {Type{table.dtype, {index.shape[0], table.shape[1]}, {}}};
}

/// Gathers the table rows of each bag, for the forward op and its gradient.
struct Bags {
  Value table, index, weights;  // `weights` is null for an unweighted bag
  std::optional<int64_t> padding;
  std::string mode;

  template <class Ctx>
  explicit Bags(const Ctx& c)
      : table(c.in(0)),
        index(c.in(1)),
        weights(c.arity() > 2 ? c.in(2) : Value()),
        padding(padding_row(c.attrs(), table.shape())),
        mode(c.template attr<std::string>("mode")) {}

  static Value per_row(Value v) { return unsqueeze(v, {.axes = -1}); }
  Value rows() const { return gather(table, index); }  // [N, L, D]
  /// Returns a mask [N, L, 1]: false where the index is the padding index.
  Value counted() const {
    return per_row(not_equal(index, scalar_like(index, static_cast<double>(*padding))));
  }
  Value without_padding(Value v, double otherwise) const {
    return padding ? where(counted(), v, scalar_like(v, otherwise)) : v;
  }
  /// Number of non-padding rows of each bag, but at least 1: [N, 1].
  Value counts() const {
    const Type type{table.dtype(), index.shape(), {}};
    const Value one = fill(*index.op()->graph(), {.type = type, .value = 1.0});
    const Value count = sum(without_padding(per_row(one), 0), {.axes = 1});
    return maximum(count, scalar_like(count, 1));
  }
  Value candidates() const { return without_padding(rows(), -double{INFINITY}); }
  bool empty() const { return index.shape()[1].size == 0; }
};

Values expand_embedding_bag(const ExpandCtx& c) {
  const Bags bags(c);
  if (bags.empty()) return {fill(*c.op().graph(), {.type = c.out_type(0)})};
  if (bags.mode == "max") {
    const Value y = max(bags.candidates(), {.axes = 1});
    if (!bags.padding) return {y};
    return {where(any(bags.counted(), {.axes = 1}), y, scalar_like(y, 0))};
  }
  Value rows = bags.rows();
  if (bags.weights) rows = rows * Bags::per_row(bags.weights);
  const Value total = sum(bags.without_padding(rows, 0), {.axes = 1});
  return {bags.mode == "sum" ? total : total / bags.counts()};
}

/// Gradient of the rows [N, L, D] in mode "max". Only the first row that equals the maximum gets a
/// gradient.
Value gradient_of_candidates(const Bags& bags, Value dy) {
  const Value best = argmax(bags.candidates(), {.axis = 1, .keep_dims = true});
  const Type positions{i64, {bags.index.shape()[1]}, {}};
  const Value position = Bags::per_row(arange(*dy.op()->graph(), {.type = positions}));
  const Value of_bag = unsqueeze(dy, {.axes = 1});
  return where(equal(best, position), of_bag, scalar_like(of_bag, 0));
}

Values embedding_bag_grad(const GradCtx& c) {
  const Bags bags(c);
  const Value dy = bags.mode == "mean" ? c.dout(0) / bags.counts() : c.dout(0);
  const Value index = mask_padding_index(bags.index, bags.padding);
  const Type& table = bags.table.type();
  if (bags.mode == "max" && !bags.empty()) {
    return {internal::gather_grad(gradient_of_candidates(bags, dy), index, {.input = table}), {}};
  }
  if (!bags.weights) return {internal::embedding_bag_grad(dy, index, {.input = table}), {}};
  const Value products = unsqueeze(dy, {.axes = 1}) * bags.rows();
  return {internal::embedding_bag_grad(dy, index, bags.weights, {.input = table}),
          {},
          sum(bags.without_padding(products, 0), {.axes = -1})};
}

}  // namespace

OpDef embedding_bag_op() {
  return OpDef{
      .name = "embedding_bag",
      .doc =
          "Sum, mean or maximum of the rows of a table at the indices of each bag, like "
          "torch.nn.functional.embedding_bag. A bag without rows gives 0. An index out of range "
          "raises an error.",
      .inputs = {{"table", "float [V, D]"},
                 {"index", "integer [N, L]: N bags of L indices"},
                 {.name = "weights",
                  .doc = "table's dtype, [N, L]: factors of the rows of a sum",
                  .optional = true}},
      .attrs = {{"mode", std::string("mean"), R"("sum", "mean" or "max")"},
                padding_idx_attr("is left out of the bags")},
      .outputs = {{"y", "table's dtype, [N, D]"}},
      .infer = infer_embedding_bag,
      .grad = GradFn(embedding_bag_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const double rows = c.numel_in(1);
            return Cost{.flops = 2 * rows * static_cast<double>(c.in[0].shape[1].size)};
          },
      .in_place = {},
      .lower = Expand{expand_embedding_bag},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
