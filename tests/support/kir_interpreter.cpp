#include "tests/support/kir_interpreter.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/tensor.h"
#include "ops/random/philox.h"
#include "tests/support/scalar_program.h"

namespace fluid::testing {
namespace {

using kir::Block;

Number real(DType dtype, double v) {
  return {dtype == DType::f64 ? v : static_cast<double>(static_cast<float>(v)), 0};
}

Number integer(DType dtype, int64_t v) {
  switch (dtype) {
    case DType::i32:
      return {0, static_cast<int32_t>(v)};
    case DType::u8:
      return {0, static_cast<uint8_t>(v)};
    case DType::i8:
      return {0, static_cast<int8_t>(v)};
    case DType::boolean:
      return {0, v != 0};
    default:
      return {0, v};
  }
}

int64_t saturate(DType dtype, double v) {
  if (std::isnan(v)) return 0;
  auto clamp = [&](double low, double high, int64_t least, int64_t most) {
    return v <= low ? least : v >= high ? most : static_cast<int64_t>(v);
  };
  if (dtype == DType::u8) return clamp(0, 255, 0, 255);
  if (dtype == DType::i8) return clamp(-128, 127, -128, 127);
  if (dtype == DType::i32) return clamp(-0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
  return clamp(-0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
}

Number cast(Number v, DType from, DType to) {
  from = compute_dtype(from);
  to = compute_dtype(to);
  if (to == DType::boolean) return {0, is_float(from) ? v.f != 0 : v.i != 0};
  if (is_float(to)) return real(to, is_float(from) ? v.f : static_cast<double>(v.i));
  return integer(to, is_float(from) ? saturate(to, v.f) : v.i);
}

Number read(const void* data, DType dtype, int64_t at) {
  auto get = [&]<class T>(T) { return static_cast<const T*>(data)[at]; };
  switch (dtype) {
    case DType::f64:
      return {get(double{}), 0};
    case DType::f32:
      return {get(float{}), 0};
    case DType::f16:
    case DType::bf16:
      return {half_to_float(get(uint16_t{}), dtype), 0};
    case DType::i64:
      return {0, get(int64_t{})};
    case DType::i32:
      return {0, get(int32_t{})};
    case DType::u8:
      return {0, get(uint8_t{})};
    case DType::i8:
      return {0, get(int8_t{})};
    default:
      return {0, get(uint8_t{}) != 0};
  }
}

void write(void* data, DType dtype, int64_t at, Number v) {
  auto put = [&](auto x) { std::memcpy(static_cast<char*>(data) + at * sizeof x, &x, sizeof x); };
  switch (dtype) {
    case DType::f64:
      return put(v.f);
    case DType::f32:
      return put(static_cast<float>(v.f));
    case DType::f16:
    case DType::bf16:
      return put(float_to_half(static_cast<float>(v.f), dtype));
    case DType::i64:
      return put(v.i);
    case DType::i32:
      return put(static_cast<int32_t>(v.i));
    default:
      return put(static_cast<uint8_t>(v.i));
  }
}

Number fma(DType dtype, Number a, Number b, Number c) {
  if (dtype == DType::f64) return {std::fma(a.f, b.f, c.f), 0};
  return {std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)), 0};
}

double arithmetic(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
    case ScalarOp::product:
      return a * b;
    case ScalarOp::div:
      return a / b;
    case ScalarOp::pow:
      return std::pow(a, b);
    case ScalarOp::mod:
      return floored_remainder(a, b);
    case ScalarOp::min:
      return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b;
    case ScalarOp::max:
      return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b;
    default:
      throw InternalError("not arithmetic");
  }
}

int64_t arithmetic(ScalarOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case ScalarOp::add:
      return static_cast<int64_t>(x + y);
    case ScalarOp::sub:
      return static_cast<int64_t>(x - y);
    case ScalarOp::mul:
      return static_cast<int64_t>(x * y);
    case ScalarOp::min:
      return a < b ? a : b;
    case ScalarOp::max:
      return a > b ? a : b;
    case ScalarOp::div:
    case ScalarOp::floordiv:
    case ScalarOp::mod: {
      if (b == 0) return 0;
      if (b == -1) return op == ScalarOp::mod ? 0 : static_cast<int64_t>(0 - x);
      const int64_t down = a % b != 0 && (a < 0) != (b < 0);
      return op == ScalarOp::mod ? a % b + down * b : a / b - down;
    }
    default:
      throw InternalError("not arithmetic");
  }
}

