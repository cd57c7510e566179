#include <algorithm>

#include "ops/group.h"
#include "ops/loops.h"

namespace fluid {
namespace {

/// Whether `read` loads the element that `writer` stores in the same iteration. If `compared` is
/// not null, checks only the dimensions whose loop variables are in `compared`.
bool same_element(const FusionRoot& writer, const Expr& read,
                  const std::vector<int64_t>* compared = nullptr) {
  for (size_t d = 0; d < writer.out.size(); ++d) {
    const int64_t v = writer.out[d];
    if (compared != nullptr && std::ranges::find(*compared, v) == compared->end()) continue;
    const Expr& index = read.args()[d];
    if (v < 0 ? !is_constant(index, 0) : index.op() != ScalarOp::var || index.node().ivalue != v) {
      return false;
    }
  }
  return true;
}

/// Whether root `reader` always loads an element by `read` before root `writer` overwrites the
/// element.
bool read_before(const GroupPart& part, const FusionRoot& writer, const FusionRoot& reader,
                 const Expr& read) {
  if (writer.in_finish_phase != reader.in_finish_phase) return writer.in_finish_phase;
  const bool together = !reader.combine && reader.out == writer.out;
  if (writer.in_finish_phase) return reader.combine || (together && same_element(writer, read));
  if (reader.stage < writer.stage) return same_element(writer, read, &part.rows);
  return reader.stage == writer.stage && together && same_element(writer, read);
}

/// All reads of the inputs of a group, collected in one traversal of the roots' bodies.
class InputReads {
 public:
  explicit InputReads(const Group& group)
      : group_(group), parts_(group.roots.size()), reads_(group.inputs.size()) {
    for (const GroupPart& part : group.parts) {
      for (int root : part.roots) parts_[static_cast<size_t>(root)] = &part;
    }
    for (size_t i = 0; i < group.roots.size(); ++i) {
      for_each_node(group.roots[i].body, [&](const Expr& e) {
        if (e.op() == ScalarOp::read)
          reads_[static_cast<size_t>(e.node().ivalue)].push_back({i, e});
      });
    }
  }

  /// Whether root `writer` may store its result in the buffer of input `input`.
  bool may_overwrite(size_t writer, size_t input) const {
    const GroupPart& part = *parts_[writer];
    return std::ranges::all_of(reads_[input], [&](const Read& read) {
      return parts_[read.root] == &part && !read.expr.node().checked &&
             read_before(part, group_.roots[writer], group_.roots[read.root], read.expr);
    });
  }

 private:
  struct Read {
    size_t root;
    Expr expr;
  };
  const Group& group_;
  std::vector<const GroupPart*> parts_;   ///< root index -> part that contains the root
  std::vector<std::vector<Read>> reads_;  ///< input index -> reads of the input
};

}  // namespace

std::vector<InPlace> in_place_pairs(const Group& group) {
  const InputReads reads(group);
  std::vector<InPlace> pairs;
  for (size_t s = 0; s < group.roots.size(); ++s) {
    const FusionRoot& root = group.roots[s];
    if (root.combine) continue;
    const int out = root.outputs[0];
    const Type& type = group.outputs[static_cast<size_t>(out)].type();
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      if (group.inputs[i].type() != type || !reads.may_overwrite(s, i)) continue;
      pairs.push_back({out, static_cast<int>(i)});
    }
  }
  return pairs;
}

std::vector<InPlace> in_place_pairs(const ir::Graph& body) {
  if (const ir::Op* op = loops_op(body)) return loops_in_place_pairs(*op);
  return in_place_pairs(analyze_fused_body(body));
}

}  // namespace fluid
