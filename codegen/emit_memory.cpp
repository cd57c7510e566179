#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <bit>

#include "codegen/emit.h"
#include "codegen/gpu.h"
#include "ir/error.h"

namespace fluid::emit {
namespace {

// Maximum stride, in elements, of accesses by a vector load or store and a shuffle. Larger strides
// use gathers and scatters.
constexpr int64_t kMaxStride = 4;
// Maximum number of lanes on a CPU: a vector of 1-byte elements.
constexpr int64_t kMaxCpuLanes = kir::kVectorBytes;
// Maximum number of buffers whose addresses a GPU kernel keeps in registers.
constexpr size_t kMaxHeldAddresses = 16;

llvm::Align alignment(DType dtype) { return llvm::Align(static_cast<uint64_t>(size_of(dtype))); }

bool is_false(llvm::Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  return c && c->isNullValue();
}
bool is_true(llvm::Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  return c && c->isAllOnesValue();
}

bool fit_one_vector_load(const std::vector<int64_t>& steps) {
  const auto n = static_cast<int64_t>(steps.size());
  return std::ranges::all_of(steps, [&](int64_t s) { return s >= 0 && s < kMaxStride * n; });
}

/// Returns the enabled lane of a constant mask with exactly one enabled lane. Returns -1 for other
/// masks.
int only_lane(llvm::Value* mask) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (!constant) return -1;
  int only = -1;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  for (unsigned i = 0; i < lanes; ++i) {
    if (constant->getAggregateElement(i)->isNullValue()) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(i);
  }
  return only;
}

}  // namespace

const kir::Buffer& KernelEmitter::find_buffer(int64_t id) const {
  check(id >= 0 && id < static_cast<int64_t>(kernel_.buffers.size()),
        "kernel " + kernel_.name + ": no such buffer");
  return kernel_.buffers[static_cast<size_t>(id)];
}

/// Returns the LLVM type of elements in memory. f16, bf16 and bool are loaded and stored as
/// integers, because every target has masked integer accesses.
llvm::Type* KernelEmitter::storage_type(DType dtype) {
  if (is_half_precision(dtype)) return b_.getInt16Ty();
  return dtype == DType::boolean ? b_.getInt8Ty() : scalar_type(dtype);
}

llvm::Value* KernelEmitter::to_compute_type(llvm::Value* stored, DType dtype) {
  llvm::Type* f32 = type_like(b_.getFloatTy(), stored);
  if (dtype == DType::f16) {
    return b_.CreateFPExt(b_.CreateBitCast(stored, type_like(b_.getHalfTy(), stored)), f32);
  }
  if (dtype == DType::bf16) {
    llvm::Value* bits = b_.CreateZExt(stored, type_like(b_.getInt32Ty(), stored));
    return b_.CreateBitCast(b_.CreateShl(bits, 16), f32);
  }
  if (dtype != DType::boolean) return stored;
  return b_.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
}

llvm::Value* KernelEmitter::to_storage_type(llvm::Value* value, DType from, DType to) {
  value = emit_cast(value, from, to);
  if (to == DType::boolean) return b_.CreateZExt(value, type_like(b_.getInt8Ty(), value));
  if (!is_half_precision(to)) return value;
  llvm::Type* i16 = type_like(b_.getInt16Ty(), value);
  if (to == DType::f16) {
    return b_.CreateBitCast(b_.CreateFPTrunc(value, type_like(b_.getHalfTy(), value)), i16);
  }
  // Rounds f32 to bf16, to nearest even, with integer operations. Unlike the bf16 instructions of
  // x86, these operations keep subnormals.
  llvm::Value* bits = b_.CreateBitCast(value, type_like(b_.getInt32Ty(), value));
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
  llvm::Value* half = llvm::ConstantInt::get(bits->getType(), 0x7fff);
  llvm::Value* rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(odd, half)), 16);
  llvm::Value* quiet = b_.CreateOr(b_.CreateLShr(bits, 16), 0x40);
  return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded), i16);
}