/// Values by id. Ids are small: a kernel numbers its variables, lets and accumulators from 0.
template <class T>
class ById {
 public:
  T& operator[](int64_t id) {
    const auto at = static_cast<size_t>(id);
    if (at >= values_.size()) values_.resize(at + 1);
    if (!values_[at]) values_[at].emplace();
    return *values_[at];
  }

  T& at(int64_t id) { return values_.at(static_cast<size_t>(id)).value(); }

 private:
  std::vector<std::optional<T>> values_;
};

struct Accumulator {
  const kir::Accumulator* decl = nullptr;
  std::vector<Number> values;  // [lane][element]
  std::vector<int64_t> argmax_indices;
};

class Interpreter {
 public:
  Interpreter(const kir::Kernel& kernel, std::span<void* const> buffers, int64_t batch)
      : kernel_(kernel),
        buffers_(buffers),
        batch_(batch),
        lanes_(kir::lanes_of(kernel) * kernel.thread_group_size) {}

  double operations = 0;  ///< evaluated operations on floats

  void run() {
    const int64_t blocks = kir::evaluate(kernel_.blocks, batch_);
    for (int64_t i = 0; i < blocks; ++i) {
      vars_[kernel_.block_var] = i;
      block(kernel_.body);
    }
    block(kernel_.finish);
  }

 private:
  void block(const Block& statements) {
    for (const kir::Stmt& s : statements) {
      std::visit([&](const auto& statement) { run(statement); },
                 static_cast<const kir::Stmt::variant&>(s));
    }
  }

  void run(const kir::For& loop) {
    const int64_t begin = value(loop.begin).i, end = value(loop.end).i;
    for (int64_t i = begin; i < end; ++i) {
      vars_[loop.var] = i;
      if (loop.kind == kir::For::Kind::vector) lane_ = (i - begin) % lanes_;
      block(*loop.body);
    }
    if (loop.kind == kir::For::Kind::vector) lane_ = 0;
  }

  void run(const kir::Let& let) { lets_[let.id] = value(let.value); }

  void run(const kir::Accumulator& acc) {
    int64_t count = acc.per_lane ? lanes_ : 1;
    for (int64_t d : acc.dims) count *= d;
    Number start;
    const double infinity = std::numeric_limits<double>::infinity();
    if (acc.combine == Combine::prod) {
      start = {1, 1};
    } else if (acc.combine != Combine::sum) {
      const bool least = acc.combine != Combine::min;
      start = is_float(acc.dtype) ? Number{least ? -infinity : infinity, 0}
                                  : integer(acc.dtype, extreme(acc.dtype, least));
    }
    const auto n = static_cast<size_t>(count);
    Accumulator& to = accs_[acc.id];
    to.decl = &acc;
    to.values.assign(n, start);
    to.argmax_indices.assign(n, 0);
  }

  static int64_t extreme(DType dtype, bool least) {
    switch (dtype) {
      case DType::u8:
        return least ? 0 : 255;
      case DType::i8:
        return least ? -128 : 127;
      case DType::boolean:
        return !least;
      case DType::i32:
        return least ? INT32_MIN : INT32_MAX;
      default:
        return least ? INT64_MIN : INT64_MAX;
    }
  }

  size_t place(const Accumulator& acc, const std::vector<Expr>& index, int64_t lane) {
    int64_t flat = acc.decl->per_lane ? lane : 0;
    for (size_t d = 0; d < index.size(); ++d) flat = flat * acc.decl->dims[d] + value(index[d]).i;
    return static_cast<size_t>(flat);
  }

  static bool above(DType dtype, Number a, Number b) {
    if (!is_float(dtype)) return a.i > b.i;
    return a.f > b.f || (std::isnan(a.f) && !std::isnan(b.f));
  }

