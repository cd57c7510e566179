#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/llvm_headers.h"

namespace fluid::emit {

/// IRBuilder helpers for the elementary functions. The helpers operate on one float type, scalar or
/// vector, and on the integer type of the same width.
class MathOps {
 public:
  using Value = llvm::Value;

  /// An integral value, in both representations.
  struct Exponent {
    Value* as_float;
    Value* as_int;
  };

  MathOps(llvm::IRBuilder<>& b, llvm::Type* type, bool avx512 = false)
      : b_(b),
        type_(type),
        avx512_(avx512),
        wide_(type->getScalarType()->isDoubleTy()),
        ints_(type->getWithNewType(wide_ ? b.getInt64Ty() : b.getInt32Ty())) {}

  /// Whether the float type is f64.
  bool wide() const { return wide_; }
  /// Returns `narrow` if the float type is f32, and `wide` if the float type is f64.
  template <class T>
  T by_width(T narrow, T wide) const {
    return wide_ ? wide : narrow;
  }
  std::span<const double> table_by_width(std::span<const double> narrow,
                                         std::span<const double> wide) const {
    return wide_ ? wide : narrow;
  }
  int64_t mantissa_bits() const { return by_width<int64_t>(23, 52); }
  int64_t mantissa_mask() const { return (int64_t{1} << mantissa_bits()) - 1; }
  double smallest_normal() const { return by_width(0x1p-126, 0x1p-1022); }
  /// Adding this constant to x rounds x to an integer and puts this integer into the low bits of
  /// the sum. Valid for |x| < 2^22 (f32) or 2^51 (f64).
  double round_magic() const { return by_width(0x1.8p23, 0x1.8p52); }