llvm::Value* KernelEmitter::and_masks(llvm::Value* a, llvm::Value* b) {
  if (!a || !b) return a ? a : b;
  match_widths(a, b);
  return b_.CreateAnd(a, b);
}

/// Attaches the !alias.scope and !noalias metadata of `buffer` to a load or store.
template <class Access>
Access* KernelEmitter::attach_alias_scopes(Access* access, int64_t buffer) {
  const auto i = static_cast<size_t>(buffer);
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scopes_[i]);
  if (noalias_scopes_[i]->getNumOperands() > 0) {
    access->setMetadata(llvm::LLVMContext::MD_noalias, noalias_scopes_[i]);
  }
  return access;
}

/// Returns a copy of `value` that is made by inline assembly, which the optimizer cannot analyse.
llvm::Value* KernelEmitter::hide_from_optimizer(llvm::Value* value) {
  auto* type = llvm::FunctionType::get(b_.getInt64Ty(), {b_.getInt64Ty()}, false);
  const bool gpu = device_ == Device::gpu;
  auto* copy = gpu ? llvm::InlineAsm::get(type, "mov.b64 $0, $1;", "=l,l", false)
                   : llvm::InlineAsm::get(type, "", "=r,0", false);
  auto* same = b_.CreateCall(copy, value);
  same->setDoesNotAccessMemory();
  same->setDoesNotThrow();
  return same;
}

/// Returns the address of element `offset` of a buffer. In a GPU kernel with many buffers, each
/// address is computed where it is used. Otherwise the optimizer keeps all addresses in registers
/// across blocks, which leaves too few registers for values.
llvm::Value* KernelEmitter::element_address(int64_t buffer, llvm::Value* offset) {
  llvm::Type* type = storage_type(find_buffer(buffer).dtype);
  const bool many = device_ == Device::gpu && kernel_.buffers.size() > kMaxHeldAddresses;
  if (many && offset->getType()->isIntegerTy(64) && !llvm::isa<llvm::Constant>(offset)) {
    offset = hide_from_optimizer(offset);
  }
  return b_.CreateGEP(type, buffers_[static_cast<size_t>(buffer)], offset);
}

llvm::Value* KernelEmitter::lane_addresses(int64_t buffer, const Expr& offset) {
  llvm::Value* offsets = splat(emit_expr(offset));
  const Dim& elements = find_buffer(buffer).elements;
  // 32-bit offsets of gathers and scatters take half as many registers as 64-bit offsets.
  if (!elements.batch && elements.size <= INT32_MAX) {
    offsets = b_.CreateTrunc(offsets, type_like(b_.getInt32Ty(), offsets));
  }
  return element_address(buffer, offsets);
}

/// Returns a vector `stride` times as wide as `lanes`. Element i * stride of the vector is lane i
/// of `lanes`. All other elements are zero.
llvm::Value* KernelEmitter::spread_lanes(llvm::Value* lanes, int64_t stride) {
  std::vector<int> from(static_cast<size_t>(lanes_ * stride), static_cast<int>(lanes_));
  for (int64_t i = 0; i < lanes_; ++i) from[static_cast<size_t>(i * stride)] = static_cast<int>(i);
  return b_.CreateShuffleVector(lanes, llvm::Constant::getNullValue(lanes->getType()), from);
}

