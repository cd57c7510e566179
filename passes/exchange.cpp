#include "passes/exchange.h"

#include <algorithm>

#include "ops/record.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

int64_t number_of(const ir::Op& exchange) { return exchange.attrs.get<int64_t>("bucket"); }

}  // namespace

Values record_exchange(ir::Graph& graph, std::string_view op, const Values& bucket,
                       const Loc& loc) {
  const std::vector<ir::Op*> before = exchanges(graph);
  const int64_t number = before.empty() ? 0 : number_of(*before.back()) + 1;
  ir::RecordAs as(graph, {ir::Role::comm, loc, "", ""});
  return record(graph, op, bucket, {{"bucket", number}}, loc);
}

int64_t exchanged_bytes(const ir::Op& exchange) {
  int64_t bytes = 0;
  for (const Value& v : exchange.operands) bytes += v.type().bytes_at(1);  // no batch is in it
  return bytes;
}

std::vector<ir::Op*> exchanges(const ir::Graph& graph) {
  std::vector<ir::Op*> found;
  for (const auto& op : graph.ops) {
    if (is_exchange(*op)) found.push_back(op.get());
  }
  std::ranges::sort(found, {}, [](const ir::Op* op) { return number_of(*op); });
  return found;
}

}  // namespace fluid
