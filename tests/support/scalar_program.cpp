#include "tests/support/scalar_program.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"
#include "ops/random/philox.h"

namespace fluid::testing {
namespace {

Number of(double f) { return {f, 0}; }
Number of_int(int64_t i) { return {0, i}; }

int64_t wrap(DType dtype, uint64_t bits) {
  const auto value = static_cast<int64_t>(bits);
  return dtype == DType::i32  ? static_cast<int32_t>(value)
         : dtype == DType::u8 ? static_cast<uint8_t>(value)
         : dtype == DType::i8 ? static_cast<int8_t>(value)
                              : value;
}

int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Number arithmetic(ScalarOp op, DType dtype, Number a, Number b) {
  if (is_float(dtype)) {
    const bool nan = std::isnan(a.f) || std::isnan(b.f);
    switch (op) {
      case ScalarOp::add:
        return of(a.f + b.f);
      case ScalarOp::sub:
        return of(a.f - b.f);
      case ScalarOp::mul:
        return of(a.f * b.f);
      case ScalarOp::div:
        return of(a.f / b.f);
      case ScalarOp::min:
        return of(nan ? NAN : std::min(a.f, b.f));
      case ScalarOp::max:
        return of(nan ? NAN : std::max(a.f, b.f));
      case ScalarOp::mod:
        return of(floored_remainder(a.f, b.f));
      default:
        return of(std::pow(a.f, b.f));
    }
  }
  const auto x = static_cast<uint64_t>(a.i), y = static_cast<uint64_t>(b.i);
  switch (op) {
    case ScalarOp::add:
      return of_int(wrap(dtype, x + y));
    case ScalarOp::sub:
      return of_int(wrap(dtype, x - y));
    case ScalarOp::mul:
      return of_int(wrap(dtype, x * y));
    case ScalarOp::floordiv:
      return of_int(floor_divide(a.i, b.i));
    case ScalarOp::mod:
      return of_int(b.i == 0 || b.i == -1 ? 0 : a.i - floor_divide(a.i, b.i) * b.i);
    case ScalarOp::min:
      return of_int(std::min(a.i, b.i));
    case ScalarOp::max:
      return of_int(std::max(a.i, b.i));
    default:
      throw InternalError("no such integer arithmetic");
  }
}

Number cast(const ExprNode& node, Number x) {
  const DType from = node.args[0].dtype();
  if (node.dtype == DType::boolean) return of_int(is_float(from) ? x.f != 0 : x.i != 0);
  if (!is_float(node.dtype)) {
    return of_int(
        wrap(node.dtype, static_cast<uint64_t>(is_float(from) ? static_cast<int64_t>(x.f) : x.i)));
  }
  return of(is_float(from) ? x.f : static_cast<double>(x.i));
}

}  // namespace

double floored_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double apply_elementary(ScalarOp op, double x) {
  switch (op) {
    case ScalarOp::neg:
      return -x;
    case ScalarOp::abs:
      return std::fabs(x);
    case ScalarOp::sqrt:
      return std::sqrt(x);
    case ScalarOp::rsqrt:
      return 1 / std::sqrt(x);
    case ScalarOp::exp:
      return std::exp(x);
    case ScalarOp::exp2:
      return std::exp2(x);
    case ScalarOp::expm1:
      return std::expm1(x);
    case ScalarOp::log:
      return std::log(x);
    case ScalarOp::log2:
      return std::log2(x);
    case ScalarOp::log1p:
      return std::log1p(x);
    case ScalarOp::sinh:
      return std::sinh(x);
    case ScalarOp::cosh:
      return std::cosh(x);
    case ScalarOp::tanh:
      return std::tanh(x);
    case ScalarOp::asin:
      return std::asin(x);
    case ScalarOp::acos:
      return std::acos(x);
    case ScalarOp::atan:
      return std::atan(x);
    case ScalarOp::erf:
      return std::erf(x);
    case ScalarOp::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ScalarOp::floor:
      return std::floor(x);
    case ScalarOp::tan:
      return std::tan(x);
    case ScalarOp::sin:
      return std::sin(x);
    case ScalarOp::cos:
      return std::cos(x);
    default:
      throw InternalError("not an elementary function");
  }
}

ScalarProgram::ScalarProgram(const Expr& e, std::vector<std::vector<int64_t>> extents, bool round)
    : root_(e), extents_(std::move(extents)), round_(round) {
  std::map<const ExprNode*, size_t> places;
  for_each_node(e, [&](const Expr& n) {
    Instruction in{n.get(), {}};
    for (const Expr& a : n.args()) in.args.push_back(places.at(a.get()));
    places[n.get()] = instructions_.size();
    instructions_.push_back(std::move(in));
  });
  values_.resize(instructions_.size());
}

Number ScalarProgram::read(const Instruction& in, const ReadElement& read,
                           bool& index_error) const {
  const ExprNode& n = *in.node;
  const std::vector<int64_t>& extents = extents_.at(static_cast<size_t>(n.ivalue));
  std::vector<int64_t> index;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t i = values_[in.args[d]].i;
    if (i < 0 || i >= extents[d]) {
      if (n.guarded) return {n.fvalue, static_cast<int64_t>(n.fvalue)};
      check(n.checked, "read" + std::to_string(n.ivalue) + " at " + std::to_string(i) +
                           " of extent " + std::to_string(extents[d]) + " in " + root_.str());
      index_error = true;
      if (extents[d] == 0) return {};
      i = std::clamp<int64_t>(i, 0, extents[d] - 1);
    }
    index.push_back(i);
  }
  return read(static_cast<size_t>(n.ivalue), index);
}