llvm::Value* KernelEmitter::emit_load(const Expr& e) {
  const ExprNode& n = e.node();
  const kir::Buffer& buffer = find_buffer(n.ivalue);
  llvm::Value* guard = n.args.size() > 1 ? emit_expr(n.args[1]) : nullptr;
  if (guard && is_true(guard)) guard = nullptr;
  const bool in_lanes = vector_ && !in_first_lane_;
  const bool uniform_offset = !in_lanes || is_uniform(n.args[0]);
  if (!guard && uniform_offset) return emit_scalar_load(e, nullptr);

  llvm::Value* value = nullptr;
  bool zeros = false;  // whether the fallback and all masked-off lanes of `value` are zero
  llvm::Value* fallback = llvm::ConstantFP::get(b_.getDoubleTy(), n.fvalue);
  fallback = emit_cast(fallback, DType::f64, buffer.dtype);
  if (guard && is_false(guard)) return splat_like(fallback, guard);
  if (uniform_offset) {
    llvm::Value* any = guard->getType()->isVectorTy() ? b_.CreateOrReduce(guard) : guard;
    value = emit_scalar_load(e, any);
    fallback = splat_like(fallback, guard);
    value = splat_like(value, guard);
  } else {
    auto step = lane_stride(n.args[0]);
    const bool selects_address =
        device_ == Device::cpu && step == 1 && guard && !guard->getType()->isVectorTy();
    llvm::Value* mask = and_masks(vector_->mask, selects_address ? nullptr : guard);
    if (mask) mask = splat(mask);
    const bool near = step && *step != 0 && std::abs(*step) <= kMaxStride && *step >= -1;
    auto steps = step ? std::nullopt : lane_offsets(n.args[0]);
    const bool shared = steps && fit_one_vector_load(*steps);
    if (shared) {
      value = emit_shuffled_load(e, *steps, mask);
    } else {
      llvm::Value* address_guard = selects_address ? guard : nullptr;
      value = near ? emit_strided_load(e, *step, mask, address_guard) : emit_gather(e, mask);
    }
    zeros = !shared && n.fvalue == 0;
    value = to_compute_type(value, buffer.dtype);
    fallback = splat(fallback);
  }
  if (!guard || zeros) return value;
  return b_.CreateSelect(guard, value, fallback);
}

/// Returns `address` if `guard` is true, else the address of a vector of zeros.
llvm::Value* KernelEmitter::address_or_zeros(llvm::Value* guard, llvm::Value* address) {
  const int64_t lanes = device_ == Device::cpu ? kMaxCpuLanes : 1;
  auto* type = llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(lanes));
  auto* zeros = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal("fluid_zeros", type));
  if (!zeros->hasInitializer()) {
    zeros->setInitializer(llvm::Constant::getNullValue(type));
    zeros->setLinkage(llvm::GlobalValue::PrivateLinkage);
    zeros->setAlignment(llvm::Align(kir::kVectorBytes));
  }
  return b_.CreateSelect(guard, address, zeros);
}

