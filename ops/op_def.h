#pragma once

// Definition of an op (OpDef). To add an op, add one file with a function that returns an OpDef,
// written with designated initialisers. Omitting a Required field is a compile error, unless the
// field is a list. The build gathers all definitions in a table (ops/table.h) and generates
// functions.h and OPS.md from the table.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ops/combine.h"
#include "ops/expr.h"
#include "ops/kernel_ir.h"
#include "ops/required.h"

namespace fluid {

/// Name and documentation of a port, that is, of an operand or a result of an op.
struct PortDef {
  std::string name;
  std::string doc;
  bool variadic = false;  ///< only for the last port: accepts any number of operands (e.g. concat)
  bool optional = false;  ///< only for trailing ports: the operand may be omitted (e.g. a bias)
  /// Whether only gradients and metrics read this result, for example the argmax of a pooling
  /// window. The first result must not be auxiliary. If all other results are auxiliary, the op's
  /// function in functions.h returns only the first result.
  bool auxiliary = false;
};

/// Definition of an attribute. The attribute has the type of `fallback`. Its default value is
/// `fallback`, unless the attribute is `required`.
struct AttrDef {
  std::string name;
  Attr fallback;
  std::string doc;
  bool required = false;
};

/// Argument of OpDef::infer, which returns the result types. `infer` calls fail() for invalid
/// operands, with a message that names these operands. For a source op (param, data, ...), operand
/// 0 is the declared type, and `infer` checks the attributes.
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
  std::string attr_text(std::string_view name) const;  ///< value of an attribute, such as "[1, 2]"
  const Loc& loc() const { return loc_; }
  /// Throws UserError with message "<file:line>: <op>: <message>".
  [[noreturn]] void fail(const std::string& message) const;
  /// Calls fail(message) unless `condition` is true.
  void require(bool condition, const std::string& message) const {
    if (!condition) fail(message);
  }

 private:
  std::string_view op_;
  const std::vector<Type>& in_;
  const Attrs& attrs_;
  const Loc& loc_;
};

/// Argument of OpDef::grad: the forward op and the gradients of its results. A GradFn calls the
/// functions of ops/functions.h to record ops that compute the gradients of the operands.
class GradCtx {
 public:
  GradCtx(ir::Op& op, Values dout) : op_(op), dout_(std::move(dout)) {}
  ir::Op& op() const { return op_; }
  size_t arity() const { return op_.operands.size(); }
  Value in(size_t i) const { return op_.operands.at(i); }
  Value out(size_t i) const { return op_.result(static_cast<int>(i)); }
  /// Gradient of the loss with respect to result i; null when the loss does not depend on it.
  Value dout(size_t i) const { return dout_.at(i); }
  template <class T>
  const T& attr(std::string_view name) const {
    return op_.attrs.get<T>(name);
  }
  const Attrs& attrs() const { return op_.attrs; }

 private:
  ir::Op& op_;
  Values dout_;
};

/// Argument of Expand::ops and OpDef::inference, which record simpler ops that compute the results
/// of the op.
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

/// Argument of Map::body and Reduce::body. Loop variables 0 to rank - 1 run over the dimensions of
/// the result; the following variables run over the reduced dimensions.
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
  Expr reduce_var(size_t d) const;  ///< variable of the d-th reduced dimension
  std::vector<Expr> out_vars() const;
  Expr extent(const Dim& d) const;  ///< a constant or a multiple of the batch size
  /// Reads operand `i` at the index of the result element. Broadcasts as NumPy does, with trailing
  /// dimensions aligned.
  Expr in(size_t i) const;
  /// Reads operand `i` at `index`, one entry per dimension. The index must be in range.
  Expr read(size_t i, std::vector<Expr> index) const;
  /// Reads operand `i` at `index`. Returns `fallback` if the index is out of range.
  Expr read_or(size_t i, std::vector<Expr> index, double fallback) const;
  /// Reads operand `i` at a data-dependent index. An out-of-range index is clamped, and sets the
  /// error word of operand `i`.
  Expr read_checked(size_t i, std::vector<Expr> index) const;

 private:
  const std::vector<Type>& in_;
  const std::vector<Type>& out_;
  const Attrs& attrs_;
};

/// Elementwise lowering: one expression per result, evaluated at every index of the result. All
/// results have the same shape.
struct Map {
  std::function<std::vector<Expr>(const LowerCtx&)> body;
};

/// Reduction: out[o] = combine over r of body(o, r). The accumulator is f32 or wider (f64 for f64,
/// i64 for integers).
struct ReduceBody {
  std::vector<Dim> extents;  ///< extents of the reduction variables
  Expr body;                 ///< calls read_or() for elements that may be in the padding
};
struct Reduce {
  Combine combine;
  std::function<ReduceBody(const LowerCtx&)> body;
};

