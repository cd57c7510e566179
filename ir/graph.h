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
  Value() = default;  ///< null: no value, for example an absent gradient
  Value(ir::Op* op, int index) : op_(op), index_(index) {}

  explicit operator bool() const { return op_ != nullptr; }
  ir::Op* op() const { return op_; }
  int index() const { return index_; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  bool operator==(const Value&) const = default;
  bool operator<(const Value& other) const {  // by address, so the order differs between runs
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

/// Value -> ops that read the value. An op that reads the value in several operands appears once
/// per operand.
using Uses = std::unordered_map<Value, std::vector<ir::Op*>>;

namespace ir {

/// Role of an op in a training step.
enum class Role : uint8_t { forward, backward, optimize, comm, metric };
std::string_view name_of(Role role);
std::optional<Role> parse_role(std::string_view name);
inline constexpr int kRoles = 5;

struct Result {
  Type type;
  std::string name;  ///< name without '%'; if empty, the printer numbers the result
};

/// One operation. `name` is looked up in the op table (ops/table.h); the IR itself defines no ops.
class Op {
 public:
  std::string name;    ///< name of the op in the op table, such as "matmul"
  std::string symbol;  ///< name of a feed or variable, as in `param "fc0.w"`; else empty
  std::vector<Value> operands;
  Attrs attrs;
  std::vector<Result> results;
  Role role = Role::forward;
  Loc loc;
  std::string param;  ///< for a gradient op: name of the parameter
  std::string scope;  ///< layer that recorded the op, such as "conv0"; may be empty
  int64_t id = 0;     ///< unique in the graph; assigned by append(), preserved by passes

  Graph* graph() const { return graph_; }
  Value result(int i = 0) { return {this, i}; }

 private:
  friend class Graph;
  Graph* graph_ = nullptr;
};

/// A named output of a graph.
struct Output {
  std::string name;
  Value value;
};

/// The ops of a graph in execution order. The graph owns them. Operands are results of earlier ops
/// of the same graph. The body of a `fused` op receives its operands through ops named "arg" with
/// the attribute `index`.
class Graph {
 public:
  Graph(Program* program, std::string name) : name(std::move(name)), program_(program) {}
  Graph(const Graph&) = delete;

  std::string name;
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<Output> outputs;

  Program& program() const { return *program_; }

  /// Appends an op. Role, scope and param come from the recording state; `recording.loc`, if set,
  /// overrides `loc`. Does not check `types`: record() in ops/record.h infers and checks them.
  Op* append(std::string name, std::vector<Value> operands, Attrs attrs, std::vector<Type> types,
             Loc loc = {});
  /// Sets the id of `op`, which must be the last appended op, to an id that was read from a text or
  /// file. Ops appended later get larger ids.
  void restore_id(Op& op, int64_t id);
  /// Moves `ops` of another graph to the end of this graph. Keeps the ids of the ops, which must
  /// not occur in this graph.
  void splice_ops(std::vector<std::unique_ptr<Op>> ops);
  /// Moves ops [first, end) to just before position `destination`, which must be at most `first`.
  void move_tail(size_t first, size_t destination);

  Op* find(std::string_view name, std::string_view symbol) const;  ///< null if no op matches
  /// Like find(), but uses a hash index that is extended as ops are appended. An op's symbol must
  /// not change once later ops exist.
  Op* find_indexed(std::string_view name, std::string_view symbol);
  /// Replaces `from` by `to` in the operands of all ops and in the outputs of the graph.
  void replace_all_uses(Value from, Value to);
  /// Removes the ops for which `dead` returns true. The remaining ops must not use their results.
  void erase_if(const std::function<bool(const Op&)>& dead);
  Uses uses() const;

  /// Copies all ops and outputs of `from` into this graph, which must be empty. Keeps the ids.
  void copy_from(const Graph& from);

  /// Properties that append() sets on new ops. Changed by ScopedRecording and Scope.
  struct Recording {
    Role role = Role::forward;
    /// Overrides the location passed to append(). A pass sets this to the location of the op that
    /// it rewrites, even if the location is unknown. Otherwise new ops would get locations in
    /// Fluid's own sources.
    std::optional<Loc> loc = {};
    std::string scope;
    std::string param;
  } recording;

 private:
  /// Hash index for find_indexed(): op name and symbol -> position of the op. Covers the first
  /// `seen` ops of the graph.
  struct Index {
    std::unordered_map<std::string, size_t> positions;
    size_t seen = 0;
    int64_t last_id = -1;
  };

  Program* program_;
  int64_t next_id_ = 0;
  Index index_;
};

/// RAII. Sets the recording state of a graph; the destructor restores the previous state.
class ScopedRecording {
 public:
  ScopedRecording(Graph& graph, Graph::Recording recording)
      : graph_(graph), saved_(graph.recording) {
    graph.recording = std::move(recording);
  }
  ~ScopedRecording() { graph_.recording = std::move(saved_); }
  ScopedRecording(const ScopedRecording&) = delete;

 private:
  Graph& graph_;
  Graph::Recording saved_;
};

/// A training program: a set of named graphs. The user records the graph `main`. The graph
/// `startup` contains the initialisers. The bodies of `fused` ops are also graphs of the program.
class Program {
 public:
  explicit Program(std::string name);
  Program(const Program&) = delete;
  std::unique_ptr<Program> clone() const;

  std::string name;
  std::vector<std::unique_ptr<Graph>> graphs;  ///< changed only by add_graph() and erase_graphs()

  Graph& main() { return *graphs.front(); }
  const Graph& main() const { return *graphs.front(); }
  Graph* find(std::string_view graph_name) const;  ///< null if no graph has this name
  Graph& add_graph(std::string graph_name);        ///< `graph_name` must not be in use
  /// Removes the graphs for which `dead` returns true. Returns whether any graph was removed.
  bool erase_graphs(const std::function<bool(const Graph&)>& dead);
  /// Returns an unused graph name: `stem` followed by the lowest free number.
  std::string fresh_graph_name(const std::string& stem);

 private:
  std::unordered_map<std::string, Graph*> by_name_;
  /// Maps a stem to n: graph names with the suffixes 0 to n - 1 are in use.
  std::unordered_map<std::string, size_t> taken_;
};

}  // namespace ir
}  // namespace fluid
