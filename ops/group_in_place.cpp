#include <algorithm>

#include "ops/group.h"

namespace fluid {
namespace {

bool contains(const std::vector<int64_t>& vars, int64_t v) {
  return std::ranges::find(vars, v) != vars.end();
}

/// Whether `read` asks for the element that the sink's own iteration writes; with `only`, as far as
/// those variables go.
bool same_element(const GroupSink& writer, const Expr& read,
                  const std::vector<int64_t>* only = nullptr) {
  for (size_t d = 0; d < writer.out.size(); ++d) {
    const int64_t v = writer.out[d];
    if (only != nullptr && !contains(*only, v)) continue;
    const Expr& index = read.args()[d];
    if (v < 0 ? !is_constant(index, 0) : index.op() != Scalar::var || index.node().ivalue != v) {
      return false;
    }
  }
  return true;
}

/// Whether every read of `reader` at this place has happened when `writer` overwrites it.
bool read_before(const GroupPart& part, const GroupSink& writer, const GroupSink& reader,
                 const Expr& read) {
  if (writer.finish != reader.finish) return writer.finish;
  const bool together = !reader.combine && reader.out == writer.out;
  if (writer.finish) return reader.combine || (together && same_element(writer, read));
  if (reader.stage < writer.stage) return same_element(writer, read, &part.rows);
  return reader.stage == writer.stage && together && same_element(writer, read);
}

const GroupPart& part_of(const Group& group, int sink) {
  return *std::ranges::find_if(group.parts, [&](const GroupPart& part) {
    return std::ranges::find(part.sinks, sink) != part.sinks.end();
  });
}

bool may_overwrite(const Group& group, int writer, int64_t input) {
  const GroupPart& part = part_of(group, writer);
  const GroupSink& sink = group.sinks[static_cast<size_t>(writer)];
  bool safe = true;
  for (size_t i = 0; i < group.sinks.size(); ++i) {
    const GroupSink& reader = group.sinks[i];
    const bool here = std::ranges::find(part.sinks, static_cast<int>(i)) != part.sinks.end();
    for_each_node(reader.body, [&](const Expr& e) {
      if (e.op() != Scalar::read || e.node().ivalue != input) return;
      safe = safe && here && !e.node().checked && read_before(part, sink, reader, e);
    });
  }
  return safe;
}

}  // namespace

std::vector<InPlace> in_place_pairs(const Group& group) {
  std::vector<InPlace> pairs;
  for (size_t s = 0; s < group.sinks.size(); ++s) {
    const GroupSink& sink = group.sinks[s];
    if (sink.combine) continue;
    const int out = sink.outputs[0];
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      if (group.inputs[i].type() != group.outputs[static_cast<size_t>(out)].type()) continue;
      if (!may_overwrite(group, static_cast<int>(s), static_cast<int64_t>(i))) continue;
      pairs.push_back({out, static_cast<int>(i)});
    }
  }
  return pairs;
}

std::vector<InPlace> in_place_pairs(const ir::Graph& body) {
  return in_place_pairs(analyze_body(body));
}

}  // namespace fluid