enum class KernelDevice : uint8_t { cpu, cuda };

class LoopsCtx;

/// Lowering of an op that is neither a map nor a reduction (sort, scatter, attention). The op
/// writes its kernel in kernel IR, with a KernelWriter (ops/kernel_writer.h). Results must not
/// depend on how the kernel's blocks are distributed over threads. Samples of a batch must be
/// independent: sample i of a result depends only on sample i of the operands that have a batch
/// dimension.
struct Loops {
  std::function<kir::Kernel(const LoopsCtx&)> kernel;
  /// Returns the operands that the kernel accesses at data-dependent indices, checked by
  /// KernelWriter::check_index(). Maps each operand to its indexed dimension, or to its rank if
  /// several dimensions are indexed. Null: the kernel checks no indices.
  std::function<std::map<int64_t, size_t>(const LowerCtx&)> checked = nullptr;
};

/// Lowering by replacement: the op is replaced by simpler ops.
struct Expand {
  std::function<Values(const ExpandCtx&)> ops;
};

/// View (reshape): the result shares the operand's buffer but has another shape. Runs no kernel.
struct Alias {};

/// A named buffer (data, param, state, arg). Not lowered to a kernel.
struct Source {};
/// Writes operand 0 into the variable named by the op's symbol, at the end of the step.
struct Store {};

/// An op that a compiler pass replaces by other ops before code generation. Example: train.
struct Directive {};

/// Op `gradients`: the gradients of operand 0 with respect to the other operands. The pass
/// expand_gradients replaces the op by ops that compute these gradients.
struct GradientsOp {};

/// Op `fused`: a group of ops that the fusion pass has fused.
struct FusedOp {};

/// Op `scan`: a recurrence, which runs its body graph repeatedly. See ops/scan.h.
struct Scan {};

/// A collective over all ranks (all_reduce, reduce_scatter, all_gather). Result i aliases operand
/// i.
struct CollectiveOp {};

using Lower = std::variant<Map, Reduce, Loops, Expand, Alias, Source, Store, Directive, GradientsOp,
                           FusedOp, Scan, CollectiveOp>;

struct NoGrad {};  ///< the op is not differentiable
/// Returns one gradient per operand; null for an operand without gradient.
using GradFn = std::function<Values(const GradCtx&)>;
using Grad = std::variant<NoGrad, GradFn>;

struct Pure {};    ///< no side effects
struct Random {};  ///< draws random numbers; record() sets attribute "stream" to the random stream
/// The op updates variables. Contains pairs (result index, operand index). The result is the new
/// value of the variable that the operand reads.
struct Updates {
  std::vector<std::pair<int, int>> results;
};
struct Collective {};
/// The op's result holds the statistics of a metric, as f64. Without a batch dimension, they are
/// sums over samples, and the statistics of several steps add up. With a batch dimension, they are
/// one row per sample, and the rows of several steps are concatenated.
struct Metric {
  /// Computes the metric from its statistics. `attrs`: all attributes of the op.
  std::function<double(std::span<const double> statistics, const Attrs& attrs)> value;
};
using Effects = std::variant<Pure, Random, Updates, Collective, Metric>;

/// Class of the op in automatic mixed precision: `.amp = Amp::kHalf`, or `{Amp::kHalf, {1}}` if
/// operand 1 stays f32.
struct Amp {
  enum Class : uint8_t { kHalf, kF32, kFollow };
  Class amp_class;
  std::vector<int> f32_operands;  ///< indices of the operands that stay f32 in half precision
  Amp(Class amp_class, std::vector<int> f32_operands = {})  // NOLINT: implicit conversion
      : amp_class(amp_class), f32_operands(std::move(f32_operands)) {}
};

/// Argument of OpDef::cost.
struct CostCtx {
  const std::vector<Type>& in;  ///< operand types at the actual batch size
  const std::vector<Type>& out;
  const Attrs& attrs;
  double numel_in(size_t i) const { return static_cast<double>(in.at(i).shape.numel().size); }
  double numel_out(size_t i = 0) const { return static_cast<double>(out.at(i).shape.numel().size); }
};
/// Estimated cost of one execution of an op.
struct Cost {
  double flops = 0;   ///< floating-point operations; a multiply-add counts as 2
  double bytes = -1;  ///< memory traffic; -1: the size of all operands and results
};

/// In-place pair: result `out` may alias operand `in` if no later op reads the operand.
struct InPlace {
  int out = 0;
  int in = 0;
  /// Whether the result must alias the operand, because the kernel writes only the elements that
  /// change.
  bool required = false;
};

