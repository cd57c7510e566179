#pragma once

// Definition of an op. A new op is one file that returns an OpDef by designated initialisers; an
// omitted Required field does not compile. The build gathers all definitions in a table
// (ops/table.h) and generates functions.h and OPS.md from the table.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ops/expr.h"
#include "ops/required.h"

namespace fluid {

/// Name and documentation of an operand or a result.
struct PortDef {
  std::string name;
  std::string doc;
  bool variadic = false;  ///< the last operand may repeat (concat)
  bool optional = false;  ///< trailing operands may be omitted (a bias)
  /// A result after the first one that only gradients and metrics read (the argmax of a pooling
  /// window, the weight of an average). The function in functions.h returns the first result alone.
  bool auxiliary = false;
};

/// An attribute. The variant alternative of `fallback` is its type. `fallback` is the default
/// unless `required`.
struct AttrDef {
  std::string name;
  Attr fallback;
  std::string doc;
  bool required = false;
};

/// Argument of `infer`. Call fail() when operands do not fit, with a message that states the
/// operands. The `infer` of a source (param, data, ...) gets the declared type as operand 0 and
/// checks the attributes.
class InferCtx {
 public:
  InferCtx(std::string_view op, const std::vector<Type>& in, const Attrs& attrs, const Loc& loc)
      : op_(op), in_(in), attrs_(attrs), loc_(loc) {}
  size_t arity() const { return in_.size(); }
  const Type& in(size_t i) const { return in_.at(i); }
  const std::vector<Type>& ins() const { return in_; }
  bool has(size_t i) const { return i < in_.size(); }
  template <class T>
  const T& attr(std::string_view name) const {
    return attrs_.get<T>(name);
  }
  const Attrs& attrs() const { return attrs_; }
  const Loc& loc() const { return loc_; }
  /// Throws UserError "<file:line>: <op>: <what>".
  [[noreturn]] void fail(const std::string& what) const;
  /// Fails with `what` unless `condition` holds.
  void require(bool condition, const std::string& what) const {
    if (!condition) fail(what);
  }

 private:
  std::string_view op_;
  const std::vector<Type>& in_;
  const Attrs& attrs_;
  const Loc& loc_;
};

/// Argument of `grad`: the forward op and the gradients of its results. Build gradients with the
/// functions of ops/functions.h.
class GradCtx {
 public:
  GradCtx(ir::Op& op, Values dout) : op_(op), dout_(std::move(dout)) {}
  ir::Op& op() const { return op_; }
  size_t arity() const { return op_.operands.size(); }
  Value in(size_t i) const { return op_.operands.at(i); }
  Value out(size_t i) const { return op_.result(static_cast<int>(i)); }
  Value dout(size_t i) const { return dout_.at(i); }  ///< null when nothing depends on the result
  template <class T>
  const T& attr(std::string_view name) const {
    return op_.attrs.get<T>(name);
  }
  const Attrs& attrs() const { return op_.attrs; }

 private:
  ir::Op& op_;
  Values dout_;
};

/// Argument of `Expand` and `inference`: build the op's results from simpler ops.
class ExpandCtx {
 public:
  explicit ExpandCtx(ir::Op& op) : op_(op) {}
  ir::Op& op() const { return op_; }
  size_t arity() const { return op_.operands.size(); }
  Value in(size_t i) const { return op_.operands.at(i); }
  const Type& out_type(size_t i) const { return op_.results.at(i).type; }
  template <class T>
  const T& attr(std::string_view name) const {
    return op_.attrs.get<T>(name);
  }
  const Attrs& attrs() const { return op_.attrs; }

 private:
  ir::Op& op_;
};

/// Argument of `lower` of a Map or a Reduce. Loop variables 0..rank-1 run over the result's
/// extents, the following variables over the reduced extents.
class LowerCtx {
 public:
  LowerCtx(const std::vector<Type>& in, const std::vector<Type>& out, const Attrs& attrs)
      : in_(in), out_(out), attrs_(attrs) {}
  size_t arity() const { return in_.size(); }
  const Type& in_type(size_t i) const { return in_.at(i); }
  const Type& out_type(size_t i = 0) const { return out_.at(i); }
  template <class T>
  const T& attr(std::string_view name) const {
    return attrs_.get<T>(name);
  }
  const Attrs& attrs() const { return attrs_; }

  Expr out_var(size_t d) const { return Expr::var(static_cast<int64_t>(d)); }
  Expr reduce_var(size_t d) const;  ///< variable of the d-th reduced extent
  std::vector<Expr> out_vars() const;
  Expr extent(const Dim& d) const;  ///< a constant, or a multiple of Scalar::batch
  /// Reads operand `i` at the result's index, with NumPy broadcasting (trailing dimensions
  /// aligned).
  Expr in(size_t i) const;
  /// Reads operand `i` at `index`, one entry per dimension. The index must be in range.
  Expr read(size_t i, std::vector<Expr> index) const;
  /// Reads operand `i` at `index`. An out-of-range index gives `fallback`.
  Expr read_or(size_t i, std::vector<Expr> index, double fallback) const;
  /// Reads operand `i` at an index that comes from data. An out-of-range index is clamped and sets
  /// the error word.
  Expr read_checked(size_t i, std::vector<Expr> index) const;

