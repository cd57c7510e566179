#include "ops/kernel_ir.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <set>

#include "ir/error.h"

namespace fluid::kir {
namespace {

constexpr std::array kScalarNames = {
    "constant", "var",   "batch", "read",        "add",        "sub",         "mul",      "div",
    "floordiv", "mod",   "min",   "max",         "pow",        "fma",         "product",  "neg",
    "abs",      "sqrt",  "rsqrt", "exp",         "exp2",       "expm1",       "log",      "log2",
    "log1p",    "sinh",  "cosh",  "tanh",        "asin",       "acos",        "atan",     "erf",
    "sigmoid",  "floor", "tan",   "sin",         "cos",        "eq",          "ne",       "lt",
    "le",       "gt",    "ge",    "logical_and", "logical_or", "logical_not", "isfinite", "select",
    "cast",     "load",  "let",   "acc",         "lanes",      "philox"};
static_assert(kScalarNames.size() == static_cast<size_t>(ScalarOp::philox) + 1);

std::string number(double value) {
  std::array<char, 32> text;
  auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

const std::string& buffer_name(const Kernel& kernel, int64_t id) {
  check(id >= 0 && id < static_cast<int64_t>(kernel.buffers.size()),
        "kernel " + kernel.name + ": no such buffer");
  return kernel.buffers[static_cast<size_t>(id)].name;
}

/// Prints expressions. A node that a statement uses several times is printed once, as a named
/// temporary: the tree of an expression DAG can be exponentially larger than the DAG.
class ExprPrinter {
 public:
  ExprPrinter(const Kernel& kernel, std::string& out, int& temporaries)
      : kernel_(kernel), out_(out), temporaries_(temporaries) {}

  void prepare(const Expr& e, const std::string& indent) {
    if (!e) return;
    count(e);
    define_shared(e, indent);
  }

  std::string text(const Expr& e) const {
    auto named = names_.find(e.get());
    return named != names_.end() ? named->second : spell(e);
  }

 private:
  static bool leaf(const Expr& e) { return e.args().empty(); }

  void count(const Expr& e) {
    if (leaf(e) || ++uses_[e.get()] > 1) return;
    for (const Expr& arg : e.args()) count(arg);
  }

  void define_shared(const Expr& e, const std::string& indent) {
    if (leaf(e) || !seen_.insert(e.get()).second) return;
    for (const Expr& arg : e.args()) define_shared(arg, indent);
    if (uses_[e.get()] < 2) return;
    std::string name = "t" + std::to_string(temporaries_++);
    out_ += indent + name + " = " + spell(e) + "\n";
    names_[e.get()] = name;
  }

  std::string spell(const Expr& e) const {
    const ExprNode& n = e.node();
    switch (n.op) {
      case ScalarOp::constant:
        return is_float(n.dtype) ? number(n.fvalue) + ":" + std::string(name_of(n.dtype))
                                 : std::to_string(n.ivalue) + ":" + std::string(name_of(n.dtype));
      case ScalarOp::var:
        return "i" + std::to_string(n.ivalue);
      case ScalarOp::batch:
        return "batch";
      case ScalarOp::let:
        return "v" + std::to_string(n.ivalue) + ":" + std::string(name_of(n.dtype));
      case ScalarOp::load:
        return load(e);
      case ScalarOp::acc:
        return "acc" + std::to_string(n.ivalue) + ":" + std::string(name_of(n.dtype)) +
               (n.args.empty() ? "" : list(n.args, "[", "]"));
      default:
        break;
    }
    return std::string(kScalarNames[static_cast<size_t>(n.op)]) + ":" +
           std::string(name_of(n.dtype)) + list(n.args, "(", ")");
  }

  std::string load(const Expr& e) const {
    const ExprNode& n = e.node();
    std::string s = buffer_name(kernel_, n.ivalue) + "[" + text(n.args.at(0)) + "]";
    if (n.args.size() > 1) s = "(" + text(n.args[1]) + " ? " + s + " : " + number(n.fvalue) + ")";
    return s;
  }

  std::string list(const std::vector<Expr>& args, const char* open, const char* close) const {
    std::string s = open;
    for (size_t i = 0; i < args.size(); ++i) s += (i ? ", " : "") + text(args[i]);
    return s + close;
  }

  const Kernel& kernel_;
  std::string& out_;
  int& temporaries_;
  std::map<const ExprNode*, int> uses_;
  std::set<const ExprNode*> seen_;
  std::map<const ExprNode*, std::string> names_;
};

std::string_view name_of(Combine combine) {
  constexpr std::array<std::string_view, 5> names = {"sum", "prod", "max", "min", "argmax"};
  return names.at(static_cast<size_t>(combine));
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    out_ = "kernel " + kernel_.name + "(";
    constexpr std::array roles = {"in", "out", "scratch", "error", "constants", "local"};
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& b = kernel_.buffers[i];
      out_ += (i ? ", " : "") + std::string(roles.at(static_cast<size_t>(b.role))) + " " + b.name +
              ": " + std::string(fluid::name_of(b.dtype)) + "[" + b.elements.str() + "]" +
              (b.noalias ? " exclusive" : "");
    }
    out_ += ") lanes " + std::to_string(lanes_of(kernel_));
    if (kernel_.thread_group_size > 1) out_ += " team " + std::to_string(kernel_.thread_group_size);
    out_ += "\n";
    ExprPrinter blocks(kernel_, out_, temporaries_);
    blocks.prepare(kernel_.blocks, "");
    out_ +=
        "blocks i" + std::to_string(kernel_.block_var) + " < " + blocks.text(kernel_.blocks) + "\n";
    block(kernel_.body, "  ");
    if (!kernel_.finish.empty()) {
      out_ += "finish\n";
      block(kernel_.finish, "  ");
    }
    return out_;
  }

