#include "executor/profile/call_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/device/op_cost.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

std::vector<const ir::Op*> computed_ops(const ir::Graph& body) {
  std::vector<const ir::Op*> ops;
  for (const auto& op : body.ops) {
    if (source_kind(*op) == SourceKind::none) ops.push_back(op.get());
  }
  return ops;
}

const ir::Graph* body_of(const ir::Op& op) {
  const Attr* body = op.attrs.find("body");
  return body == nullptr ? nullptr : op.graph()->program().find(std::get<GraphRef>(*body).name);
}

/// Returns the dtype that determines the peak FLOP/s of `op`.
DType limiting_dtype(const ir::Op& op) {
  const auto computes_in = [&](DType dtype) {
    return std::ranges::all_of(op.operands, [&](const Value& v) { return v.dtype() == dtype; });
  };
  if (!op.results.empty() && op.results.front().type.dtype == f64) return f64;
  if (op.operands.empty() || def_of(op).kernels->empty()) return f32;
  for (const DType half : {bf16, f16}) {
    if (computes_in(half)) return half;
  }
  return f32;
}

std::string kernel_of(const ir::Op& op) {
  if (op.attrs.has("kernel")) return op.attrs.get<std::string>("kernel");
  if (op.attrs.has("body")) return "generated";
  return is_collective(op) ? op.name : "copy";
}

/// Returns the memory traffic of `op`: the bytes of all operands and results, each counted once.
/// Values inside a fused kernel cause no memory traffic.
double traffic_of(const ir::Op& op, int64_t batch) {
  int64_t bytes = 0;
  for (const Value& v : op.operands) bytes += v.type().bytes_at(batch);
  for (const ir::Result& r : op.results) bytes += r.type.bytes_at(batch);
  // A `store` has no results: it reads its operand and writes the same number of bytes.
  return static_cast<double>(op.results.empty() ? 2 * bytes : bytes);
}

/// Returns the type of the largest operand or result of `op`.
Type largest_type(const ir::Op& op, int64_t batch) {
  Type largest;
  int64_t bytes = -1;
  const auto consider = [&](const Type& type) {
    if (type.bytes_at(batch) <= bytes) return;
    largest = type;
    bytes = type.bytes_at(batch);
  };
  for (const Value& v : op.operands) consider(v.type());
  for (const ir::Result& r : op.results) consider(r.type);
  return largest;
}

/// Returns CallInfo::kind of a generated kernel that computes `ops`.
std::string kind_of(const std::vector<const ir::Op*>& ops, int64_t batch) {
  const auto touches_part = [&](const ir::Op* op) { return cost_of(*op, batch).bytes > 0; };
  if (std::ranges::any_of(ops, touches_part)) return "gather";
  const auto flops = [&](const ir::Op* op) { return cost_of(*op, batch).flops; };
  const ir::Op* reduction = nullptr;
  for (const ir::Op* op : ops) {
    const Lower& lower = *def_of(*op).lower;
    if (!std::holds_alternative<Reduce>(lower) && !std::holds_alternative<Loops>(lower)) continue;
    if (reduction == nullptr || flops(op) > flops(reduction)) reduction = op;
  }
  const bool is_contraction = reduction != nullptr && !def_of(*reduction).kernels->empty();
  const auto updates = [](const ir::Op* op) { return op->role == ir::Role::optimize; };
  if (!is_contraction && std::ranges::any_of(ops, updates)) return "optimizer";
  return reduction == nullptr ? "map" : reduction->name;
}

double predicted_ms(const ir::Op& op, const ir::Op& main_op, int64_t batch, const Target& target) {
  if (op.attrs.has("predicted_ns")) {
    return static_cast<double>(op.attrs.get<std::vector<int64_t>>("predicted_ns").at(0)) / 1e6;
  }
  if (def_of(main_op).kernels->empty()) return -1;
  const auto copy = concrete_copy({&main_op}, batch);
  return 1e3 * target.generated_seconds(*copy->main().ops.back());
}

}  // namespace

std::string layer_of(const ir::Op& op) {
  if (!op.scope.empty()) return op.scope;
  const ir::Graph& main = op.graph()->program().main();
  const ir::Op* parameter = op.param.empty() ? nullptr : variable_named(main, op.param);
  if (parameter != nullptr && !parameter->scope.empty()) return parameter->scope;
  return op.loc.is_known() ? op.loc.str() : op.name;
}

std::string ops_text(const ir::Graph& body) {
  constexpr size_t kMaxNames = 4;
  std::vector<const ir::Op*> ops = computed_ops(body);
  const auto is_constant = [](const ir::Op* op) { return op->operands.empty(); };
  if (!std::ranges::all_of(ops, is_constant)) std::erase_if(ops, is_constant);
  std::vector<std::pair<std::string, int>> names;
  for (const ir::Op* op : ops) {
    const auto same = std::ranges::find(names, op->name, &std::pair<std::string, int>::first);
    if (same == names.end()) {
      names.emplace_back(op->name, 1);
    } else {
      ++same->second;
    }
  }
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    const auto& [name, times] = names[i];
    text +=
        fmt::format("{}{}{}", i > 0 ? ", " : "", name, times > 1 ? fmt::format(" x{}", times) : "");
  }
  return names.size() > kMaxNames ? fmt::format("{}, {} more", text, names.size() - kMaxNames)
                                  : text;
}

CallInfo call_info(const ir::Op& op, int64_t batch, const Target& target) {
  if (is_scan(op)) {  // the call copies one sequence element of a scan
    return {.layer = layer_of(op),
            .ops = "element",
            .kernel = "copy",
            .line = op.loc.str(),
            .role = op.role};
  }
  const ir::Graph* body = body_of(op);
  const auto ops = body == nullptr ? std::vector{&op} : computed_ops(*body);
  const auto flops = [&](const ir::Op* part) { return cost_of(*part, batch).flops; };
  const ir::Op& main_op = **std::ranges::max_element(ops, {}, flops);
  CallInfo info{.layer = layer_of(main_op),
                .ops = body == nullptr ? op.name : ops_text(*body),
                .kernel = kernel_of(op),
                .line = main_op.loc.str(),
                .role = main_op.role,
                .dtype = limiting_dtype(main_op),
                .predicted_ms = predicted_ms(op, main_op, batch, target),
                .is_collective = is_collective(op)};
  if (info.kernel == "generated") info.kind = kind_of(ops, batch);
  const Type largest = largest_type(op, batch);
  info.layout = largest.layout ? largest.layout->str() : "row-major";
  info.largest_dtype = largest.dtype;
  info.bytes =
      info.is_collective ? static_cast<double>(collective_bytes(op)) : traffic_of(op, batch);
  for (const ir::Op* part : ops) info.flops += flops(part);
  return info;
}

}  // namespace fluid
