#include <cmath>

#include "ops/arguments.h"

namespace fluid {

OpDef data_op() {
  return OpDef{
      .name = "data",
      .doc = "A feed, known by its symbol. Its first dimension is usually the batch.",
      .inputs = {},
      .attrs = {{"scale", 1.0, "the feed's values are multiplied by it when they are read"}},
      .outputs = {{"value", "of the recorded type"}},
      .infer =
          [](const InferCtx& c) {
            for (const auto& [name, attr] : c.attrs()) {
              if (name == "scale" || is_stage_attribute(name)) continue;
              const std::vector<std::string> known = {"scale"};
              c.fail("no attribute '" + name + "'" + did_you_mean(name, known));
            }
            c.require(std::isfinite(c.attrs().get_or("scale", 1.0)),
                      "attribute 'scale' must be finite");
            return c.ins();
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {},
      .lower = Source{},
      .kernels = {},
      .version = 1,
      .open_attrs = true,
  };
}

}  // namespace fluid