 private:
  void block(const Block& statements, const std::string& indent) {
    for (const Stmt& s : statements) {
      std::visit([&](const auto& statement) { print(statement, indent); },
                 static_cast<const Stmt::variant&>(s));
    }
  }

  void print(const For& f, const std::string& indent) {
    constexpr std::array kinds = {"for", "unroll", "vector"};
    ExprPrinter e(kernel_, out_, temporaries_);
    e.prepare(f.begin, indent);
    e.prepare(f.end, indent);
    out_ += indent + kinds.at(static_cast<size_t>(f.kind)) + " i" + std::to_string(f.var) + " in " +
            e.text(f.begin) + " .. " + e.text(f.end) + "\n";
    block(*f.body, indent + "  ");
  }

  void print(const Let& let, const std::string& indent) {
    ExprPrinter e(kernel_, out_, temporaries_);
    e.prepare(let.value, indent);
    out_ += indent + "v" + std::to_string(let.id) + " = " + e.text(let.value) + "\n";
  }

  void print(const Accumulator& a, const std::string& indent) {
    out_ += indent + "acc" + std::to_string(a.id) + ": " + std::string(fluid::name_of(a.dtype));
    for (int64_t d : a.dims) out_ += " x " + std::to_string(d);
    out_ += " = " + std::string(name_of(a.combine)) + (a.per_lane ? " lanes\n" : "\n");
  }

  void print(const Accumulate& a, const std::string& indent) {
    ExprPrinter e(kernel_, out_, temporaries_);
    for (const Expr& i : a.index) e.prepare(i, indent);
    e.prepare(a.value, indent);
    e.prepare(a.argmax_index, indent);
    out_ += indent + "acc" + std::to_string(a.accumulator_id);
    for (const Expr& i : a.index) out_ += "[" + e.text(i) + "]";
    out_ += " <- " + e.text(a.value);
    if (a.argmax_index) out_ += " at " + e.text(a.argmax_index);
    out_ += "\n";
  }

  void print(const StoreTo& s, const std::string& indent) {
    ExprPrinter e(kernel_, out_, temporaries_);
    e.prepare(s.offset, indent);
    e.prepare(s.value, indent);
    e.prepare(s.mask, indent);
    out_ +=
        indent + buffer_name(kernel_, s.buffer) + "[" + e.text(s.offset) + "] = " + e.text(s.value);
    if (s.mask) out_ += " where " + e.text(s.mask);
    out_ += "\n";
  }

