#include "ops/math/einsum.h"

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_einsum(const InferCtx& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.arity(); ++i) {
    require_float(c, i);
    shapes.push_back(c.in(i).shape);
  }
  require_same_dtype(c);
  const EinsumSpec spec = einsum_spec(c.attr<std::string>("equation"), shapes,
                                      [&](const std::string& what) { c.fail(what); });
  Type type{c.in(0).dtype, {}, {}};
  for (const char ch : spec.result) type.shape.push_back(spec.extents.at(ch));
  return {type};
}

Values expand_einsum(const ExpandCtx& c) {
  const Values& in = c.op().operands;
  const EinsumSpec spec = einsum_spec(c.attr<std::string>("equation"), in);
  LabeledValue y = diagonal_of({in[0], spec.operands[0]});
  for (size_t i = 1; i < in.size(); ++i) {
    y = contract(y, diagonal_of({in[i], spec.operands[i]}), spec.letters_from(i + 1));
  }
  return {permute_to(sum_except(y, spec.result), spec.result).value};
}

/// Returns the gradient of operand `i`: the einsum of dy and the other operands, broadcast along
/// the letters that occur only in operand `i`.
Value operand_gradient(const GradCtx& c, const EinsumSpec& spec, size_t i) {
  const std::string& letters = spec.operands[i];
  Values operands = {c.dout(0)};
  std::vector<std::string> terms = {spec.result};
  for (size_t o = 0; o < c.arity(); ++o) {
    if (o == i) continue;
    operands.push_back(c.in(o));
    terms.push_back(spec.operands[o]);
  }
  std::string known, available;
  for (const std::string& term : terms) available += term;
  const auto is_known = [&](size_t d) {
    return has_letter(available, letters[d]) && letters.find(letters[d]) == d;
  };
  for (size_t d = 0; d < letters.size(); ++d) {
    if (is_known(d)) known += letters[d];
  }
  Value g = einsum(operands, {.equation = EinsumSpec::equation(terms, known)});
  // `wide` is the shape of g with extent 1 for missing letters. `narrow` also has extent 1 for each
  // letter with extent 1 in operand `i`; g is summed over these letters.
  const Shape& shape = c.in(i).shape();
  Shape wide(shape.size(), Dim(1)), narrow = wide;
  for (size_t d = 0, at = 0; d < letters.size(); ++d) {
    if (!is_known(d)) continue;
    wide[d] = g.shape()[at++];
    narrow[d] = wide[d].is(1) ? Dim(1) : shape[d];
  }
  g = broadcast_to(sum_to(reshape(g, wide), narrow), shape);
  for (size_t d = 0; d < letters.size(); ++d) {
    const size_t first = letters.find(letters[d]);
    if (first != d) g = masked_to_diagonal(g, first, d);
  }
  return g;
}

Values einsum_grad(const GradCtx& c) {
  const EinsumSpec spec = einsum_spec(c.attr<std::string>("equation"), c.op().operands);
  Values gradients;
  for (size_t i = 0; i < c.arity(); ++i) gradients.push_back(operand_gradient(c, spec, i));
  return gradients;
}

Cost einsum_cost(const CostCtx& c) {
  std::vector<Shape> shapes;
  for (const Type& type : c.in) shapes.push_back(type.shape);
  const EinsumSpec spec = einsum_spec(c.attrs.get<std::string>("equation"), shapes,
                                      [](const std::string& what) { check(false, what); });
  std::string letters = spec.operands[0];
  double flops = c.numel_in(0);
  for (size_t i = 1; i < shapes.size(); ++i) {
    letters += spec.operands[i];
    double products = 1;
    std::string kept;
    for (const auto& [letter, extent] : spec.extents) {
      if (!has_letter(letters, letter)) continue;
      products *= static_cast<double>(extent.size);
      if (has_letter(spec.letters_from(i + 1), letter)) kept += letter;
    }
    letters = kept;
    flops += 2 * products;
  }
  return Cost{.flops = flops};
}

}  // namespace

OpDef einsum_op() {
  return OpDef{
      .name = "einsum",
      .doc =
          "Sum of products in Einstein notation, like torch.einsum: \"bij,bjk->bik\" is a batch of "
          "matrix products. Without \"->\" the result has the letters that occur once, in "
          "alphabetical order. \"...\" stands for leading dimensions that broadcast. A letter that "
          "an operand repeats selects its diagonal. Operands are contracted from left to right.",
      .inputs = {{.name = "xs", .doc = "float tensors of one dtype", .variadic = true}},
      .attrs = {{"equation", std::string(), "letters of the operands and of the result", true}},
      .outputs = {{"y", "dtype of the operands"}},
      .infer = infer_einsum,
      .grad = GradFn(einsum_grad),
      .effects = Pure{},
      .amp = Amp::kHalf,
      .cost = einsum_cost,
      .in_place = {},
      .lower = Expand{expand_einsum},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