  void combine(const Accumulator& acc, Number& value, int64_t& argmax_index, Number other,
               int64_t other_index) {
    const DType dtype = acc.decl->dtype;
    switch (acc.decl->combine) {
      case Combine::sum:
        value = is_float(dtype) ? real(dtype, value.f + other.f)
                                : integer(dtype, arithmetic(ScalarOp::add, value.i, other.i));
        return;
      case Combine::prod:
        value = is_float(dtype) ? real(dtype, value.f * other.f)
                                : integer(dtype, arithmetic(ScalarOp::mul, value.i, other.i));
        return;
      case Combine::argmax: {
        const bool tie = !above(dtype, value, other) && !above(dtype, other, value);
        if (above(dtype, other, value) || (tie && other_index < argmax_index)) {
          value = other;
          argmax_index = other_index;
        }
        return;
      }
      default: {
        const ScalarOp op = acc.decl->combine == Combine::max ? ScalarOp::max : ScalarOp::min;
        value = is_float(dtype) ? Number{arithmetic(op, value.f, other.f), 0}
                                : Number{0, arithmetic(op, value.i, other.i)};
      }
    }
  }

  void run(const kir::Accumulate& statement) {
    operations += is_float(statement.value.dtype()) ? 1 : 0;
    Accumulator& acc = accs_.at(statement.accumulator_id);
    const size_t at = place(acc, statement.index, lane_);
    const int64_t argmax_index = statement.argmax_index ? value(statement.argmax_index).i : 0;
    const Expr& term = statement.value;
    if (term.op() == ScalarOp::product && acc.decl->combine == Combine::sum) {
      Number& sum = acc.values.at(at);
      sum = fma(term.dtype(), value(term.args()[0]), value(term.args()[1]), sum);
      return;
    }
    combine(acc, acc.values.at(at), acc.argmax_indices.at(at), value(term), argmax_index);
  }

  void run(const kir::StoreTo& store) {
    if (store.mask && !value(store.mask).i) return;
    const kir::Buffer& buffer = kernel_.buffers.at(static_cast<size_t>(store.buffer));
    const Number v = cast(value(store.value), store.value.dtype(), buffer.dtype);
    write(memory(store.buffer), buffer.dtype, inside(buffer, value(store.offset).i), v);
  }

  void run(const kir::Prefetch&) {}

  void run(const kir::If& statement) {
    if (value(statement.condition).i) block(*statement.body);
  }

  void* memory(int64_t buffer) const { return buffers_[static_cast<size_t>(buffer)]; }

  int64_t inside(const kir::Buffer& buffer, int64_t offset) const {
    if (offset >= 0 && offset < buffer.elements.at(batch_)) return offset;
    throw InternalError("kernel " + kernel_.name + " leaves buffer " + buffer.name + " at " +
                        std::to_string(offset));
  }

  Number load(const ExprNode& n) {
    const kir::Buffer& buffer = kernel_.buffers.at(static_cast<size_t>(n.ivalue));
    if (n.args.size() > 1 && !value(n.args[1]).i) {
      return cast({n.fvalue, 0}, DType::f64, buffer.dtype);
    }
    return read(memory(n.ivalue), buffer.dtype, inside(buffer, value(n.args[0]).i));
  }

  Number accumulated(const ExprNode& n, DType dtype, int64_t lane) {
    const Accumulator& acc = accs_.at(n.ivalue);
    const size_t at = place(acc, n.args, lane);
    const bool argmax_index = acc.decl->combine == Combine::argmax && dtype != acc.decl->dtype;
    return argmax_index ? Number{0, acc.argmax_indices.at(at)} : acc.values.at(at);
  }

