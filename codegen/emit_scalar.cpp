#include <algorithm>

#include "codegen/emit.h"
#include "codegen/emit_math.h"
#include "ir/error.h"

namespace fluid::emit {
llvm::Type* KernelEmitter::scalar_type(DType dtype) {
  switch (compute_dtype(dtype)) {
    case DType::f64:
      return b_.getDoubleTy();
    case DType::f32:
      return b_.getFloatTy();
    case DType::i64:
      return b_.getInt64Ty();
    case DType::i32:
      return b_.getInt32Ty();
    case DType::u8:
    case DType::i8:
      return b_.getInt8Ty();
    default:
      return b_.getInt1Ty();
  }
}

llvm::Value* KernelEmitter::splat(llvm::Value* v) {
  if (v->getType()->isVectorTy()) return v;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), v);
}

llvm::Value* KernelEmitter::splat_like(llvm::Value* v, llvm::Value* shape) {
  return shape->getType()->isVectorTy() ? splat(v) : v;
}

void KernelEmitter::match_widths(llvm::Value*& a, llvm::Value*& b) {
  a = splat_like(a, b);
  b = splat_like(b, a);
}

llvm::Type* KernelEmitter::type_like(llvm::Type* scalar, llvm::Value* shape) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector ? llvm::FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

llvm::Value* KernelEmitter::emit_expr(const Expr& e) {
  auto& values = in_first_lane_ ? first_lane_values_ : values_;
  if (auto found = values.find(e.get()); found != values.end()) return found->second;
  llvm::Value* value = emit_node(e);
  values[e.get()] = value;
  return value;
}

llvm::Value* KernelEmitter::emit_first_lane(const Expr& e) {
  if (!vector_ || in_first_lane_) return emit_expr(e);
  in_first_lane_ = true;
  llvm::Value* value = emit_expr(e);
  in_first_lane_ = false;
  return value;
}

llvm::Value* KernelEmitter::emit_node(const Expr& e) {
  const ExprNode& n = e.node();
  switch (n.op) {
    case ScalarOp::constant:
      return emit_constant(n);
    case ScalarOp::batch:
      return batch_;
    case ScalarOp::var: {
      if (vector_ && n.ivalue == vector_->var) {
        return in_first_lane_ ? vector_->base : vector_->values;
      }
      auto found = vars_.find(n.ivalue);
      check(found != vars_.end(),
            [&] { return "kernel " + kernel_.name + ": variable is not in scope"; });
      return found->second;
    }
    case ScalarOp::let: {
      auto found = lets_.find(n.ivalue);
      check(found != lets_.end(),
            [&] { return "kernel " + kernel_.name + ": name is not in scope"; });
      const LetBinding& let = found->second;
      return in_first_lane_ && let.value->getType()->isVectorTy() ? emit_expr(let.expr) : let.value;
    }
    case ScalarOp::load:
      return emit_load(e);
    case ScalarOp::acc: {
      const AccumulatorBinding& acc = find_accumulator(n.ivalue);
      check(!acc.varying || vector_,
            [&] { return "kernel " + kernel_.name + ": lanes are read outside a loop"; });
      const bool argmax_index = reads_argmax_index(acc, n.dtype);
      llvm::Type* type =
          argmax_index ? acc.argmax_index->getAllocatedType()->getArrayElementType() : acc.type;
      llvm::Value* value = b_.CreateLoad(type, acc_address(acc, n.args, argmax_index));
      return argmax_index ? emit_cast(value, DType::i64, n.dtype) : value;
    }
    case ScalarOp::lanes:
      return emit_lane_reduction(e);
    case ScalarOp::philox:
      return emit_philox(e);
    case ScalarOp::select: {
      llvm::Value* condition = emit_expr(n.args[0]);
      llvm::Value *a = emit_expr(n.args[1]), *b = emit_expr(n.args[2]);
      match_widths(a, b);
      if (condition->getType()->isVectorTy()) a = splat(a), b = splat(b);
      return b_.CreateSelect(condition, a, b);
    }
    case ScalarOp::cast:
      return emit_cast(emit_expr(n.args[0]), n.args[0].dtype(), n.dtype);
    case ScalarOp::fma:
      return emit_fma(emit_expr(n.args[0]), emit_expr(n.args[1]), emit_expr(n.args[2]));
    default:
      return n.args.size() == 2 ? emit_binary(e) : emit_unary(e);
  }
}

