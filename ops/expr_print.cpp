#include <array>
#include <string_view>

#include "ir/error.h"
#include "ir/text.h"
#include "ops/expr.h"

namespace fluid {
namespace {

constexpr std::array<std::string_view, 54> kNames = {
    "constant", "i",        "batch",  "read",  "+",    "-",       "*",     "/",     "floordiv",
    "mod",      "min",      "max",    "pow",   "fma",  "product", "-",     "abs",   "sqrt",
    "rsqrt",    "exp",      "exp2",   "expm1", "log",  "log2",    "log1p", "sinh",  "cosh",
    "tanh",     "asin",     "acos",   "atan",  "erf",  "sigmoid", "floor", "tan",   "sin",
    "cos",      "==",       "!=",     "<",     "<=",   ">",       ">=",    "&&",    "||",
    "!",        "isfinite", "select", "cast",  "load", "v",       "acc",   "lanes", "philox"};
static_assert(kNames.size() == static_cast<size_t>(ScalarOp::philox) + 1);

/// Precedence of an operator that is printed in infix or prefix notation. Returns 0 for an operator
/// that is printed as a function call.
int precedence(ScalarOp op) {
  if (op == ScalarOp::logical_or) return 1;
  if (op == ScalarOp::logical_and) return 2;
  if (op >= ScalarOp::eq && op <= ScalarOp::ge) return 3;
  if (op == ScalarOp::add || op == ScalarOp::sub) return 4;
  if (op == ScalarOp::mul || op == ScalarOp::div) return 5;
  if (op == ScalarOp::neg || op == ScalarOp::logical_not) return 6;
  return 0;
}

std::string constant_text(const ExprNode& n) {
  if (n.dtype == DType::f32) return ir::float_text(n.fvalue);
  if (n.dtype == DType::f64) return ir::float_text(n.fvalue) + "_f64";
  if (n.dtype == DType::boolean) return n.ivalue != 0 ? "true" : "false";
  std::string s = std::to_string(n.ivalue);
  return n.dtype == DType::i64 ? s : s + "_" + std::string(name_of(n.dtype));
}

std::string print(const Expr& e, int outer);

std::string list(const std::vector<Expr>& args, size_t count) {
  std::string s;
  for (size_t i = 0; i < count; ++i) s += (i ? ", " : "") + print(args[i], 0);
  return s;
}

std::string indexed(const ExprNode& n) {
  std::string s = std::string(kNames[static_cast<size_t>(n.op)]) + std::to_string(n.ivalue);
  if (n.checked) s += "!";
  if (n.op == ScalarOp::load && n.args.size() == 2) {
    return s + "[" + print(n.args[0], 0) + " if " + print(n.args[1], 0) + " else " +
           ir::float_text(n.fvalue) + "]";
  }
  s += "[" + list(n.args, n.args.size());
  return s + (n.guarded ? " else " + ir::float_text(n.fvalue) : "") + "]";
}

std::string print(const Expr& e, int outer) {
  check(static_cast<bool>(e), "printing a null expression");
  const ExprNode& n = e.node();
  const std::string name(kNames[static_cast<size_t>(n.op)]);
  switch (n.op) {
    case ScalarOp::constant:
      return constant_text(n);
    case ScalarOp::var:
    case ScalarOp::let:
      return name + std::to_string(n.ivalue);
    case ScalarOp::batch:
      return name;
    case ScalarOp::read:
    case ScalarOp::load:
      return indexed(n);
    case ScalarOp::acc:
      return name + std::to_string(n.ivalue) + (n.dtype == DType::i64 ? "." : "") + "[" +
             list(n.args, n.args.size()) + "]";
    case ScalarOp::cast:
      return std::string(name_of(n.dtype)) + "(" + print(n.args[0], 0) + ")";
    default:
      break;
  }
  const int inner = precedence(n.op);
  if (inner == 0) return name + "(" + list(n.args, n.args.size()) + ")";
  std::string s = n.args.size() == 1
                      ? name + print(n.args[0], inner)
                      : print(n.args[0], inner) + " " + name + " " + print(n.args[1], inner + 1);
  return inner < outer ? "(" + s + ")" : s;
}

}  // namespace

std::string Expr::str() const { return print(*this, 0); }

}  // namespace fluid
