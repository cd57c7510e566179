#include <algorithm>

#include "ops/group.h"

namespace fluid {
namespace {

bool same_loop(const GroupSink& a, const GroupSink& b) {
  return &a == &b || (!a.finish && !b.finish && !a.combine && !b.combine && a.stage == b.stage &&
                      a.out == b.out);
}

/// Whether the read is of the element that the sink's iteration writes.
bool is_own_element(const Expr& read, const GroupSink& sink) {
  if (read.node().checked || read.args().size() != sink.out.size()) return false;
  for (size_t d = 0; d < sink.out.size(); ++d) {
    const Expr own = sink.out[d] < 0 ? Expr::index(0) : Expr::var(sink.out[d]);
    if (!same(read.args()[d], own)) return false;
  }
  return true;
}

/// Whether every read of `input` is by the iteration that writes the same element of the result of
/// `writer`: by sinks that run in its loop, where values are computed before any is stored.
bool may_overwrite(const Group& group, const GroupSink& writer, int64_t input) {
  return std::ranges::all_of(group.sinks, [&](const GroupSink& sink) {
    bool good = true;
    for_each_node(sink.body, [&](const Expr& e) {
      if (e.op() != Scalar::read || e.node().ivalue != input) return;
      good = good && same_loop(sink, writer) && is_own_element(e, sink);
    });
    return good;
  });
}

}  // namespace

std::vector<InPlace> in_place_pairs(const ir::Graph& body) {
  const Group group = analyze_body(body);
  std::vector<InPlace> pairs;
  for (const GroupSink& sink : group.sinks) {
    if (sink.combine || sink.outputs.size() != 1 || sink.outputs[0] < 0) continue;
    const Value out = group.outputs[static_cast<size_t>(sink.outputs[0])];
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      if (group.inputs[i].type() != out.type()) continue;
      if (may_overwrite(group, sink, static_cast<int64_t>(i))) {
        pairs.push_back({sink.outputs[0], static_cast<int>(i)});
      }
    }
  }
  return pairs;
}

}  // namespace fluid