  void print(const Prefetch& p, const std::string& indent) {
    ExprPrinter e(kernel_, out_, temporaries_);
    e.prepare(p.offset, indent);
    out_ += indent + "prefetch " + buffer_name(kernel_, p.buffer) + "[" + e.text(p.offset) + "]\n";
  }

  void print(const If& i, const std::string& indent) {
    ExprPrinter e(kernel_, out_, temporaries_);
    e.prepare(i.condition, indent);
    out_ += indent + "if " + e.text(i.condition) + "\n";
    block(*i.body, indent + "  ");
  }

  const Kernel& kernel_;
  std::string out_;
  int temporaries_ = 0;
};

/// Calls `visit` for the value of each statement in a vector loop.
void for_each_lane_expr(const Block& block, bool in_lanes,
                        const std::function<void(const Expr&)>& visit) {
  auto each = [&](const Expr& e) {
    if (in_lanes) visit(e);
  };
  for (const Stmt& s : block) {
    if (auto* f = std::get_if<For>(&s)) {
      for_each_lane_expr(*f->body, in_lanes || f->kind == For::Kind::vector, visit);
    } else if (auto* i = std::get_if<If>(&s)) {
      for_each_lane_expr(*i->body, in_lanes, visit);
    } else if (auto* let = std::get_if<Let>(&s)) {
      each(let->value);
    } else if (auto* a = std::get_if<Accumulate>(&s)) {
      each(a->value);
    } else if (auto* store = std::get_if<StoreTo>(&s)) {
      each(store->value);
    }
  }
}

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

int64_t argument_count(const Kernel& kernel) {
  return std::ranges::count_if(kernel.buffers,
                               [](const Buffer& b) { return b.role != Buffer::Role::local; });
}

int64_t lanes_of(const Kernel& kernel) {
  if (kernel.vector_width > 0) {
    check(std::has_single_bit(static_cast<uint64_t>(kernel.vector_width)),
          "vector width of " + kernel.name + " is not a power of two");
    return kernel.vector_width;
  }
  int64_t widest_float = 0, widest = 4;
  auto see = [&](DType dtype) {
    DType compute = compute_dtype(dtype);
    int64_t& slot = is_float(compute) ? widest_float : widest;
    slot = std::max(slot, size_of(compute));
  };
  for (const Buffer& b : kernel.buffers) {
    const bool words = b.role == Buffer::Role::error || b.role == Buffer::Role::constants;
    if (!words && !b.elements.is(1)) see(b.dtype);
  }
  for (const Block* block : {&kernel.body, &kernel.finish}) {
    for_each_lane_expr(*block, false, [&](const Expr& e) { see(e.dtype()); });
  }
  return kVectorBytes / (widest_float ? widest_float : widest);
}

int64_t evaluate(const Expr& e, int64_t batch) {
  const ExprNode& n = e.node();
  auto arg = [&](size_t i) { return evaluate(n.args.at(i), batch); };
  auto floordiv = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); };
  switch (n.op) {
    case ScalarOp::constant:
      return n.ivalue;
    case ScalarOp::batch:
      return batch;
    case ScalarOp::add:
      return arg(0) + arg(1);
    case ScalarOp::sub:
      return arg(0) - arg(1);
    case ScalarOp::mul:
      return arg(0) * arg(1);
    case ScalarOp::floordiv:
      return floordiv(arg(0), arg(1));
    case ScalarOp::mod:
      return arg(0) - floordiv(arg(0), arg(1)) * arg(1);
    case ScalarOp::min:
      return std::min(arg(0), arg(1));
    case ScalarOp::max:
      return std::max(arg(0), arg(1));
    case ScalarOp::neg:
      return -arg(0);
    default:
      throw InternalError("not an extent: " + std::string(kScalarNames[static_cast<size_t>(n.op)]));
  }
}

}  // namespace fluid::kir