llvm::Value* KernelEmitter::emit_constant(const ExprNode& n) {
  llvm::Type* type = scalar_type(n.dtype);
  if (is_float(n.dtype)) return llvm::ConstantFP::get(type, n.fvalue);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(n.ivalue), true);
}

llvm::Value* KernelEmitter::emit_binary(const Expr& e) {
  const ExprNode& n = e.node();
  if (auto known = fold_comparison(e)) return b_.getInt1(*known);
  llvm::Value *a = emit_expr(n.args[0]), *b = emit_expr(n.args[1]);
  const DType dtype = n.args[0].dtype();
  check(dtype == n.args[1].dtype(),
        [&] { return "kernel " + kernel_.name + ": operands of two dtypes"; });
  match_widths(a, b);
  const bool floats = is_float(dtype);
  switch (n.op) {
    case ScalarOp::add:
      return floats ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case ScalarOp::sub:
      return floats ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case ScalarOp::mul:
    case ScalarOp::product:
      return floats ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case ScalarOp::div:
      return floats ? b_.CreateFDiv(a, b) : emit_integer_division(e, a, b);
    case ScalarOp::floordiv:
      return emit_integer_division(e, a, b);
    case ScalarOp::mod:
      return floats ? emit_float_mod(b_, a, b) : emit_integer_division(e, a, b);
    case ScalarOp::min:
      return emit_min_max(false, dtype, a, b);
    case ScalarOp::max:
      return emit_min_max(true, dtype, a, b);
    case ScalarOp::pow:
      return emit_pow(b_, a, b);
    case ScalarOp::logical_and:
      return b_.CreateAnd(a, b);
    case ScalarOp::logical_or:
      return b_.CreateOr(a, b);
    default:
      return emit_compare(n.op, dtype, a, b);
  }
}

llvm::Value* KernelEmitter::emit_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  match_widths(a, b);
  match_widths(b, c);
  match_widths(a, b);
  return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

llvm::Value* KernelEmitter::emit_compare(ScalarOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  using P = llvm::CmpInst::Predicate;
  struct Row {
    ScalarOp op;
    P floats, signed_ints, unsigned_ints;
  };
  static constexpr Row kRows[] = {
      {ScalarOp::eq, P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},
      {ScalarOp::ne, P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
      {ScalarOp::lt, P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT},
      {ScalarOp::le, P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
      {ScalarOp::gt, P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT},
      {ScalarOp::ge, P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE},
  };
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    return b_.CreateCmp(is_float(dtype)            ? row.floats
                        : is_signed_integer(dtype) ? row.signed_ints
                                                   : row.unsigned_ints,
                        a, b);
  }
  throw InternalError("kernel " + kernel_.name + ": a scalar that the emitter does not know");
}

llvm::Value* KernelEmitter::emit_min_max(bool maximum, DType dtype, llvm::Value* a,
                                         llvm::Value* b) {
  // `a > b ? a : b` is NaN if b is NaN. A second select returns `a` if `a` is NaN; LLVM folds the
  // second select if `a` is constant.
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  llvm::Value* wins = emit_compare(maximum ? ScalarOp::gt : ScalarOp::lt, dtype, a, b);
  llvm::Value* result = b_.CreateSelect(wins, a, b);
  if (!is_float(dtype)) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, result);
}

