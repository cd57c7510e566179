#include "ops/source/source.h"

namespace fluid {

OpDef source_def(std::string name, std::string doc, std::vector<AttrDef> attrs) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {},
      .attrs = std::move(attrs),
      .outputs = {{"value", "of the type given when the op is recorded"}},
      .infer = [](const InferCtx& c) { return c.ins(); },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {},
      .lower = Source{},
      .kernels = {},
      .version = 1,
  };
}

OpDef variable_def(std::string name, std::string doc) {
  OpDef def = source_def(std::move(name), std::move(doc),
                         {{"init", std::string("zeros"),
                           "name of the initialiser, whose settings are further attributes"}});
  def.open_attrs = true;
  return def;
}

OpDef store_def(std::string name, std::string doc, std::string operand_doc,
                std::vector<AttrDef> attrs) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"value", std::move(operand_doc)}},
      .attrs = std::move(attrs),
      .outputs = {},
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {},
      .lower = Store{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