/// Emits the load of one element as a scalar. If `guard` is false at run time, the load reads a
/// zero constant instead of the buffer.
llvm::Value* KernelEmitter::emit_scalar_load(const Expr& e, llvm::Value* guard) {
  const ExprNode& n = e.node();
  const DType dtype = find_buffer(n.ivalue).dtype;
  llvm::Value* address = element_address(n.ivalue, emit_first_lane(n.args[0]));
  if (guard) address = address_or_zeros(guard, address);
  auto* value = b_.CreateAlignedLoad(storage_type(dtype), address, alignment(dtype));
  if (!guard) attach_alias_scopes(value, n.ivalue);
  if (!guard && find_buffer(n.ivalue).noalias) {
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
  return to_compute_type(value, dtype);
}

/// Loads elements that are `stride` apart with a vector load and a shuffle. Reads nothing past the
/// last element that a lane needs. `guard` is null or, for stride 1 only, a scalar i1. If `guard`
/// is false at run time, the load reads a constant vector of zeros. Selecting the address takes
/// fewer instructions than a mask.
llvm::Value* KernelEmitter::emit_strided_load(const Expr& e, int64_t stride, llvm::Value* mask,
                                              llvm::Value* guard) {
  const ExprNode& n = e.node();
  const DType dtype = find_buffer(n.ivalue).dtype;
  llvm::Type* element = storage_type(dtype);
  auto vector_of = [&](int64_t count) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  };
  llvm::Value* offset = emit_first_lane(n.args[0]);
  if (stride == 1) {
    llvm::Value* address = element_address(n.ivalue, offset);
    if (guard) address = address_or_zeros(guard, address);
    const llvm::Align align = vector_alignment(dtype, n.args[0]);
    if (!mask || is_true(mask)) {
      return attach_alias_scopes(b_.CreateAlignedLoad(vector_of(lanes_), address, align), n.ivalue);
    }
    llvm::Value* zeros = llvm::Constant::getNullValue(vector_of(lanes_));
    return attach_alias_scopes(b_.CreateMaskedLoad(vector_of(lanes_), address, align, mask, zeros),
                               n.ivalue);
  }
  if (stride == -1) {
    llvm::Value* address = element_address(n.ivalue, b_.CreateSub(offset, b_.getInt64(lanes_ - 1)));
    if (!mask) mask = splat(b_.getTrue());
    llvm::Value* zeros = llvm::Constant::getNullValue(vector_of(lanes_));
    auto* value = b_.CreateMaskedLoad(vector_of(lanes_), address, alignment(dtype),
                                      b_.CreateVectorReverse(mask), zeros);
    return b_.CreateVectorReverse(attach_alias_scopes(value, n.ivalue));
  }
  llvm::Value* wide_mask = spread_lanes(mask ? mask : splat(b_.getTrue()), stride);
  if (!mask) {  // enables all elements up to the last one that a lane reads
    std::vector<llvm::Constant*> upto;
    for (int64_t i = 0; i < lanes_ * stride; ++i) {
      upto.push_back(b_.getInt1(i <= (lanes_ - 1) * stride));
    }
    wide_mask = llvm::ConstantVector::get(upto);
  }
  llvm::Type* wide = vector_of(lanes_ * stride);
  auto* loaded = attach_alias_scopes(
      b_.CreateMaskedLoad(wide, element_address(n.ivalue, offset), alignment(dtype), wide_mask,
                          llvm::Constant::getNullValue(wide)),
      n.ivalue);
  std::vector<int> indices;
  for (int64_t i = 0; i < lanes_; ++i) indices.push_back(static_cast<int>(i * stride));
  return b_.CreateShuffleVector(loaded, indices);
}

/// Returns the mask of a vector load whose elements are then shuffled into the lanes. The mask
/// enables an element if `mask` enables any lane that reads it. The lanes that read element i are
/// readers[k][i] for all k; `lanes_` marks an unused entry. Conjuncts of `mask` that are equal in
/// all lanes are applied without a shuffle.
llvm::Value* KernelEmitter::shuffled_load_mask(llvm::Value* mask,
                                               const std::vector<std::vector<int>>& readers) {
  const auto count = static_cast<unsigned>(readers.front().size());
  llvm::Value* common = nullptr;
  llvm::Value* differs = splat(b_.getTrue());
  std::vector<llvm::Value*> factors = {mask};
  while (!factors.empty()) {
    llvm::Value* factor = factors.back();
    factors.pop_back();
    auto* all = llvm::dyn_cast<llvm::BinaryOperator>(factor);
    if (all && all->getOpcode() == llvm::Instruction::And) {
      factors.insert(factors.end(), {all->getOperand(0), all->getOperand(1)});
    } else if (llvm::Value* same = llvm::getSplatValue(factor)) {
      common = and_masks(common, same);
    } else {
      differs = b_.CreateAnd(differs, factor);
    }
  }
  llvm::Value* none = llvm::Constant::getNullValue(differs->getType());
  llvm::Value* any = nullptr;
  for (const std::vector<int>& lanes : readers) {
    llvm::Value* enabled = b_.CreateShuffleVector(differs, none, lanes);
    any = any ? b_.CreateOr(any, enabled) : enabled;
  }
  return common ? b_.CreateAnd(any, b_.CreateVectorSplat(count, common)) : any;
}

