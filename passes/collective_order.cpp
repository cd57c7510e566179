#include "passes/collective_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "ops/group.h"
#include "ops/record.h"
#include "ops/scan.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr const char* kOrderAttribute = "bucket";
constexpr const char* kErrorSync = "error_sync";

int64_t order_number_of(const ir::Op& collective) {
  return collective.attrs.get<int64_t>(kOrderAttribute);
}

}  // namespace

Values record_collective(ir::Graph& graph, std::string_view op, const Values& bucket,
                         const Loc& loc) {
  const std::vector<ir::Op*> before = collectives_in_order(graph);
  const int64_t number = before.empty() ? 0 : order_number_of(*before.back()) + 1;
  return insert_collective(graph, number, op, bucket, loc);
}

Values insert_collective(ir::Graph& graph, int64_t order_number, std::string_view op,
                         const Values& bucket, const Loc& loc) {
  for (ir::Op* later : collectives_in_order(graph)) {
    const int64_t own = order_number_of(*later);
    if (own >= order_number) later->attrs.set(kOrderAttribute, own + 1);
  }
  ir::ScopedRecording as(graph, {ir::Role::comm, loc, "", ""});
  return record(graph, op, bucket, {{kOrderAttribute, order_number}}, loc);
}

void mark_as_error_sync(ir::Op& collective) { collective.attrs.set(kErrorSync, true); }

std::optional<size_t> collectives_before_error_sync(const ir::Graph& graph) {
  const std::vector<ir::Op*> in_order = collectives_in_order(graph);
  const auto marked =
      std::ranges::find_if(in_order, [](const ir::Op* op) { return op->attrs.has(kErrorSync); });
  if (marked == in_order.end()) return std::nullopt;
  return static_cast<size_t>(marked - in_order.begin());
}

std::vector<OrderEdge> find_order_edges(const ir::Graph& graph) {
  std::vector<OrderEdge> pairs;
  const std::vector<ir::Op*> in_order = collectives_in_order(graph);
  for (size_t i = 1; i < in_order.size(); ++i) pairs.emplace_back(in_order[i - 1], in_order[i]);
  if (const auto count = collectives_before_error_sync(graph)) {
    for (const auto& op : graph.ops) {
      if (checks_data(*op)) pairs.emplace_back(op.get(), in_order[*count]);
    }
  }
  return pairs;
}

void sort_by_order_edges(ir::Graph& graph) {
  std::map<const ir::Op*, std::vector<const ir::Op*>> before;
  for (const auto& [first, next] : find_order_edges(graph)) before[next].push_back(first);
  std::map<const ir::Op*, std::unique_ptr<ir::Op>> left;
  std::vector<const ir::Op*> given;
  for (auto& op : graph.ops) {
    given.push_back(op.get());
    left[op.get()] = std::move(op);
  }
  graph.ops.clear();
  const std::function<void(const ir::Op*)> visit = [&](const ir::Op* op) {
    const auto own = left.find(op);
    if (own == left.end()) return;
    std::unique_ptr<ir::Op> taken = std::move(own->second);
    left.erase(own);
    for (const Value& v : taken->operands) visit(v.op());
    for (const ir::Op* first : before[op]) visit(first);
    graph.ops.push_back(std::move(taken));
  };
  for (const ir::Op* op : given) visit(op);
}

std::optional<std::vector<int64_t>> last_collectives(const ir::Graph& graph, const Values& values) {
  if (collectives_in_order(graph).empty()) return std::nullopt;
  std::map<const ir::Op*, int64_t> last;
  for (const auto& op : graph.ops) {
    int64_t& number = last[op.get()] = is_collective(*op) ? order_number_of(*op) : -1;
    for (const Value& v : op->operands) number = std::max(number, last.at(v.op()));
  }
  std::vector<int64_t> found;
  for (const Value& v : values) found.push_back(last.at(v.op()));
  return found;
}

int64_t collective_bytes(const ir::Op& collective) {
  int64_t bytes = 0;
  // The batch size does not matter: operands of collectives have no batch dimension.
  for (const Value& v : collective.operands) bytes += v.type().bytes_at(1);
  return bytes;
}

std::vector<ir::Op*> collectives_in_order(const ir::Graph& graph) {
  std::vector<ir::Op*> found;
  for (const auto& op : graph.ops) {
    if (is_collective(*op)) found.push_back(op.get());
  }
  std::ranges::sort(found, {}, [](const ir::Op* op) { return order_number_of(*op); });
  return found;
}

}  // namespace fluid