  Value* constant(double v) { return llvm::ConstantFP::get(type_, v); }
  Value* add(Value* a, Value* b) { return b_.CreateFAdd(a, b); }
  Value* sub(Value* a, Value* b) { return b_.CreateFSub(a, b); }
  Value* mul(Value* a, Value* b) { return b_.CreateFMul(a, b); }
  Value* div(Value* a, Value* b) { return b_.CreateFDiv(a, b); }
  Value* neg(Value* a) { return b_.CreateFNeg(a); }
  Value* abs(Value* a) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a); }
  Value* sqrt(Value* a) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a); }
  Value* floor(Value* a) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a); }
  Value* copy_sign(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  /// a * b + c, with a single rounding if the target has fma.
  Value* fma(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {type_}, {a, b, c});
  }
  /// a * b + c, with a single rounding on every target.
  Value* exact_fma(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c});
  }
  /// Evaluates a polynomial by Horner's rule. `coefficients` start with the constant term.
  Value* polynomial(std::span<const double> coefficients, Value* x) {
    Value* y = constant(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) y = fma(y, x, constant(coefficients[i]));
    return y;
  }
  /// Clamps x to [low, high]; NaN stays NaN.
  Value* clamp(Value* x, double low, double high) {
    return at_most(select(lt(x, constant(low)), constant(low), x), high);
  }
  /// Returns the smaller of x and `high`; NaN stays NaN.
  Value* at_most(Value* x, double high) { return select(lt(constant(high), x), constant(high), x); }

  Value* eq(Value* a, Value* b) { return b_.CreateFCmpOEQ(a, b); }
  Value* ne(Value* a, Value* b) { return b_.CreateFCmpUNE(a, b); }
  Value* lt(Value* a, Value* b) { return b_.CreateFCmpOLT(a, b); }
  Value* le(Value* a, Value* b) { return b_.CreateFCmpOLE(a, b); }
  Value* logical_and(Value* a, Value* b) { return b_.CreateAnd(a, b); }
  Value* logical_or(Value* a, Value* b) { return b_.CreateOr(a, b); }
  Value* logical_not(Value* a) { return b_.CreateNot(a); }
  Value* xnor(Value* a, Value* b) { return logical_not(b_.CreateXor(a, b)); }
  Value* select(Value* c, Value* a, Value* b) { return b_.CreateSelect(c, a, b); }

  Value* int_constant(int64_t v) {
    return llvm::ConstantInt::get(ints_, static_cast<uint64_t>(v), true);
  }
  Value* to_bits(Value* a) { return b_.CreateBitCast(a, ints_); }
  Value* from_bits(Value* a) { return b_.CreateBitCast(a, type_); }
  Value* iadd(Value* a, Value* b) { return b_.CreateAdd(a, b); }
  Value* isub(Value* a, Value* b) { return b_.CreateSub(a, b); }
  Value* imul(Value* a, Value* b) { return b_.CreateMul(a, b); }
  Value* imax(Value* a, Value* b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }
  Value* iand(Value* a, int64_t mask) { return b_.CreateAnd(a, int_constant(mask)); }
  Value* ior(Value* a, Value* b) { return b_.CreateOr(a, b); }
  Value* ashr(Value* a, int64_t by) { return b_.CreateAShr(a, int_constant(by)); }
  Value* lshr(Value* a, int64_t by) { return b_.CreateLShr(a, int_constant(by)); }
  Value* shl(Value* a, int64_t by) { return b_.CreateShl(a, int_constant(by)); }
  Value* unsigned_less(Value* a, Value* b) { return b_.CreateICmpULT(a, b); }
  Value* test_bits(Value* a, int64_t mask) {
    return b_.CreateICmpNE(iand(a, mask), int_constant(0));
  }
  Value* bool_to_int(Value* condition) { return b_.CreateZExt(condition, ints_); }
  Value* to_float(Value* a) { return b_.CreateSIToFP(a, type_); }
  Value* to_float_unsigned(Value* a) { return b_.CreateUIToFP(a, type_); }
  /// Returns the high 64 bits of the 128-bit product of unsigned 64-bit integers.
  Value* mul_high_unsigned(Value* a, Value* b) {
    llvm::Type* twice = type_->getWithNewType(b_.getInt128Ty());
    Value* product = b_.CreateMul(b_.CreateZExt(a, twice), b_.CreateZExt(b, twice));
    return b_.CreateTrunc(b_.CreateLShr(product, 64), ints_);
  }
  /// Funnel shift: returns the high word of (high : low) << by.
  Value* funnel_shift_left(Value* high, Value* low, Value* by) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fshl, {ints_}, {high, low, by});
  }

  /// 2^n, for n in the exponent range of normal numbers.
  Value* pow2(Value* n) {
    return from_bits(shl(iadd(n, int_constant(by_width(127, 1023))), mantissa_bits()));
  }
  /// Returns round(x), given `shifted` = x + round_magic().
  Exponent round(Value* shifted) {
    Value* magic = constant(round_magic());
    return {sub(shifted, magic), isub(to_bits(shifted), to_bits(magic))};
  }
  /// y * 2^n, without AVX-512 computed in two steps, so that the result may be subnormal or
  /// infinite.
  Value* ldexp(Value* y, const Exponent& n) {
    if (const llvm::Intrinsic::ID scale = scalef()) return emit_scalef(scale, y, n.as_float);
    Value* first = ashr(n.as_int, 1);
    return mul(mul(y, pow2(first)), pow2(isub(n.as_int, first)));
  }

  /// Loads table[index] from a constant table of 64-bit words.
  Value* table_lookup(std::span<const uint64_t> table, Value* index);

  /// Emits a branch that runs the code of `compute` only if `condition` is true in some lane.
  /// Returns the values from `compute` if the branch is taken, else `otherwise`.
  template <class Compute>
  std::vector<Value*> branch_if_any(Value* condition, const std::vector<Value*>& otherwise,
                                    const Compute& compute) {
    if (condition->getType()->isVectorTy()) condition = b_.CreateOrReduce(condition);
    llvm::BasicBlock* entry = b_.GetInsertBlock();
    llvm::Function* function = entry->getParent();
    auto* rare = llvm::BasicBlock::Create(b_.getContext(), "rare", function);
    auto* join = llvm::BasicBlock::Create(b_.getContext(), "join", function);
    b_.CreateCondBr(condition, rare, join);
    b_.SetInsertPoint(rare);
    const std::vector<Value*> computed = compute();
    llvm::BasicBlock* rare_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    std::vector<Value*> merged;
    for (size_t i = 0; i < otherwise.size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(otherwise[i]->getType(), 2);
      phi->addIncoming(otherwise[i], entry);
      phi->addIncoming(computed[i], rare_end);
      merged.push_back(phi);
    }
    return merged;
  }

  /// Emits a loop that replaces x by `step(x)` while `condition(x)` is true in some lane. Returns
  /// the last x.
  template <class Condition, class Step>
  Value* repeat_while_any(const Condition& condition, const Step& step, Value* x) {
    llvm::BasicBlock* entry = b_.GetInsertBlock();
    llvm::Function* function = entry->getParent();
    auto* header = llvm::BasicBlock::Create(b_.getContext(), "while", function);
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "repeat", function);
    auto* done = llvm::BasicBlock::Create(b_.getContext(), "done", function);
    b_.CreateBr(header);
    b_.SetInsertPoint(header);
    llvm::PHINode* current = b_.CreatePHI(x->getType(), 2);
    current->addIncoming(x, entry);
    Value* active = condition(current);
    if (active->getType()->isVectorTy()) active = b_.CreateOrReduce(active);
    b_.CreateCondBr(active, body, done);
    b_.SetInsertPoint(body);
    Value* next = step(current);
    current->addIncoming(next, b_.GetInsertBlock());
    b_.CreateBr(header);
    b_.SetInsertPoint(done);
    return current;
  }

 private:
  /// Returns the intrinsic of AVX-512 that multiplies vectors of the float type by powers of 2, or
  /// not_intrinsic if there is none.
  llvm::Intrinsic::ID scalef() const {
    if (!avx512_ || !type_->isVectorTy()) return llvm::Intrinsic::not_intrinsic;
    switch (type_->getPrimitiveSizeInBits().getFixedValue()) {
      case 512:
        return wide_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                     : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
      case 256:
        return wide_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                     : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256;
      default:
        return llvm::Intrinsic::not_intrinsic;
    }
  }
  Value* emit_scalef(llvm::Intrinsic::ID intrinsic, Value* y, Value* n) {
    const uint64_t lanes = llvm::cast<llvm::FixedVectorType>(type_)->getNumElements();
    Value* all = llvm::Constant::getAllOnesValue(b_.getIntNTy(lanes < 8 ? 8 : unsigned(lanes)));
    std::vector<Value*> operands = {y, n, y, all};
    constexpr int kCurrentRounding = 4;
    if (type_->getPrimitiveSizeInBits() == 512) operands.push_back(b_.getInt32(kCurrentRounding));
    return b_.CreateIntrinsic(intrinsic, operands);
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  bool avx512_;
  bool wide_;
  llvm::Type* ints_;
};