/// Emits one masked vector load and a shuffle. Lane i reads the element that is `steps[i]` elements
/// after the element of lane 0. The mask enables only elements that a lane needs.
llvm::Value* KernelEmitter::emit_shuffled_load(const Expr& e, const std::vector<int64_t>& steps,
                                               llvm::Value* mask) {
  const ExprNode& n = e.node();
  const DType dtype = find_buffer(n.ivalue).dtype;
  const auto last = static_cast<uint64_t>(*std::ranges::max_element(steps));
  const size_t count = std::bit_ceil(last + 1);
  auto* type = llvm::FixedVectorType::get(storage_type(dtype), static_cast<unsigned>(count));
  std::vector<std::vector<int>> readers(1, std::vector<int>(count, static_cast<int>(lanes_)));
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto element = static_cast<size_t>(steps[i]);
    size_t nth = 0;
    while (nth < readers.size() && readers[nth][element] < lanes_) ++nth;
    if (nth == readers.size()) readers.emplace_back(count, static_cast<int>(lanes_));
    readers[nth][element] = static_cast<int>(i);
  }
  if (!mask) mask = splat(b_.getTrue());
  llvm::Value* load_mask = shuffled_load_mask(mask, readers);
  llvm::Value* address = element_address(n.ivalue, emit_first_lane(n.args[0]));
  auto* loaded = attach_alias_scopes(b_.CreateMaskedLoad(type, address, alignment(dtype), load_mask,
                                                         llvm::Constant::getNullValue(type)),
                                     n.ivalue);
  const std::vector<int> indices(steps.begin(), steps.end());
  return b_.CreateShuffleVector(loaded, indices);
}

llvm::Value* KernelEmitter::emit_gather(const Expr& e, llvm::Value* mask) {
  const ExprNode& n = e.node();
  const DType dtype = find_buffer(n.ivalue).dtype;
  auto* type = llvm::FixedVectorType::get(storage_type(dtype), static_cast<unsigned>(lanes_));
  if (!mask) mask = splat(b_.getTrue());
  return attach_alias_scopes(
      b_.CreateMaskedGather(type, lane_addresses(n.ivalue, n.args[0]), alignment(dtype), mask,
                            llvm::Constant::getNullValue(type)),
      n.ivalue);
}

