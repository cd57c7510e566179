#include "frontend/onnx/mapping.h"

#include "frontend/onnx/context.h"

namespace fluid::onnx {
namespace {

const Mappings& mappings() {
  static const Mappings all = [] {
    Mappings m;
    for (const auto add :
         {add_attention, add_constants, add_control, add_elementwise, add_indexing, add_linear,
          add_losses, add_normalization, add_quantization, add_recurrent, add_reductions,
          add_resize, add_shapes, add_training, add_windows}) {
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

Operands record_graph(ir::Graph& graph, const Graph& onnx_graph, const Operands& inputs,
                      const RecordConstant& constant, const FindOperand& outer, const Loc& loc) {
  std::map<std::string, Operand> values;
  const auto find = [&](const std::string& name) {
    const auto found = values.find(name);
    if (found != values.end()) return found->second;
    return outer ? outer(name) : Operand();
  };
  const auto read = [&](const std::string& name, const std::string& reader) {
    Operand operand = find(name);
    if (!operand) throw Unsupported(loc, reader + ": no value '" + name + "'");
    return operand;
  };
  for (const auto& [name, tensor] : onnx_graph.initializers) {
    values[name] = {constant(tensor), tensor};
  }
  for (size_t i = 0; i < onnx_graph.inputs.size(); ++i) {
    values[onnx_graph.inputs[i]] = inputs.at(i);
  }
  for (const GraphNode& entry : onnx_graph.nodes) {
    Node node = entry.node;
    node.find = find;
    for (const std::string& name : entry.inputs) {
      node.inputs.push_back(name.empty() ? Operand()
                                         : read(name, "ONNX operator '" + node.op + "'"));
    }
    const Operands outputs = record_node(graph, node, constant, loc);
    for (size_t i = 0; i < outputs.size(); ++i) values[node.outputs[i]] = outputs[i];
  }
  Operands outputs;
  for (const std::string& name : onnx_graph.outputs) outputs.push_back(read(name, "ONNX graph"));
  return outputs;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, mapping] : mappings()) names.push_back(name);
  return names;
}

}  // namespace fluid::onnx