/// Emits an integer division that rounds down (floordiv), or the remainder of that division (mod).
/// If the divisor is 0, the result is 0 and nothing traps.
llvm::Value* KernelEmitter::emit_integer_division(const Expr& e, llvm::Value* a, llvm::Value* b) {
  const bool modulo = e.op() == ScalarOp::mod;
  check(!is_float(e.dtype()), [&] { return "kernel " + kernel_.name + ": floordiv of floats"; });
  auto bounds = range(e.args()[0]);
  auto divisor = range(e.args()[1]);
  if (divisor && divisor->low > 0 && bounds && bounds->low >= 0) {
    const bool small = std::max(bounds->high, divisor->high) <= UINT32_MAX;
    llvm::Type* wide = a->getType();
    llvm::Type* type = small ? type_like(b_.getInt32Ty(), a) : wide;
    a = b_.CreateTrunc(a, type);
    b = b_.CreateTrunc(b, type);
    return b_.CreateZExt(modulo ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b), wide);
  }
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (!is_signed_integer(e.dtype())) {
    llvm::Value* safe = b_.CreateSelect(by_zero, one, b);
    llvm::Value* result = modulo ? b_.CreateURem(a, safe) : b_.CreateUDiv(a, safe);
    return b_.CreateSelect(by_zero, zero, result);
  }
  // INT_MIN / -1 traps, so division by -1 becomes a negation.
  llvm::Value* by_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
  llvm::Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, b);
  llvm::Value* quotient = b_.CreateSDiv(a, safe);
  llvm::Value* remainder = b_.CreateSub(a, b_.CreateMul(quotient, safe));
  llvm::Value* down = b_.CreateAnd(b_.CreateICmpNE(remainder, zero),
                                   b_.CreateICmpSLT(b_.CreateXor(remainder, safe), zero));
  if (modulo) {
    llvm::Value* result = b_.CreateSelect(down, b_.CreateAdd(remainder, safe), remainder);
    return b_.CreateSelect(by_zero, zero, result);
  }
  llvm::Value* result = b_.CreateSelect(down, b_.CreateSub(quotient, one), quotient);
  result = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), result);
  return b_.CreateSelect(by_zero, zero, result);
}

llvm::Value* KernelEmitter::emit_unary(const Expr& e) {
  const Expr& arg = e.args().at(0);
  llvm::Value* x = emit_expr(arg);
  const bool floats = is_float(arg.dtype());
  auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  switch (e.op()) {
    case ScalarOp::neg:
      return floats ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case ScalarOp::logical_not:
      return b_.CreateNot(x);
    case ScalarOp::abs:
      if (floats) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      if (!is_signed_integer(arg.dtype())) return x;
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse());
    case ScalarOp::sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case ScalarOp::rsqrt:
      return b_.CreateFDiv(number(1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case ScalarOp::floor:
      return floats ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x) : x;
    case ScalarOp::isfinite: {
      if (!floats) return llvm::ConstantInt::getTrue(type_like(b_.getInt1Ty(), x));
      llvm::Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      return b_.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(x->getType()));
    }
    default:
      return emit_elementary_function(b_, e.op(), x, avx512_);
  }
}