/// A sparse gradient of a table [V, D], as updates of rows. Rows without an update have gradient 0.
struct RowUpdates {
  Value index;    ///< i64 [n]; out-of-range indices are ignored
  Value updates;  ///< [m, D]; row index[j] gets updates[j / (n / m)]
  Value weights;  ///< [n], factors of the updates; null: 1
};

/// A library kernel that can compute the op, such as {KernelDevice::cpu, "onednn.conv2d"}.
struct LibraryKernel {
  KernelDevice device;
  std::string name;
};

/// State of an optimizer: a variable of the parameter's type, initially 0.
struct OptimizerState {
  std::string name;
  /// Name of the attribute that enables the state: a bool, or a number that is nonzero if the state
  /// is enabled. Empty: the state is always enabled.
  std::string setting = {};
};

/// Float scalar operand of an optimizer. The pass expand_optimizer computes it, as the L2 norm of a
/// tensor (`norm_of`) or as an element of a sequence with one element per update (`sequence`).
struct OptimizerScalar {
  std::string name;
  std::string doc;
  /// The tensor whose norm is the operand: "param", "grad", or the result of the op with this name
  /// and the operands (param, grad, lr, update, state...).
  std::string norm_of = {};
  /// Name of the op that maps (previous element, update) to the next element of the sequence, an
  /// f64 scalar. `update` is the number of previous updates. The element before the first update is
  /// 1. All parameters share the sequence.
  std::string sequence = {};
};

class WholeParameter;  // defined in ops/optim/whole_parameter.h

/// Operand of an optimizer that is computed from the whole parameter and has the parameter's type.
struct OptimizerTensor {
  std::string name;
  std::string doc;
  std::function<Value(WholeParameter&)> record;  ///< records ops that compute the operand
};

/// Properties of an optimizer (ops/optim/optimizer.h).
struct OptimizerTraits {
  std::string type;  ///< C++ struct of the settings, in ops/optimizers.h
  double lr = 0;     ///< default learning rate
  std::vector<OptimizerState> states;
  std::vector<OptimizerScalar> scalars;
  std::vector<OptimizerTensor> tensors = {};
  /// Name of the optimizer for parameters that are not matrices; empty: this optimizer.
  std::string non_matrix_optimizer = {};
};

/// Properties of a learning rate schedule (ops/optim/schedule.h).
struct ScheduleTraits {
  std::string type;  ///< C++ struct of the settings, in ops/schedules.h
};

/// An op that computes the results of two ops with the same operands and attributes in less time,
/// provided that its blocks keep the device busy.
struct CombinedOp {
  std::string with;  ///< name of the other op
  /// Name of the combined op. Its results are those of this op, then those of the other op,
  /// possibly of a wider dtype.
  std::string op;
  std::function<Dim(const std::vector<Type>& in)> blocks;  ///< number of blocks of its kernel
};

struct OpDef {
  Required<std::string> name;
  Required<std::string> doc;
  Required<std::vector<PortDef>> inputs;
  Required<std::vector<AttrDef>> attrs;
  Required<std::vector<PortDef>> outputs;
  Required<std::function<std::vector<Type>(const InferCtx&)>> infer;
  Required<Grad> grad;
  Required<Effects> effects;
  Amp amp;  // a required field, since Amp has no default constructor
  Required<std::function<Cost(const CostCtx&)>> cost;
  Required<std::vector<InPlace>> in_place;
  Required<Lower> lower;
  Required<std::vector<LibraryKernel>> kernels;
  Required<int> version;
  /// Records ops that replace the op in eval and predict graphs (for dropout: returns its operand).
  /// If null, the op is kept.
  std::function<Values(const ExpandCtx&)> inference = nullptr;
  /// Records result 0, the gradient of a table, as row updates. Returns nullopt if result 0 is
  /// dense. Null: result 0 is always dense.
  std::function<std::optional<RowUpdates>(const ExpandCtx&)> row_updates = nullptr;
  /// Whether the op accepts attributes beyond `attrs`. `param` accepts the attributes of its
  /// initialiser, and `train` those of its optimizer. The attributes in `attrs` are then optional
  /// and get no defaults; the code that reads an attribute checks it.
  bool open_attrs = false;
  /// Whether only the compiler records the op. If so, the op's function is in
  /// ops/internal_functions.h, in namespace fluid::internal. All ops that update variables, such as
  /// optimizers, are internal.
  bool internal = false;
  /// The op that computes the results of this op and of another op at once.
  std::optional<CombinedOp> combined = {};
  /// Set for optimizers only.
  std::optional<OptimizerTraits> optimizer = {};
  /// Set for learning rate schedules only.
  std::optional<ScheduleTraits> schedule = {};
};

}  // namespace fluid
