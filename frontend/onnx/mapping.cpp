#include "frontend/onnx/mapping.h"

#include "frontend/onnx/context.h"

namespace fluid::onnx {
namespace {

const Mappings& mappings() {
  static const Mappings all = [] {
    Mappings m;
    for (const auto add : {add_attention, add_constants, add_elementwise, add_indexing, add_linear,
                           add_losses, add_normalization, add_quantization, add_recurrent,
                           add_reductions, add_resize, add_shapes, add_training, add_windows}) {
      add(m);
    }
    return m;
  }();
  return all;
}

}  // namespace

Operands record_node(ir::Graph& graph, const Node& node, const RecordConstant& constant,
                     const Loc& loc) {
  const Context c(graph, node, constant, loc);
  const auto mapping = mappings().find(node.op);
  if (mapping == mappings().end()) c.fail_unsupported("no such operator");
  Operands outputs = mapping->second(c);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const bool computed = i < outputs.size() && outputs[i];
    if (c.has_output(i) && !computed)
      c.fail_unsupported("output " + std::to_string(i) + " is not computed");
  }
  outputs.resize(node.outputs.size());
  return outputs;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, mapping] : mappings()) names.push_back(name);
  return names;
}

}  // namespace fluid::onnx