inline llvm::Value* MathOps::table_lookup(std::span<const uint64_t> table, Value* index) {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  llvm::Constant* data = llvm::ConstantDataArray::get(
      b_.getContext(), llvm::ArrayRef<uint64_t>(table.data(), table.size()));
  llvm::GlobalVariable* global = module.getGlobalVariable("fluid_two_over_pi", true);
  if (!global) {
    global = new llvm::GlobalVariable(module, data->getType(), true,
                                      llvm::GlobalValue::PrivateLinkage, data, "fluid_two_over_pi");
  }
  llvm::Value* element = b_.CreateGEP(b_.getInt64Ty(), global, index);
  if (!ints_->isVectorTy()) return b_.CreateAlignedLoad(ints_, element, llvm::Align(8));
  auto lanes = llvm::cast<llvm::FixedVectorType>(ints_)->getNumElements();
  Value* all = b_.CreateVectorSplat(lanes, b_.getTrue());
  return b_.CreateMaskedGather(ints_, element, llvm::Align(8), all);
}

/// A double-double number: the unevaluated sum high + low, where |low| is below an ulp of high.
struct DoubleDouble {
  llvm::Value* high;
  llvm::Value* low;
};

/// Knuth's two-sum: returns a + b, exact for any a and b.
inline DoubleDouble two_sum(MathOps& m, llvm::Value* a, llvm::Value* b) {
  llvm::Value* high = m.add(a, b);
  llvm::Value* part = m.sub(high, a);
  return {high, m.add(m.sub(a, m.sub(high, part)), m.sub(b, part))};
}

/// Evaluates `f` in double precision and converts the result to the type of `x`.
template <class F>
llvm::Value* in_double(llvm::IRBuilder<>& b, llvm::Value* x, const F& f) {
  llvm::Type* narrow = x->getType();
  llvm::Type* wide = narrow->getWithNewType(b.getDoubleTy());
  MathOps m(b, wide);
  return b.CreateFPCast(f(m, wide), narrow);
}

}  // namespace fluid::emit
