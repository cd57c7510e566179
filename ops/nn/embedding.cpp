#include "ops/nn/embedding.h"

#include "ops/elementwise.h"
#include "ops/index/gather.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {

AttrDef padding_idx_attr(const std::string& effect) {
  return {"padding_idx", std::vector<int64_t>{},
          "row of the table that " + effect + "; negative: counted from the end; empty: none"};
}

std::optional<int64_t> padding_row(const Attrs& attrs, const Shape& table) {
  const auto& rows = attrs.get<std::vector<int64_t>>("padding_idx");
  if (rows.empty()) return std::nullopt;
  return rows[0] < 0 ? rows[0] + table[0].size : rows[0];
}

void require_embedding(const InferCtx& c) {
  const Type &table = c.in(0), &index = c.in(1);
  c.require(is_float(table.dtype) && table.shape.rank() == 2 && !table.shape.has_batch() &&
                table.shape[0].size > 0,
            "the table must be a float matrix [V, D] with V > 0, not " + table.str());
  c.require(is_integer(index.dtype), "the index must be an integer tensor, not " + index.str());
  c.require(c.attr<std::vector<int64_t>>("padding_idx").size() <= 1,
            "attribute 'padding_idx' takes at most one row, not " + c.attr_text("padding_idx"));
  const std::optional<int64_t> padding = padding_row(c.attrs(), table.shape);
  c.require(!padding || (*padding >= 0 && *padding < table.shape[0].size),
            "attribute 'padding_idx' must be a row of " + table.str() + ", not " +
                c.attr_text("padding_idx"));
}

Value mask_padding_index(Value index, std::optional<int64_t> padding) {
  const Value wide = cast(index, i64);
  if (!padding) return wide;
  const auto row = static_cast<double>(*padding);
  return where(equal(wide, scalar_like(wide, row)), scalar_like(wide, -1), wide);
}

OpDef embedding_op() {
  return OpDef{
      .name = "embedding",
      .doc =
          "Rows of a table at the indices, like torch.nn.functional.embedding. An index out of "
          "range raises an error.",
      .inputs = {{"table", "float [V, D]"}, {"index", "integer tensor of any shape"}},
      .attrs = {padding_idx_attr("gets no gradient")},
      .outputs = {{"y", "table's dtype, index's shape followed by D"}},
      .infer =
          [](const InferCtx& c) {
            require_embedding(c);
            Shape shape = c.in(1).shape;
            shape.push_back(c.in(0).shape[1]);
            return std::vector{Type{c.in(0).dtype, shape, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Type& table = c.in(0).type();
        const Value index = mask_padding_index(c.in(1), padding_row(c.attrs(), table.shape));
        return Values{internal::gather_grad(c.dout(0), index, {.input = table}), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = gather_cost,
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) { return Values{gather(c.in(0), c.in(1))}; }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