Number ScalarProgram::run(const std::vector<int64_t>& vars, int64_t batch,
                          const ReadElement& read_element, bool& index_error) {
  for (size_t k = 0; k < instructions_.size(); ++k) {
    const Instruction& in = instructions_[k];
    const ExprNode& n = *in.node;
    const auto arg = [&](size_t i) { return values_[in.args[i]]; };
    Number& value = values_[k];
    const bool floats = !n.args.empty() && is_float(n.args[0].dtype());
    switch (n.op) {
      case ScalarOp::constant:
        value = {n.fvalue, n.ivalue};
        break;
      case ScalarOp::var:
        value = of_int(vars.at(static_cast<size_t>(n.ivalue)));
        break;
      case ScalarOp::batch:
        value = of_int(batch);
        break;
      case ScalarOp::read:
        value = read(in, read_element, index_error);
        break;
      case ScalarOp::logical_and:
        value = of_int(arg(0).i && arg(1).i);
        break;
      case ScalarOp::logical_or:
        value = of_int(arg(0).i || arg(1).i);
        break;
      case ScalarOp::logical_not:
        value = of_int(!arg(0).i);
        break;
      case ScalarOp::isfinite:
        value = of_int(std::isfinite(arg(0).f));
        break;
      case ScalarOp::select:
        value = arg(0).i ? arg(1) : arg(2);
        break;
      case ScalarOp::cast:
        value = cast(n, arg(0));
        break;
      case ScalarOp::philox:
        value = of_int(philox_bits(arg(0).i, arg(1).i, arg(2).i, arg(3).i));
        break;
      default:
        if (n.op >= ScalarOp::eq && n.op <= ScalarOp::ge) {
          value = of_int(floats ? compare(n.op, arg(0).f, arg(1).f)
                                : compare(n.op, arg(0).i, arg(1).i));
        } else if (n.args.size() == 2) {
          value = arithmetic(n.op, n.dtype, arg(0), arg(1));
        } else if (floats) {
          value = of(apply_elementary(n.op, arg(0).f));
        } else {
          const int64_t i = arg(0).i;
          const bool negate = n.op == ScalarOp::neg || (n.op == ScalarOp::abs && i < 0);
          value = of_int(negate ? wrap(n.dtype, -static_cast<uint64_t>(i)) : i);
        }
    }
    if (round_ && n.dtype == DType::f32) value.f = static_cast<float>(value.f);
  }
  return values_.back();
}

}  // namespace fluid::testing