llvm::Value* KernelEmitter::emit_cast(llvm::Value* v, DType from, DType to) {
  from = compute_dtype(from);
  to = compute_dtype(to);
  if (from == to) return v;
  llvm::Type* type = type_like(scalar_type(to), v);
  if (to == DType::boolean) {
    llvm::Value* zero = llvm::Constant::getNullValue(v->getType());
    return is_float(from) ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
  }
  if (is_float(from) && is_float(to)) {
    return b_.CreateFPCast(v, type);
  }
  if (is_float(from) && size_of(to) == 1) return emit_float_to_byte(v, to);
  if (is_float(from)) {  // saturates and maps NaN to 0; a plain fptosi could return poison
    auto id = is_signed_integer(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
  }
  if (is_float(to))
    return is_signed_integer(from) ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  return b_.CreateIntCast(v, type, is_signed_integer(from));
}

/// Converts floats to i8 or u8: saturates and maps NaN to 0. Clamps first and converts through i32,
/// because LLVM's saturating conversions of vectors are scalar code on x86.
llvm::Value* KernelEmitter::emit_float_to_byte(llvm::Value* v, DType to) {
  const auto number = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
  llvm::Value* low = number(is_signed_integer(to) ? -128 : 0);
  llvm::Value* high = number(is_signed_integer(to) ? 127 : 255);
  llvm::Value* is_nan = b_.CreateFCmpUNO(v, v);
  v = b_.CreateSelect(b_.CreateFCmpOGT(v, low), v, low);
  v = b_.CreateSelect(b_.CreateFCmpOLT(v, high), v, high);
  v = b_.CreateSelect(is_nan, number(0), v);
  return b_.CreateTrunc(b_.CreateFPToSI(v, type_like(b_.getInt32Ty(), v)),
                        type_like(scalar_type(to), v));
}

/// Philox4x32-10 (Salmon et al., SC'11). Returns word 0 for the counter {index low, index high,
/// counter, stream} and the key `seed`. 32-bit words are kept in 64-bit lanes, where their products
/// are exact.
llvm::Value* KernelEmitter::emit_philox(const Expr& e) {
  constexpr int kRounds = 10;
  llvm::Value* inputs[4];
  for (size_t i = 0; i < 4; ++i) inputs[i] = emit_expr(e.args().at(i));
  for (llvm::Value*& v : inputs) {
    for (llvm::Value* other : inputs) v = splat_like(v, other);
  }
  auto [seed, counter, stream, index] = inputs;
  auto word = [&](uint64_t v) { return llvm::ConstantInt::get(index->getType(), v); };
  auto low = [&](llvm::Value* v) { return b_.CreateAnd(v, word(0xffffffff)); };
  auto high = [&](llvm::Value* v) { return b_.CreateLShr(v, word(32)); };
  llvm::Value *c0 = low(index), *c1 = high(index), *c2 = low(counter), *c3 = low(stream);
  llvm::Value *k0 = low(seed), *k1 = high(seed);
  for (int round = 0; round < kRounds; ++round) {
    llvm::Value* p0 = b_.CreateMul(c0, word(0xD2511F53));
    llvm::Value* p1 = b_.CreateMul(c2, word(0xCD9E8D57));
    c0 = b_.CreateXor(b_.CreateXor(high(p1), c1), k0);
    c2 = b_.CreateXor(b_.CreateXor(high(p0), c3), k1);
    c1 = low(p1);
    c3 = low(p0);
    k0 = low(b_.CreateAdd(k0, word(0x9E3779B9)));
    k1 = low(b_.CreateAdd(k1, word(0xBB67AE85)));
  }
  return c0;
}

/// Whether reading an argmax accumulator as `dtype` yields the argmax index instead of the value.
/// The index and the value have different dtypes.
bool KernelEmitter::reads_argmax_index(const AccumulatorBinding& acc, DType dtype) {
  return acc.argmax_index && dtype != acc.decl->dtype;
}

/// Reduces the lanes of an accumulator to one value. Combines the lower half of the lanes with the
/// upper half until one lane is left.
llvm::Value* KernelEmitter::emit_lane_reduction(const Expr& e) {
  const Expr& source = e.args().at(0);
  const AccumulatorBinding& acc = find_accumulator(source.node().ivalue);
  const DType dtype = acc.decl->dtype;
  const std::vector<Expr>& index = source.args();
  llvm::Value* value = b_.CreateLoad(acc.type, acc_address(acc, index, false));
  llvm::Value* argmax_index = nullptr;
  if (acc.argmax_index) {
    llvm::Type* type = acc.argmax_index->getAllocatedType()->getArrayElementType();
    argmax_index = b_.CreateLoad(type, acc_address(acc, index, true));
  }
  const bool want_index = reads_argmax_index(acc, e.dtype());
  if (acc.varying) reduce_over_lanes(acc.decl->combine, dtype, value, argmax_index);
  if (acc.decl->per_lane && thread_group_size_ > 1)
    reduce_over_thread_group(acc.decl->combine, dtype, value, argmax_index);
  return want_index ? emit_cast(argmax_index, DType::i64, e.dtype()) : value;
}

void KernelEmitter::reduce_over_lanes(Combine kind, DType dtype, llvm::Value*& value,
                                      llvm::Value*& argmax_index) {
  auto half = [&](llvm::Value* v, int64_t width, bool upper) {
    std::vector<int> lanes;
    for (int64_t i = 0; i < width; ++i) lanes.push_back(static_cast<int>(upper ? width + i : i));
    return b_.CreateShuffleVector(v, lanes);
  };
  for (int64_t width = lanes_ / 2; width >= 1; width /= 2) {
    llvm::Value *a = half(value, width, false), *b = half(value, width, true);
    if (!argmax_index) {
      value = emit_combine(kind, dtype, a, b);
      continue;
    }
    llvm::Value *pa = half(argmax_index, width, false), *pb = half(argmax_index, width, true);
    llvm::Value* better = argmax_improves(dtype, b, pb, a, pa);
    value = b_.CreateSelect(better, b, a);
    argmax_index = b_.CreateSelect(better, pb, pa);
  }
  value = b_.CreateExtractElement(value, uint64_t{0});
  if (argmax_index) argmax_index = b_.CreateExtractElement(argmax_index, uint64_t{0});
}

}  // namespace fluid::emit
