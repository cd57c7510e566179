#include "passes/compose.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Copies ops into the body graph of a `fused` op. Values from other ops become `arg` ops.
class BodyBuilder {
 public:
  BodyBuilder(ir::Graph& body, const std::vector<const ir::Op*>& ops) : body_(body) {
    std::set<const ir::Op*> inside(ops.begin(), ops.end());
    for (const ir::Op* op : ops) {
      for (Value v : op->operands) {
        if (!inside.contains(v.op())) add_arg(v);
      }
    }
    for (const ir::Op* op : ops) add_copy(*op);
  }
  const Values& inputs() const { return inputs_; }
  Value copy_of(Value v) const { return copies_.at({v.op(), v.index()}); }

 private:
  void add_arg(Value v) {
    const auto [copy, is_new] = copies_.try_emplace({v.op(), v.index()});
    if (!is_new) return;
    const auto index = static_cast<int64_t>(inputs_.size());
    copy->second = body_.append("arg", {}, {{"index", index}}, {v.type()})->result();
    inputs_.push_back(v);
  }

  void add_copy(const ir::Op& op) {
    Values operands;
    for (Value v : op.operands) operands.push_back(copy_of(v));
    std::vector<Type> types;
    for (const ir::Result& r : op.results) types.push_back(r.type);
    ir::ScopedRecording as(body_, {op.role, op.loc, op.scope, op.param});
    ir::Op* copy = body_.append(op.name, std::move(operands), op.attrs, std::move(types), op.loc);
    for (int r = 0; r < static_cast<int>(op.results.size()); ++r) {
      copies_[{&op, r}] = copy->result(r);
    }
  }

  ir::Graph& body_;
  Values inputs_;
  std::map<std::pair<const ir::Op*, int>, Value> copies_;
};

/// The results of `chain` that are graph outputs or are read by ops outside the chain.
Values results_read_outside(const ir::Graph& graph, const Uses& uses,
                            const std::vector<ir::Op*>& chain) {
  const auto is_read = [&](const Value& v) {
    if (std::ranges::find(graph.outputs, v, &ir::Output::value) != graph.outputs.end()) return true;
    const auto users = uses.find(v);
    return users != uses.end() && std::ranges::any_of(users->second, [&](ir::Op* user) {
             return std::ranges::find(chain, user) == chain.end();
           });
  };
  Values results;
  for (ir::Op* op : chain) {
    for (size_t r = 0; r < op->results.size(); ++r) {
      const Value v = op->result(static_cast<int>(r));
      if (is_read(v)) results.push_back(v);
    }
  }
  return results;
}

std::string parameter_of(const std::vector<ir::Op*>& ops) {
  for (const ir::Op* op : ops) {
    if (!op->param.empty()) return op->param;
  }
  return "";
}

}  // namespace

ir::Op* append_fused(ir::Program& program, const std::vector<const ir::Op*>& ops,
                     const Values& results, const std::string& param) {
  ir::Graph& graph = program.main();
  ir::Graph& body = program.add_graph(program.fresh_graph_name("g"));
  const BodyBuilder builder(body, ops);
  std::vector<Type> types;
  for (Value v : results) {
    types.push_back(v.type());
    body.outputs.push_back({std::to_string(body.outputs.size()), builder.copy_of(v)});
  }
  const ir::Op& last = *ops.back();
  ir::ScopedRecording as(graph, {last.role, last.loc, last.scope, param});
  ir::Op* fused = graph.append("fused", builder.inputs(), {{"body", GraphRef{body.name}}},
                               std::move(types), last.loc);
  for (size_t i = 0; i < results.size(); ++i) {
    fused->results[i].name = results[i].op()->results[static_cast<size_t>(results[i].index())].name;
  }
  return fused;
}

std::vector<ir::Op*> fuse_chains(ir::Program& program,
                                 const std::vector<std::vector<ir::Op*>>& chains) {
  ir::Graph& graph = program.main();
  const size_t before = graph.ops.size();
  Uses uses = graph.uses();
  std::set<const ir::Op*> gone;
  std::vector<ir::Op*> all;
  for (const std::vector<ir::Op*>& chain : chains) {
    const Values results = results_read_outside(graph, uses, chain);
    ir::Op* fused =
        append_fused(program, {chain.begin(), chain.end()}, results, parameter_of(chain));
    for (const Value& v : fused->operands) uses[v].push_back(fused);
    for (size_t i = 0; i < results.size(); ++i) {
      const Value result = fused->result(static_cast<int>(i));
      replace_all_uses(graph, uses, results[i], result);
      uses[result] = std::move(uses[results[i]]);
    }
    gone.insert(chain.begin(), chain.end());
    all.push_back(fused);
  }
  std::vector<std::unique_ptr<ir::Op>> ops;
  size_t next = 0;  // index into `chains`; the fused op of chain i is graph.ops[before + i]
  for (size_t i = 0; i < before; ++i) {
    const ir::Op* op = graph.ops[i].get();
    if (next < chains.size() && op == chains[next].back()) {
      ops.push_back(std::move(graph.ops[before + next++]));
    } else if (!gone.contains(op)) {
      ops.push_back(std::move(graph.ops[i]));
    }
  }
  graph.ops = std::move(ops);
  return all;
}

}  // namespace fluid