/// Stores an error word. The store is atomic, because several threads may write the same word. If
/// several lanes have an error, stores the largest value. The maximum reduction is defined even for
/// an empty mask. Extracting the first enabled lane would be undefined, and LLVM may hoist the
/// extraction above the test of the mask.
void KernelEmitter::emit_error_store(const kir::StoreTo& s) {
  llvm::Value* mask = and_masks(vector_ ? vector_->mask : nullptr, emit_expr(s.mask));
  llvm::Value* value = emit_expr(s.value);
  const bool lanes = mask->getType()->isVectorTy();
  auto* then = llvm::BasicBlock::Create(context_, "bad", function_);
  auto* done = llvm::BasicBlock::Create(context_, "checked", function_);
  b_.CreateCondBr(lanes ? b_.CreateOrReduce(mask) : mask, then, done);
  b_.SetInsertPoint(then);
  if (lanes) {
    value = splat(value);
    llvm::Value* least = llvm::ConstantInt::get(value->getType(), static_cast<uint64_t>(INT64_MIN));
    value = b_.CreateIntMaxReduce(b_.CreateSelect(mask, value, least), /*IsSigned=*/true);
  }
  first_lane_values_.clear();  // values computed in the branch do not dominate later code
  llvm::Value* address = element_address(s.buffer, emit_first_lane(s.offset));
  auto* store = b_.CreateAlignedStore(value, address, alignment(find_buffer(s.buffer).dtype));
  attach_alias_scopes(store, s.buffer)->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

llvm::Align KernelEmitter::vector_alignment(DType dtype, const Expr& offset) {
  if (device_ == Device::cpu || residue(offset, lanes_) != 0) return alignment(dtype);
  return llvm::Align(std::min<uint64_t>(kGpuAlignment, size_of(dtype) * lanes_));
}

void KernelEmitter::emit_store(const kir::StoreTo& s) {
  const kir::Buffer& buffer = find_buffer(s.buffer);
  if (buffer.role == kir::Buffer::Role::error) return emit_error_store(s);
  llvm::Value* mask = s.mask ? emit_expr(s.mask) : nullptr;
  if (mask && is_true(mask)) mask = nullptr;
  if (mask && is_false(mask)) return;
  llvm::Value* value = emit_expr(s.value);
  const bool uniform_offset = !vector_ || is_uniform(s.offset);
  const bool in_lanes = value->getType()->isVectorTy() || (mask && mask->getType()->isVectorTy());
  value = to_storage_type(value, s.value.dtype(), buffer.dtype);
  if (uniform_offset && !in_lanes) {
    llvm::BasicBlock* done = nullptr;
    if (mask) {
      auto* then = llvm::BasicBlock::Create(context_, "store", function_);
      done = llvm::BasicBlock::Create(context_, "stored", function_);
      b_.CreateCondBr(mask, then, done);
      b_.SetInsertPoint(then);
      first_lane_values_.clear();  // values computed in the branch do not dominate later code
    }
    llvm::Value* address = element_address(s.buffer, emit_first_lane(s.offset));
    attach_alias_scopes(b_.CreateAlignedStore(value, address, alignment(buffer.dtype)), s.buffer);
    if (done) {
      b_.CreateBr(done);
      b_.SetInsertPoint(done);
    }
    return;
  }
  mask = and_masks(vector_->mask, mask);
  if (mask) mask = splat(mask);
  value = splat(value);
  auto step = lane_stride(s.offset);
  if (step && *step >= 1 && *step <= kMaxStride) return emit_strided_store(s, *step, value, mask);
  // A scatter stores in lane order, so the last of several lanes with the same address wins.
  attach_alias_scopes(
      b_.CreateMaskedScatter(value, lane_addresses(s.buffer, s.offset), alignment(buffer.dtype),
                             mask ? mask : splat(b_.getTrue())),
      s.buffer);
}

/// Prefetches into the L2 cache. On a GPU, other threads hide the latency of loads.
void KernelEmitter::emit(const kir::Prefetch& hint) {
  if (device_ == Device::gpu) return;
  constexpr uint32_t kRead = 0, kIntoL2 = 2, kData = 1;
  llvm::Value* address = element_address(hint.buffer, emit_first_lane(hint.offset));
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                     {address, b_.getInt32(kRead), b_.getInt32(kIntoL2), b_.getInt32(kData)});
}

/// Whether `e` loads from `buffer`, or from an input that may alias an output.
bool KernelEmitter::may_load_from(const Expr& e, int64_t buffer) const {
  bool found = false;
  for_each_node(e, [&](const Expr& n) {
    if (n.op() != ScalarOp::load) return;
    const int64_t id = n.node().ivalue;
    const kir::Buffer& read = find_buffer(id);
    found = found || id == buffer || (read.role == kir::Buffer::Role::in && !read.noalias);
  });
  return found;
}

