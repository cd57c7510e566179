#include "ops/random/random_op.h"

#include "ops/random/draw.h"

namespace fluid {
namespace {

constexpr double kFlopsPerNumber = 60;

std::vector<Expr> bits_of_element(const LowerCtx& c, int64_t draws) {
  Shape shape = c.out_type().shape;
  std::vector<Expr> index = c.out_vars();
  shape.emplace_back(draws);
  index.emplace_back();
  std::vector<Expr> bits;
  for (int64_t i = 0; i < draws; ++i) {
    index.back() = Expr::index(i);
    bits.push_back(step_random_bits(c, 0, shape, index));
  }
  return bits;
}

}  // namespace

PortDef random_state_port() {
  return {"rng", "i64[3]: seed, run counter, index of the first sample"};
}

AttrDef stream_attr() { return {"stream", int64_t{-1}, "identifies the Philox random stream"}; }

OpDef random_op_def(const RandomOp& d) {
  std::vector<AttrDef> attrs = d.attrs;
  attrs.insert(attrs.begin(), {"type", Type{}, "type of the result", true});
  attrs.push_back(stream_attr());
  return OpDef{
      .name = d.name,
      .doc = d.doc,
      .inputs = {random_state_port()},
      .attrs = attrs,
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [check = d.check](const InferCtx& c) {
            const Type& type = c.attr<Type>("type");
            c.require(is_float(type.dtype), "draws floats, not " + type.str());
            require_random_state(c, 0);
            check(c);
            return std::vector{type};
          },
      .grad = GradFn([](const GradCtx&) { return Values{Value()}; }),
      .effects = Random{},
      .amp = {Amp::kFollow},
      .cost =
          [draws = d.draws](const CostCtx& c) {
            return Cost{.flops = kFlopsPerNumber * static_cast<double>(draws) * c.numel_out()};
          },
      .in_place = {},
      .lower = Map{[draw = d.draw, draws = d.draws](const LowerCtx& c) {
        return std::vector{draw(c, bits_of_element(c, draws))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