 private:
  const std::vector<Type>& in_;
  const std::vector<Type>& out_;
  const Attrs& attrs_;
};

/// One expression per result, evaluated at every index. All results have one shape.
struct Map {
  std::function<std::vector<Expr>(const LowerCtx&)> body;
};

enum class Combine : uint8_t {
  sum,
  max,  ///< NaN wins, as in PyTorch
  min,
  /// Two results: the maximum, and the row-major index of its first occurrence among the reduced
  /// extents, in any integer dtype. NaN wins.
  argmax,
};

/// out[o] = combine over r of body(o, r). Accumulates in f32 or wider (f64 for f64, i64 for
/// integers).
struct ReduceBody {
  std::vector<Dim> extents;  ///< of the reduced variables
  Expr body;                 ///< use read_or() for windows that extend past the edge
};
struct Reduce {
  Combine combine;
  std::function<ReduceBody(const LowerCtx&)> body;
};

/// The op is a composition of simpler ops.
struct Expand {
  std::function<Values(const ExpandCtx&)> ops;
};

/// The result is the operand's bytes with another shape (reshape). No kernel runs.
struct Alias {};

/// A named place in memory: data, param, state, arg. Not lowered.
struct Source {};
/// Writes operand 0 into the variable named by the op's symbol, at the end of the step.
struct Store {};

/// A request to the passes, which replace it before codegen: train.
struct Directive {};

/// A group of ops that the fuse pass formed: fused.
struct Composite {};

/// A collective over all processes: all_reduce, reduce_scatter, all_gather. Result i aliases
/// operand i.
struct CollectiveOp {};

using Lower =
    std::variant<Map, Reduce, Expand, Alias, Source, Store, Directive, Composite, CollectiveOp>;

struct NoGrad {};
using GradFn = std::function<Values(const GradCtx&)>;  ///< one per operand; null: none
using Grad = std::variant<NoGrad, GradFn>;

struct Pure {};
struct Random {};  ///< has an int attribute "stream", set when the op is recorded
/// In each pair, result `first` is the new value of the variable that operand `second` reads.
struct Updates {
  std::vector<std::pair<int, int>> results;
};
struct Collective {};
struct Metric {};  ///< results: (sum, weight)
using Effects = std::variant<Pure, Random, Updates, Collective, Metric>;

/// Class of the op for automatic mixed precision: `.amp = Amp::kHalf`, or `{Amp::kHalf, {1}}`.
struct Amp {
  enum Class : uint8_t { kHalf, kF32, kFollow };
  Class klass;
  std::vector<int> f32_operands;  ///< operands that stay f32 when the op runs in half precision
  Amp(Class klass, std::vector<int> f32_operands = {})  // NOLINT: implicit from a class alone
      : klass(klass), f32_operands(std::move(f32_operands)) {}
};

struct CostCtx {
  const std::vector<Type>& in;  ///< with the batch made concrete
  const std::vector<Type>& out;
  const Attrs& attrs;
  double numel_in(size_t i) const { return static_cast<double>(in.at(i).shape.numel().size); }
  double numel_out(size_t i = 0) const { return static_cast<double>(out.at(i).shape.numel().size); }
};
struct Cost {
  double flops = 0;   ///< arithmetic operations; a multiply-add counts as two
  double bytes = -1;  ///< memory traffic; -1: every operand and result once
};

/// Result `out` may alias operand `in` when nothing reads the operand later.
struct InPlace {
  int out = 0;
  int in = 0;
};

enum class On : uint8_t { cpu, cuda };
struct LibraryKernel {
  On place;
  std::string name;
};  ///< {On::cpu, "onednn.conv"}

struct OpDef {
  Required<std::string> name;
  Required<std::string> doc;
  Required<std::vector<PortDef>> inputs;
  Required<std::vector<AttrDef>> attrs;
  Required<std::vector<PortDef>> outputs;
  Required<std::function<std::vector<Type>(const InferCtx&)>> infer;
  Required<Grad> grad;
  Required<Effects> effects;
  Amp amp;  // no default either
  Required<std::function<Cost(const CostCtx&)>> cost;
  Required<std::vector<InPlace>> in_place;
  Required<Lower> lower;
  Required<std::vector<LibraryKernel>> kernels;
  Required<int> version;
  /// Builds what the op becomes in eval and predict (dropout: its operand). Null: the op stays.
  std::function<Values(const ExpandCtx&)> inference = nullptr;
  /// The op takes attributes beyond `attrs`: `param` takes its initialiser's, `train` its
  /// optimizer's. `attrs` are then optional and get no defaults; the code that reads an attribute
  /// checks it.
  bool open_attrs = false;
  /// Not for users: the compiler records the op. Its function is in ops/internal_functions.h, in
  /// namespace fluid::internal. Every optimizer and every other op that updates variables is.
  bool internal = false;
};

}  // namespace fluid
