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

/// A handle to one result of an op. Cheap to copy; valid while the op lives.
class Value {
 public:
  Value() = default;  ///< null: no value, for example no gradient
  Value(ir::Op* op, int index) : op_(op), index_(index) {}

  explicit operator bool() const { return op_ != nullptr; }
  ir::Op* op() const { return op_; }
  int index() const { return index_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  bool operator==(const Value&) const = default;
  bool operator<(const Value& other) const {  // for ordered containers; differs from run to run
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

/// The ops that read each value. An op appears once for each operand that is the value.
using Uses = std::unordered_map<Value, std::vector<ir::Op*>>;

namespace ir {

/// The part of a training step that an op belongs to.
enum class Role : uint8_t { forward, backward, optimize, comm, metric };
std::string_view name_of(Role role);
std::optional<Role> role_named(std::string_view name);
inline constexpr int kRoles = 5;

struct Result {
  Type type;
  std::string name;  ///< without '%'; the printer numbers unnamed results
};

/// One operation. The IR knows no ops: `name` refers to the op table in ops/.
class Op {
 public:
  std::string name;    ///< "matmul"
  std::string symbol;  ///< quoted name in `data "image"` or `param "fc0.w"`; else ""
  std::vector<Value> operands;
  Attrs attrs;
  std::vector<Result> results;
  Role role = Role::forward;
  Loc loc;
  std::string param;  ///< for a gradient op: name of the parameter
  std::string scope;  ///< layer that recorded the op, as "conv0"; may be empty
  int64_t id = 0;     ///< unique in the graph; assigned when recorded, kept by passes

  Graph* graph() const { return graph_; }
  Value result(int i = 0) { return {this, i}; }

 private:
  friend class Graph;
  Graph* graph_ = nullptr;
};

/// A named result of a graph.
struct Output {
  std::string name;
  Value value;
};

/// A list of ops in execution order, owned by the graph. Operands are results of earlier ops of the
/// same graph. The body of a `fused` op receives its operands through ops named "arg" with the
/// attribute `index`.
class Graph {
 public:
  Graph(Program* program, std::string name) : name(std::move(name)), program_(program) {}
  Graph(const Graph&) = delete;

  std::string name;
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<Output> outputs;

  Program& program() const { return *program_; }

  /// Appends an op. Role, scope and param come from the recording state; `recording.loc`, if set,
  /// overrides `loc`. `types` are not checked; `record` in ops/record.h infers and checks them.
  Op* append(std::string name, std::vector<Value> operands, Attrs attrs, std::vector<Type> types,
             Loc loc = {});
  /// Sets the id of `op`, the op appended last, to the id read from a text or file. Later appended
  /// ops get larger ids.
  void restore_id(Op& op, int64_t id);
  /// Moves ops [first, end) to just before position `at` (at <= first).
  void move_tail(size_t first, size_t at);

  Op* find(std::string_view name, std::string_view symbol) const;  ///< null when absent
  /// Like find(), but with an index, for many lookups while ops are appended. The symbol of an op
  /// must not change once later ops exist.
  Op* find_indexed(std::string_view name, std::string_view symbol);
  void replace_all_uses(Value from, Value to);  ///< in operands and outputs
  /// Removes the ops for which `dead` returns true. The remaining ops must not use their results.
  void erase_if(const std::function<bool(const Op&)>& dead);
  Uses uses() const;

  /// Copies all ops and outputs of `from` into this graph, which must be empty. Keeps the ids.
  void copy_from(const Graph& from);

  /// Properties that append() gives to new ops. Set through RecordAs and Scope.
  struct Recording {
    Role role = Role::forward;
    /// Overrides the location given to append(). A pass sets it to the location of the op that it
    /// rewrites, which may be unknown; so no location points into Fluid's own sources.
    std::optional<Loc> loc = {};
    std::string scope;
    std::string param;
  } recording;

 private:
  /// Positions of the ops with a symbol, among the first `seen` ops.
  struct Index {
    std::unordered_map<std::string, size_t> positions;
    size_t seen = 0;
    int64_t last_id = -1;
  };

  Program* program_;
  int64_t next_id_ = 0;
  Index index_;
};

/// Sets a graph's recording state during the lifetime of the RecordAs.
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

/// A training program: named graphs. `main` is recorded by the user; `startup` holds the
/// initialisers. The bodies of `fused` ops are graphs of the program too.
class Program {
 public:
  explicit Program(std::string name);
  Program(const Program&) = delete;
  std::unique_ptr<Program> clone() const;

  std::string name;
  std::vector<std::unique_ptr<Graph>> graphs;  ///< changed only by add_graph() and erase_graphs()

  Graph& main() { return *graphs.front(); }
  const Graph& main() const { return *graphs.front(); }
  Graph* find(std::string_view graph_name) const;  ///< null when absent
  Graph& add_graph(std::string graph_name);        ///< `graph_name` must be new
  /// Removes the graphs for which `dead` returns true. Returns whether any was removed.
  bool erase_graphs(const std::function<bool(const Graph&)>& dead);
  /// Returns `stem` with the lowest number appended that gives an unused name.
  std::string fresh_graph_name(const std::string& stem);

 private:
  std::unordered_map<std::string, Graph*> by_name_;
  /// For each stem, a number below which all numbers are in use.
  std::unordered_map<std::string, size_t> taken_;
};

}  // namespace ir
}  // namespace fluid
