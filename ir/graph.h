#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attr.h"
#include "ir/limits.h"
#include "ir/loc.h"
#include "ir/type.h"

namespace fluid {
namespace ir {

class Graph;
class Op;
class Program;

}  // namespace ir

/// A handle to one result of an op. Cheap to copy; valid as long as the op lives.
class Value {
 public:
  Value() = default;  ///< null: "no value", for example no gradient
  Value(ir::Op* op, int index) : op_(op), index_(index) {}

  explicit operator bool() const { return op_ != nullptr; }
  ir::Op* op() const { return op_; }
  int index() const { return index_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  bool operator==(const Value&) const = default;
  bool operator<(const Value& other) const {  // for ordered containers; not a stable order
    return op_ != other.op_ ? std::less<>()(op_, other.op_) : index_ < other.index_;
  }

 private:
  ir::Op* op_ = nullptr;
  int index_ = 0;
};

using Values = std::vector<Value>;

}  // namespace fluid

template <>
struct std::hash<fluid::Value> {
  size_t operator()(const fluid::Value& v) const {
    return std::hash<const void*>()(v.op()) ^ static_cast<size_t>(v.index());
  }
};

namespace fluid {

/// The ops that read each value, one entry a use.
using Uses = std::unordered_map<Value, std::vector<ir::Op*>>;

namespace ir {

/// What part of a training step an op belongs to.
enum class Role : uint8_t { forward, backward, optimize, comm, metric };
std::string_view name_of(Role role);
std::optional<Role> role_named(std::string_view name);
inline constexpr int kRoles = 5;

struct Result {
  Type type;
  std::string name;  ///< without '%'; may be empty: the printer numbers it
};

/// One operation. The IR knows no op: `name` is looked up in the op table by those who care.
class Op {
 public:
  std::string name;    ///< "matmul"
  std::string symbol;  ///< the quoted name of `data "image"`, `param "fc0.w"`; else ""
  std::vector<Value> operands;
  Attrs attrs;
  std::vector<Result> results;
  Role role = Role::forward;
  Loc loc;
  std::string param;  ///< of a parameter's gradient: the parameter it belongs to
  std::string scope;  ///< the layer that recorded it: "conv0"; may be empty
  int64_t id = 0;     ///< unique in its graph, given when recorded, kept by passes

  Graph* graph() const { return graph_; }
  Value result(int i = 0) { return {this, i}; }

 private:
  friend class Graph;
  Graph* graph_ = nullptr;
};

/// A value that leaves the graph under a name.
struct Output {
  std::string name;
  Value value;
};

/// Ops in execution order, owning them. Operands come from earlier ops of the same graph.
/// `fused` bodies take their operands through ops named "arg" with attribute `index`.
class Graph {
 public:
  Graph(Program* program, std::string name) : name(std::move(name)), program_(program) {}
  Graph(const Graph&) = delete;

  std::string name;
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<Output> outputs;

  Program& program() const { return *program_; }

  /// Appends an op; its role, scope and, when that has one, location come from the recording state.
  /// Types are the caller's: see `record` in ops/record.h for the checked way.
  Op* append(std::string name, std::vector<Value> operands, Attrs attrs, std::vector<Type> types,
             Loc loc = {});
  /// Gives `op`, just appended, the id it had in the text or file it is read from; ids given later
  /// are larger than any of these.
  void restore_id(Op& op, int64_t id);
  /// Moves ops [first, end) to just before position `at` (at <= first).
  void move_tail(size_t first, size_t at);

  Op* find(std::string_view name, std::string_view symbol) const;  ///< null when absent
  /// The same by an index, for many questions while ops are appended. An op's symbol must not
  /// change after other ops were appended.
  Op* find_indexed(std::string_view name, std::string_view symbol);
  void replace_all_uses(Value from, Value to);  ///< in operands and outputs
  /// Removes the ops for which `dead` says true; no remaining op may use them.
  void erase_if(const std::function<bool(const Op&)>& dead);
  Uses uses() const;

  /// Copies all ops and outputs of `from` into this graph, which must be empty; ids are kept.
  void copy_from(const Graph& from);

  /// What is stamped on appended ops. Set through RecordAs and Scope.
  struct Recording {
    Role role = Role::forward;
    /// Overrides the caller's: what a pass records for an op lies where the op does, which may be
    /// nowhere known, and never in Fluid's own sources.
    std::optional<Loc> loc = {};
    std::string scope;
    std::string param;
  } recording;

 private:
  /// Positions of named ops, of the first `seen` of them.
  struct Index {
    std::unordered_map<std::string, size_t> positions;
    size_t seen = 0;
    int64_t last_id = -1;
  };

  Program* program_;
  int64_t next_id_ = 0;
  Index index_;
};

/// Sets the recording state of a graph for a while.
class RecordAs {
 public:
  RecordAs(Graph& graph, Graph::Recording as) : graph_(graph), saved_(graph.recording) {
    graph.recording = std::move(as);
  }
  ~RecordAs() { graph_.recording = std::move(saved_); }
  RecordAs(const RecordAs&) = delete;

 private:
  Graph& graph_;
  Graph::Recording saved_;
};

/// A training program: named graphs. `main` is what the user recorded; `startup` holds the
/// initialisers; `fused` bodies are graphs too.
class Program {
 public:
  explicit Program(std::string name);
  Program(const Program&) = delete;
  std::unique_ptr<Program> clone() const;

  std::string name;
  std::vector<std::unique_ptr<Graph>> graphs;  ///< changed by add_graph() and erase_graphs() alone

  Graph& main() { return *graphs.front(); }
  const Graph& main() const { return *graphs.front(); }
  Graph* find(std::string_view graph_name) const;  ///< null when absent
  Graph& add_graph(std::string graph_name);        ///< the name must be new
  /// Removes the graphs for which `dead` says true; returns whether there were any.
  bool erase_graphs(const std::function<bool(const Graph&)>& dead);
  /// `stem` and the lowest number that makes it a new name.
  std::string fresh_graph_name(const std::string& stem);

 private:
  std::unordered_map<std::string, Graph*> by_name_;
  std::unordered_map<std::string, size_t> taken_;  ///< by stem: all numbers below it
};

}  // namespace ir
}  // namespace fluid
