#include "ops/optim/average.h"

#include "ops/elementwise.h"

namespace fluid {

OpDef average_def(const std::string& name, const std::string& doc, std::vector<AttrDef> attrs,
                  std::function<void(const InferCtx&)> check,
                  std::function<Expr(const LowerCtx&)> average) {
  return OpDef{
      .name = name,
      .doc = doc,
      .inputs = {{"average", "float tensor, param's shape"},
                 {"param", "float tensor: the updated parameter"},
                 {"update", "i64 scalar: number of completed updates before this one"}},
      .attrs = std::move(attrs),
      .outputs = {{"new_average", "same type as average"}},
      .infer =
          [check = std::move(check)](const InferCtx& c) {
            const Type& old = c.in(0);
            const Type& param = c.in(1);
            c.require(is_float(param.dtype) && is_float(old.dtype) && old.shape == param.shape,
                      "the average of a parameter " + param.str() + " cannot be " + old.str());
            c.require(c.in(2) == Type{i64, {}, {}},
                      "the update counter must be an i64 scalar, got " + c.in(2).str());
            check(c);
            return std::vector{old};
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}}},
      .amp = {Amp::kF32},
      .cost = cost_per_element(4),
      .in_place = {{.out = 0, .in = 0}},
      .lower = Map{[average = std::move(average)](const LowerCtx& c) {
        return std::vector{average(c)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
