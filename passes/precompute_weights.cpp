#include "passes/precompute_weights.h"

#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/print.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

constexpr std::string_view kPrecomputedSuffix = ".precomputed";
constexpr std::string_view kGraph = "precompute_weights";

/// Hashes of the functions that ops compute from variables. Equal functions have equal hashes in
/// all programs and processes.
class FunctionHashes {
 public:
  uint64_t of(const ir::Op& op) {
    const auto known = hashes_.find(&op);
    if (known != hashes_.end()) return known->second;
    std::string text = op.name + '\n' + op.symbol + '\n';
    for (const Value& v : op.operands)
      text += std::to_string(of(*v.op())) + '.' + std::to_string(v.index()) + ',';
    // Excludes the attributes of variables: an initialiser does not change the function.
    if (!is_variable(op)) {
      for (const auto& [name, attr] : op.attrs) text += name + '=' + ir::print(attr) + ',';
    }
    for (const ir::Result& r : op.results) text += r.type.str() + ',';
    return hashes_[&op] = XXH3_64bits(text.data(), text.size());
  }

 private:
  std::map<const ir::Op*, uint64_t> hashes_;
};

/// Moves the computations that depend only on weights from the main graph of a predict program to
/// another graph.
class Precomputer {
 public:
  Precomputer(ir::Program& program, const ir::Graph& graph)
      : program_(program), weights_(weight_ops(graph)), uses_(graph.uses()) {
    for (const auto& op : graph.ops) {
      if (is_worth_moving(*op)) movable_.insert(op.get());
    }
  }

  bool run() {
    ir::Graph& graph = program_.main();
    std::set<const ir::Op*> read_by_others;
    for (const auto& op : graph.ops) {
      if (movable_.contains(op.get())) continue;
      for (const Value& v : op->operands) read_by_others.insert(v.op());
    }
    for (const ir::Output& o : graph.outputs) read_by_others.insert(o.value.op());
    std::vector<const ir::Op*> roots;
    for (const auto& op : graph.ops) {
      if (read_by_others.contains(op.get()) && computes(*op)) roots.push_back(op.get());
    }
    if (roots.empty()) return false;
    for (const ir::Op* root : roots) names_[root] = name_of(*root);
    record_weight_graph(graph, roots);
    rewrite_ops(graph, [&](const ir::Op& op) {
      return names_.contains(&op) ? Values{stored_weight(graph, op)} : Values();
    });
    erase_dead_ops(graph);
    return true;
  }

 private:
  /// Whether the result of the op should be precomputed. The result must depend on a weight, and
  /// loading it must be no slower than computing it: it is not larger than the operands, or each
  /// step would store it.
  bool is_worth_moving(const ir::Op& op) {
    const auto known = weights_.find(&op);
    if (known == weights_.end() || !known->second || is_variable(op) || op.results.size() != 1)
      return false;
    int64_t read = 0;
    for (const Value& v : op.operands) {
      const bool available =
          is_variable(*v.op()) || v.op()->operands.empty() || movable_.contains(v.op());
      if (!available) return false;
      read += v.type().bytes_at(1);
    }
    return op.results[0].type.bytes_at(1) <= read || is_stored(op);
  }

  /// Whether a step would store the result, because convolutions and products alone read it: they
  /// are not fused with the ops before them.
  bool is_stored(const ir::Op& op) const {
    const auto users = uses_.find(Value(const_cast<ir::Op*>(&op), 0));
    return users != uses_.end() && std::ranges::all_of(users->second, [](const ir::Op* user) {
             return !def_of(*user).kernels->empty();
           });
  }

  /// Whether the op is in movable_ and is not merely an alias of a variable.
  bool computes(const ir::Op& op) const {
    if (!movable_.contains(&op)) return false;
    if (!is_alias(op)) return true;
    return computes(*op.operands.at(0).op());
  }

  void record_weight_graph(const ir::Graph& main, const std::vector<const ir::Op*>& roots) {
    ir::Graph& to = program_.add_graph(std::string(kGraph));
    Values results;
    for (const ir::Op* root : roots) results.emplace_back(const_cast<ir::Op*>(root), 0);
    const std::set<const ir::Op*> needed = ancestors(results);
    std::map<Value, Value> copies;
    for (const auto& op : main.ops) {
      if (!needed.contains(op.get())) continue;
      const ir::Op* copy = append_copies(to, {op.get()}, op->role, copies).front();
      const_cast<ir::Op*>(copy)->symbol = op->symbol;
    }
    for (const Value& v : results) record_store(to, names_.at(v.op()), copies.at(v), v.op()->loc);
  }

  Value stored_weight(ir::Graph& graph, const ir::Op& op) {
    return record_source(graph, "state", names_.at(&op), op.results[0].type,
                         {{kScratchAttribute, true}}, op.loc);
  }

  /// Name of the precomputed result of `op`: the first variable on which it depends, and the hash
  /// of the function.
  std::string name_of(const ir::Op& op) {
    const ir::Op* first = &op;
    while (!is_variable(*first)) {
      const auto depends = [&](const Value& v) { return weights_.at(v.op()); };
      first = std::ranges::find_if(first->operands, depends)->op();
    }
    return first->symbol + '.' + std::to_string(hashes_.of(op)) + std::string(kPrecomputedSuffix);
  }

  ir::Program& program_;
  std::map<const ir::Op*, bool> weights_;
  Uses uses_;
  std::set<const ir::Op*> movable_;
  FunctionHashes hashes_;
  std::map<const ir::Op*, std::string> names_;  ///< precomputed op -> name of its state
};

bool run_precompute_weights(ir::Program& program, const Options&, const Target&) {
  return Precomputer(program, program.main()).run();
}

}  // namespace

bool is_precomputed_weight(std::string_view variable) {
  return variable.ends_with(kPrecomputedSuffix);
}

std::unique_ptr<ir::Program> extract_weight_program(ir::Program& predict) {
  const ir::Graph* graph = predict.find(kGraph);
  if (graph == nullptr) return nullptr;
  auto program = std::make_unique<ir::Program>(predict.name);
  program->main().copy_from(*graph);
  predict.erase_graphs([&](const ir::Graph& g) { return &g == graph; });
  return program;
}

Pass precompute_weights_pass() {
  return {.name = "precompute_weights",
          .doc = "Moves what depends on variables alone to a graph that runs when they change.",
          .needs = {"typed"},
          .provides = {},
          .run = run_precompute_weights};
}

}  // namespace fluid
