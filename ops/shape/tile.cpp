#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the repeat count of dimension `d` of the result. `rank` is the rank of the result.
int64_t repeats_of(const Attrs& attrs, size_t d, size_t rank) {
  const auto& repeats = attrs.get<std::vector<int64_t>>("repeats");
  const size_t skip = rank - repeats.size();
  return d < skip ? 1 : repeats[d - skip];
}

std::vector<Type> infer_tile(const InferCtx& c) {
  const auto& repeats = c.attr<std::vector<int64_t>>("repeats");
  Type type = c.in(0);
  if (repeats.size() > type.shape.size()) {
    type.shape.insert(type.shape.begin(), repeats.size() - type.shape.size(), Dim(1));
  }
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const int64_t factor = repeats_of(c.attrs(), d, type.shape.size());
    Dim& extent = type.shape[d];
    c.require(factor >= 0, "repeats must not be negative, but are " + c.attr_text("repeats"));
    c.require(!extent.batch || factor == 1,
              "the batch dimension of " + c.in(0).str() + " cannot be repeated");
    c.require(!__builtin_mul_overflow(extent.size, factor, &extent.size),
              "dimension " + std::to_string(d) + " of the result grows too large");
  }
  return {type};
}

/// Gradient of tile: splits each repeated dimension into the repetitions and the extent of x, and
/// sums over the repetitions.
Values tile_grad(const GradCtx& c) {
  const Shape &x = c.in(0).shape(), &y = c.dout(0).shape();
  const size_t added = y.size() - x.size();
  Shape split;
  Ints repetitions;
  for (size_t d = 0; d < y.size(); ++d) {
    const int64_t factor = repeats_of(c.attrs(), d, y.size());
    if (factor != 1) {
      repetitions.push_back(split.rank());
      split.emplace_back(factor);
    }
    if (d >= added) split.push_back(x[d - added]);
  }
  const Value parts = reshape(c.dout(0), split);
  return {reshape(repetitions.empty() ? parts : sum(parts, {.axes = repetitions}), x)};
}

}  // namespace

OpDef tile_op() {
  return OpDef{
      .name = "tile",
      .doc =
          "Repeats x `repeats` times along each dimension. Repeats beyond x's rank add leading "
          "dimensions; missing ones are 1 for the leading dimensions.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"repeats", std::vector<int64_t>{},
                 "number of repetitions of the trailing dimensions; 1 for the batch dimension",
                 true}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_tile,
      .grad = GradFn(tile_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {{0, 0}},  // takes effect only without repetition: requires equal types
      .lower = Map{[](const LowerCtx& c) {
        const Shape& x = c.in_type(0).shape;
        const size_t rank = c.out_type().shape.size(), added = rank - x.size();
        std::vector<Expr> index;
        for (size_t d = added; d < rank; ++d) {
          const bool once = repeats_of(c.attrs(), d, rank) == 1;
          index.push_back(once ? c.out_var(d) : scalar::mod(c.out_var(d), c.extent(x[d - added])));
        }
        return std::vector{c.read(0, index)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