/// Emits an unrolled loop whose n iterations together store a contiguous memory range. Iteration i
/// stores elements i, i + n, i + 2 n, ... of the range. Interleaves the values and stores whole
/// vectors, because masked stores of every n-th element are slow. Returns false and emits nothing
/// if `loop` is not such a loop.
bool KernelEmitter::emit_interleaved_loop(const kir::For& loop, int64_t begin, int64_t end) {
  const int64_t n = end - begin;
  if (device_ != Device::cpu || !vector_ || vector_->mask || n < 2 || n > kMaxStride) return false;
  const auto* store = loop.body->empty() ? nullptr : std::get_if<kir::StoreTo>(&loop.body->back());
  if (!store || store->mask || may_load_from(store->value, store->buffer)) return false;
  for (size_t i = 0; i + 1 < loop.body->size(); ++i) {
    const auto* let = std::get_if<kir::Let>(&(*loop.body)[i]);
    if (!let || may_load_from(let->value, store->buffer)) return false;
  }
  const kir::Buffer& buffer = find_buffer(store->buffer);
  const std::optional<Affine> offset = as_affine(store->offset);
  if (buffer.role == kir::Buffer::Role::error || !offset || offset->coefficient(loop.var) != 1) {
    return false;
  }
  const auto bind = [&](int64_t i) {
    vars_[loop.var] = b_.getInt64(static_cast<uint64_t>(i));
    var_ranges_[loop.var] = {i, i};
  };
  bind(begin);
  if (lane_stride(store->offset) != n) return false;
  llvm::Value* first_offset = nullptr;
  std::vector<llvm::Value*> values;
  for (int64_t i = begin; i < end; ++i) {
    bind(i);
    emit_block({loop.body->begin(), loop.body->end() - 1});
    clear_cached_values();
    if (i == begin) first_offset = emit_first_lane(store->offset);
    llvm::Value* value = emit_expr(store->value);
    values.push_back(splat(to_storage_type(value, store->value.dtype(), buffer.dtype)));
  }
  for (int64_t i = 0; i < n; ++i) {
    llvm::Value* vector = interleaved_part(values, i);
    llvm::Value* address =
        element_address(store->buffer, b_.CreateAdd(first_offset, b_.getInt64(i * lanes_)));
    attach_alias_scopes(b_.CreateAlignedStore(vector, address, alignment(buffer.dtype)),
                        store->buffer);
  }
  return true;
}

/// Interleaves the elements of `values` and returns vector number `part` of the result. Each
/// shuffle adds one input, because LLVM scalarizes a shuffle of more than two registers.
llvm::Value* KernelEmitter::interleaved_part(const std::vector<llvm::Value*>& values,
                                             int64_t part) {
  const auto n = static_cast<int64_t>(values.size());
  llvm::Value* result = llvm::PoisonValue::get(values.front()->getType());
  for (int64_t k = 0; k < n; ++k) {
    std::vector<int> from(static_cast<size_t>(lanes_));
    for (int64_t i = 0; i < lanes_; ++i) {
      const int64_t element = part * lanes_ + i;
      from[static_cast<size_t>(i)] = static_cast<int>(element % n == k ? lanes_ + element / n : i);
    }
    result = b_.CreateShuffleVector(result, values[static_cast<size_t>(k)], from);
  }
  return result;
}

void KernelEmitter::emit_strided_store(const kir::StoreTo& s, int64_t stride, llvm::Value* value,
                                       llvm::Value* mask) {
  const DType dtype = find_buffer(s.buffer).dtype;
  const llvm::Align align = stride == 1 ? vector_alignment(dtype, s.offset) : alignment(dtype);
  llvm::Value* address = element_address(s.buffer, emit_first_lane(s.offset));
  if (stride > 1) {
    value = spread_lanes(value, stride);
    mask = spread_lanes(mask ? mask : splat(b_.getTrue()), stride);
  }
  if (const int lane = mask ? only_lane(mask) : -1; lane >= 0) {
    // Stores the only enabled lane as a scalar: LLVM 22 on x86 miscompiles a one-lane masked store
    // of a truncated value.
    address = element_address(s.buffer, b_.CreateAdd(emit_first_lane(s.offset), b_.getInt64(lane)));
    value = b_.CreateExtractElement(value, static_cast<uint64_t>(lane));
    const uint64_t away = static_cast<uint64_t>(lane * size_of(dtype));
    attach_alias_scopes(b_.CreateAlignedStore(value, address, llvm::commonAlignment(align, away)),
                        s.buffer);
  } else if (mask && !is_true(mask)) {
    attach_alias_scopes(b_.CreateMaskedStore(value, address, align, mask), s.buffer);
  } else {
    attach_alias_scopes(b_.CreateAlignedStore(value, address, align), s.buffer);
  }
}

}  // namespace fluid::emit
