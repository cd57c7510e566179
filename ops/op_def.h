#pragma once

// One operation, defined in one place. A new op is one file that returns an OpDef by designated
// initialisers; a Required field left out does not compile. The build gathers all of them in a
// table (ops/table.h); functions.h and OPS.md are generated from it.

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ops/expr.h"

namespace fluid {

/// A field that must be given: it has no default constructor.
template <class T>
struct Required {
  T value;
  template <class U>
  requires std::constructible_from<T, U&&> Required(U&& v)
      : value(std::forward<U>(v)) {}  // NOLINT: initialised like the T it holds
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};
template <class E>
struct Required<std::vector<E>> {
  std::vector<E> value;
  Required(std::initializer_list<E> list) : value(list) {}
  Required(std::vector<E> list) : value(std::move(list)) {}  // NOLINT: made by a helper
  const std::vector<E>& operator*() const { return value; }
  const std::vector<E>* operator->() const { return &value; }
};

/// An operand or a result: its name and what it may be.
struct PortDef {
  std::string name;
  std::string doc;
  bool variadic = false;  ///< the last operand may repeat (concat)
  bool optional = false;  ///< trailing operands may be left out (a bias)
  /// A result after the first that only gradients and metrics read (the place of a maximum, the
  /// weight of an average): the function in functions.h gives the first result alone.
  bool auxiliary = false;
};

/// An attribute: the alternative of `fallback` is its type; when not `required` it is its default.
struct AttrDef {
  std::string name;
  Attr fallback;
  std::string doc;
  bool required = false;
};

/// What `infer` sees. Throw UserError(c.loc(), ...) when the operands do not fit: say what they
/// are. That of a source (param, data...) checks attributes and gets the declared type.
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

/// What `grad` sees: the forward op and the gradients of its results. Build with the user's ops.
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

/// What `Expand` and `inference` see: build the same results from simpler ops.
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

/// What `lower` of a Map or a Reduce sees. Loop variables 0..rank-1 run over the result's extents,
/// the following ones over the reduced extents.
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
  Expr reduce_var(size_t d) const;  ///< the d-th reduced extent's variable
  std::vector<Expr> out_vars() const;
  Expr extent(const Dim& d) const;  ///< a number, or a multiple of Scalar::batch
  /// Operand `i` at the result's own index, broadcast as NumPy does (trailing dims aligned).
  Expr in(size_t i) const;
  /// Operand `i` at `index` (as many as its rank), which is known to be in range.
  Expr read(size_t i, std::vector<Expr> index) const;
  /// As `read`, but `fallback` where `index` is out of range.
  Expr read_or(size_t i, std::vector<Expr> index, double fallback) const;
  /// As `read` for an index that comes from data: clamped, and the error word is set.
  Expr read_checked(size_t i, std::vector<Expr> index) const;

 private:
  const std::vector<Type>& in_;
  const std::vector<Type>& out_;
  const Attrs& attrs_;
};

/// One expression a result, evaluated at every index of the results, which have equal shapes.
struct Map {
  std::function<std::vector<Expr>(const LowerCtx&)> body;
};

enum class Combine : uint8_t {
  sum,
  max,  ///< NaN wins, as in PyTorch
  min,
  argmax,  ///< results: the maximum, then the row-major position of its first occurrence among the
           ///< reduced extents (any integer dtype); NaN wins
};

/// out[o] = combine over r of body(o, r), in f32 or wider (f64 for f64, i64 for integers).
struct ReduceBody {
  std::vector<Dim> extents;  ///< of the reduced variables
  Expr body;                 ///< read with a guard where windows reach over the edge
};
struct Reduce {
  Combine combine;
  std::function<ReduceBody(const LowerCtx&)> body;
};

/// Results built from simpler ops.
struct Expand {
  std::function<Values(const ExpandCtx&)> ops;
};

/// The result is the operand's bytes under another shape (reshape): no kernel at all.
struct Alias {};

/// Neither lowered nor expanded: data, param, state, arg: a place in memory, known by its symbol.
struct Source {};
/// Writes its operand 0 into the variable named by its symbol at the end of the step.
struct Store {};

/// A request to the passes, gone before codegen: train.
struct Directive {};

/// A composite of kernels formed by the passes: fused.
struct Composite {};

/// Done together with the other processes: all_reduce. Result i lies in operand i's memory.
struct Exchange {};

using Lower =
    std::variant<Map, Reduce, Expand, Alias, Source, Store, Directive, Composite, Exchange>;

struct NoGrad {};
using GradFn = std::function<Values(const GradCtx&)>;  ///< one value an operand, null for none
using Grad = std::variant<NoGrad, GradFn>;

struct Pure {};
struct Random {};  ///< has an int attribute "stream", set when recorded
/// Result `first` of each pair is the new value of the variable that operand `second` reads.
struct Updates {
  std::vector<std::pair<int, int>> results;
};
struct Collective {};
struct Metric {};  ///< results: (sum, weight)
using Effects = std::variant<Pure, Random, Updates, Collective, Metric>;

/// What automatic mixed precision does with the op: `.amp = Amp::kHalf`, or `{Amp::kHalf, {1}}`.
struct Amp {
  enum Class : uint8_t { kHalf, kF32, kFollow };
  Class klass;
  std::vector<int> f32_operands;  ///< these stay f32 although the op runs in half
  Amp(Class klass, std::vector<int> f32_operands = {})  // NOLINT: a class alone is an Amp
      : klass(klass), f32_operands(std::move(f32_operands)) {}
};

struct CostCtx {
  const std::vector<Type>& in;  ///< concrete types
  const std::vector<Type>& out;
  const Attrs& attrs;
  double numel_in(size_t i) const { return static_cast<double>(in.at(i).shape.numel().size); }
  double numel_out(size_t i = 0) const { return static_cast<double>(out.at(i).shape.numel().size); }
};
struct Cost {
  double flops = 0;   ///< arithmetic operations; a multiply-add counts two
  double bytes = -1;  ///< moved to and from memory; -1: every operand and result once
};

/// Result `out` may lie in operand `in`'s memory when nobody reads the operand later.
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
  Amp amp;  // has no default either
  Required<std::function<Cost(const CostCtx&)>> cost;
  Required<std::vector<InPlace>> in_place;
  Required<Lower> lower;
  Required<std::vector<LibraryKernel>> kernels;
  Required<int> version;
  /// What the op becomes in eval and predict (dropout: its operand); absent: itself.
  std::function<Values(const ExpandCtx&)> inference = nullptr;
  /// The op takes attributes beyond `attrs`, which are then optional and get no defaults; whoever
  /// reads them checks them (param: those of its initialiser, train: those of its optimizer).
  bool open_attrs = false;
};

}  // namespace fluid