  /// Halves combined lane by lane, as the contract of ScalarOp::lanes says.
  Number reduce_lanes(const ExprNode& n, DType dtype) {
    Accumulator& acc = accs_.at(n.ivalue);
    if (!acc.decl->per_lane) return accumulated(n, dtype, 0);
    std::vector<Number> values;
    std::vector<int64_t> argmax_indices;
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const size_t at = place(acc, n.args, lane);
      values.push_back(acc.values.at(at));
      argmax_indices.push_back(acc.argmax_indices.at(at));
    }
    for (size_t width = values.size() / 2; width >= 1; width /= 2) {
      for (size_t i = 0; i < width; ++i) {
        combine(acc, values[i], argmax_indices[i], values[i + width], argmax_indices[i + width]);
      }
    }
    const bool argmax_index = acc.decl->combine == Combine::argmax && dtype != acc.decl->dtype;
    return argmax_index ? Number{0, argmax_indices[0]} : values[0];
  }

  Number value(const Expr& e) {
    const ExprNode& n = e.node();
    switch (n.op) {
      case ScalarOp::constant:
        return is_float(n.dtype) ? real(n.dtype, n.fvalue) : Number{0, n.ivalue};
      case ScalarOp::var:
        return {0, vars_.at(n.ivalue)};
      case ScalarOp::batch:
        return {0, batch_};
      case ScalarOp::let:
        return lets_.at(n.ivalue);
      case ScalarOp::load:
        return load(n);
      case ScalarOp::acc:
        return accumulated(n, n.dtype, lane_);
      case ScalarOp::lanes:
        return reduce_lanes(n.args[0].node(), n.dtype);
      case ScalarOp::select:
        return value(n.args[value(n.args[0]).i ? 1 : 2]);
      case ScalarOp::cast:
        return cast(value(n.args[0]), n.args[0].dtype(), n.dtype);
      case ScalarOp::fma:
        return fma(n.dtype, value(n.args[0]), value(n.args[1]), value(n.args[2]));
      case ScalarOp::philox: {
        int64_t in[4];
        for (size_t i = 0; i < 4; ++i) in[i] = value(n.args[i]).i;
        return {0, philox_bits(in[0], in[1], in[2], in[3])};
      }
      default:
        operations += is_float(n.args[0].dtype()) ? 1 : 0;
        return n.args.size() == 1 ? unary(e) : binary(e);
    }
  }

  Number unary(const Expr& e) {
    const DType dtype = e.args()[0].dtype();
    const Number x = value(e.args()[0]);
    switch (e.op()) {
      case ScalarOp::neg:
        return is_float(dtype) ? Number{-x.f, 0} : integer(dtype, -x.i);
      case ScalarOp::abs:
        return is_float(dtype) ? Number{std::fabs(x.f), 0} : integer(dtype, x.i < 0 ? -x.i : x.i);
      case ScalarOp::logical_not:
        return {0, !x.i};
      case ScalarOp::isfinite:
        return {0, !is_float(dtype) || std::isfinite(x.f)};
      default:
        return is_float(dtype) ? real(dtype, apply_elementary(e.op(), x.f)) : x;
    }
  }

  Number binary(const Expr& e) {
    const DType dtype = e.args()[0].dtype();
    const Number a = value(e.args()[0]), b = value(e.args()[1]);
    switch (e.op()) {
      case ScalarOp::logical_and:
        return {0, a.i && b.i};
      case ScalarOp::logical_or:
        return {0, a.i || b.i};
      case ScalarOp::eq:
      case ScalarOp::ne:
      case ScalarOp::lt:
      case ScalarOp::le:
      case ScalarOp::gt:
      case ScalarOp::ge:
        return {0, is_float(dtype) ? compare(e.op(), a.f, b.f) : compare(e.op(), a.i, b.i)};
      default:
        break;
    }
    if (is_float(dtype)) return real(dtype, arithmetic(e.op(), a.f, b.f));
    return integer(dtype, arithmetic(e.op(), a.i, b.i));
  }

  const kir::Kernel& kernel_;
  std::span<void* const> buffers_;
  const int64_t batch_, lanes_;
  int64_t lane_ = 0;
  ById<int64_t> vars_;
  ById<Number> lets_;
  ById<Accumulator> accs_;
};

}  // namespace

double interpret(const kir::Kernel& kernel, std::span<void* const> buffers, int64_t batch) {
  Interpreter interpreter(kernel, buffers, batch);
  interpreter.run();
  return interpreter.operations;
}

}  // namespace fluid::testing
