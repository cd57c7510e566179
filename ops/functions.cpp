// Generated from the op table by fluid_opgen.
// clang-format off
#include "ops/functions.h"

namespace fluid {

Value add(Value a, Value b, const Loc& loc) {
  return record(graph_of({a, b}, "add", loc), "add", {a, b}, {}, loc).at(0);
}

Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc) {
  return record(graph_of({x}, "broadcast_to", loc), "broadcast_to", {x}, {{"to", attrs.to}}, loc).at(0);
}

Value cast(Value x, const CastAttrs& attrs, const Loc& loc) {
  return record(graph_of({x}, "cast", loc), "cast", {x}, {{"to", attrs.to}}, loc).at(0);
}

Value copy(Value x, const Loc& loc) {
  return record(graph_of({x}, "copy", loc), "copy", {x}, {}, loc).at(0);
}

Value div(Value a, Value b, const Loc& loc) {
  return record(graph_of({a, b}, "div", loc), "div", {a, b}, {}, loc).at(0);
}

Value exp(Value x, const Loc& loc) {
  return record(graph_of({x}, "exp", loc), "exp", {x}, {}, loc).at(0);
}

Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc) {
  return record(graph, "fill", {}, {{"type", attrs.type}, {"value", attrs.value}}, loc).at(0);
}

Value greater(Value a, Value b, const Loc& loc) {
  return record(graph_of({a, b}, "greater", loc), "greater", {a, b}, {}, loc).at(0);
}

Value log(Value x, const Loc& loc) {
  return record(graph_of({x}, "log", loc), "log", {x}, {}, loc).at(0);
}

Value matmul(Value a, Value b, const MatmulAttrs& attrs, const Loc& loc) {
  return record(graph_of({a, b}, "matmul", loc), "matmul", {a, b}, {{"transpose_a", attrs.transpose_a}, {"transpose_b", attrs.transpose_b}}, loc).at(0);
}

Value mul(Value a, Value b, const Loc& loc) {
  return record(graph_of({a, b}, "mul", loc), "mul", {a, b}, {}, loc).at(0);
}

Value neg(Value x, const Loc& loc) {
  return record(graph_of({x}, "neg", loc), "neg", {x}, {}, loc).at(0);
}

Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc) {
  return record(graph, "numel", {}, {{"of", attrs.of}}, loc).at(0);
}

Value relu(Value x, const Loc& loc) {
  return record(graph_of({x}, "relu", loc), "relu", {x}, {}, loc).at(0);
}

Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc) {
  return record(graph_of({x}, "reshape", loc), "reshape", {x}, {{"to", attrs.to}}, loc).at(0);
}

Value select(Value condition, Value a, Value b, const Loc& loc) {
  return record(graph_of({condition, a, b}, "select", loc), "select", {condition, a, b}, {}, loc).at(0);
}

Value sub(Value a, Value b, const Loc& loc) {
  return record(graph_of({a, b}, "sub", loc), "sub", {a, b}, {}, loc).at(0);
}

Value sum(Value x, const SumAttrs& attrs, const Loc& loc) {
  return record(graph_of({x}, "sum", loc), "sum", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0);
}

}  // namespace fluid
