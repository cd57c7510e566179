#include <algorithm>

#include "passes/fusion.h"
#include "passes/passes.h"

namespace fluid {
namespace {

/// The ops of a group as the body graph of a `fused` op.
class BodyMaker {
 public:
  BodyMaker(ir::Program& program, const FusionGroup& group, const Values& outputs)
      : body_(program.add_graph(program.fresh_graph_name("g"))) {
    for (const ir::Op* op : group.ops) {
      for (const Value& v : op->operands) take_operand(group, v);
    }
    for (const ir::Op* op : group.ops) copy(*op);
    for (size_t i = 0; i < outputs.size(); ++i) {
      body_.outputs.push_back({std::to_string(i), inside_.at(outputs[i])});
    }
  }
  const ir::Graph& body() const { return body_; }
  const Values& operands() const { return operands_; }

 private:
  void take_operand(const FusionGroup& group, const Value& v) {
    const bool own = std::ranges::find(group.ops, v.op()) != group.ops.end();
    if (own || inside_.contains(v)) return;
    const auto index = static_cast<int64_t>(operands_.size());
    ir::Op* arg = body_.append("arg", {}, {{"index", index}}, {v.type()});
    inside_[v] = arg->result();
    operands_.push_back(v);
  }

  void copy(const ir::Op& op) {
    Values operands;
    for (const Value& v : op.operands) operands.push_back(inside_.at(v));
    std::vector<Type> types;
    for (const ir::Result& r : op.results) types.push_back(r.type);
    ir::RecordAs as(body_, {.role = op.role, .loc = op.loc, .scope = op.scope, .param = op.param});
    ir::Op* inner = body_.append(op.name, std::move(operands), op.attrs, std::move(types));
    for (size_t i = 0; i < op.results.size(); ++i) {
      const auto index = static_cast<int>(i);
      inside_[Value(const_cast<ir::Op*>(&op), index)] = inner->result(index);
    }
  }

  ir::Graph& body_;
  Values operands_;
  std::map<Value, Value> inside_;
};

ir::Op* make_fused(ir::Program& program, const FusionGroup& group, const Values& outputs) {
  ir::Graph& main = program.main();
  const BodyMaker maker(program, group, outputs);
  std::vector<Type> types;
  for (const Value& v : outputs) types.push_back(v.type());
  const ir::Op& last = *group.ops.back();
  ir::RecordAs as(main,
                  {.role = last.role, .loc = last.loc, .scope = last.scope, .param = last.param});
  ir::Op* fused = main.append("fused", maker.operands(), {{"body", GraphRef{maker.body().name}}},
                              std::move(types));
  for (size_t i = 0; i < outputs.size(); ++i) {
    fused->results[i].name = outputs[i].op()->results[static_cast<size_t>(outputs[i].index())].name;
    main.replace_all_uses(outputs[i], fused->result(static_cast<int>(i)));
  }
  return fused;
}

/// Gives every reader a constant of its own, to be computed where it is used.
void clone_constants(ir::Graph& graph) {
  std::set<Value> taken;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    ir::Op* reader = graph.ops[i].get();
    for (Value& v : reader->operands) {
      const ir::Op& op = *v.op();
      const bool constant = op.operands.empty() && is_groupable(op) && op.results.size() == 1;
      if (!constant || taken.insert(v).second) continue;
      ir::RecordAs as(graph, {.role = reader->role, .loc = op.loc, .scope = op.scope, .param = ""});
      v = graph.append(op.name, {}, op.attrs, {v.type()})->result();
      graph.move_tail(graph.ops.size() - 1, i++);
    }
  }
}

bool is_alias(const FusionGroup& group) {
  return group.ops.size() == 1 && std::holds_alternative<Alias>(*def_of(*group.ops.front()).lower);
}

bool run(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& main = program.main();
  if (options.fuse) clone_constants(main);
  Fusion fusion(main, options);
  if (options.fuse) fusion.run();
  struct Kernel {
    const FusionGroup* group;
    Values outputs;
  };
  std::vector<Kernel> kernels;
  for (const FusionGroup* group : fusion.ordered()) {
    kernels.push_back({group, group->fusible ? fusion.outputs(*group) : Values{}});
  }
  std::vector<const ir::Op*> order;
  bool changed = false;
  for (const Kernel& k : kernels) {
    if (!k.group->fusible || is_alias(*k.group)) {
      order.push_back(k.group->ops.front());
    } else if (!k.outputs.empty()) {
      order.push_back(make_fused(program, *k.group, k.outputs));
      changed = true;
    }
  }
  std::map<const ir::Op*, std::unique_ptr<ir::Op>> ops;
  for (auto& op : main.ops) {
    const ir::Op* key = op.get();
    ops[key] = std::move(op);
  }
  main.ops.clear();
  for (const ir::Op* op : order) main.ops.push_back(std::move(ops.at(op)));
  return changed;
}

}  // namespace

Pass fuse_pass() {
  return {.name = "fuse",
          .doc = "Gathers maps and reductions into kernels, each a `fused` op with a body graph.",
          .needs = {"typed"},
          .gives = {"fused"},
          .run = run};
}

}  // namespace fluid
