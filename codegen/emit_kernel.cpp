#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/emit.h"
#include "codegen/gpu.h"
#include "codegen/thread_group_sync.h"
#include "ir/error.h"

namespace fluid::emit {
namespace {

// A vector loop with at most this many full vectors is emitted as straight-line code. Comparisons
// of the loop variable with constants then fold to constant masks.
constexpr int64_t kStraightLineVectors = 2;
// Maximum number of accumulators of an array that is kept in registers. On a CPU, a loop
// initializes larger arrays.
constexpr int64_t kMaxRegisterAccumulators = 32;
// Minimum number of resident threads per SM. It limits a thread to 168 registers.
constexpr int64_t kMinResidentThreads = 384;

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const kir::Kernel& kernel, Device device,
                             bool avx512)
    : context_(module.getContext()),
      module_(module),
      kernel_(kernel),
      device_(device),
      avx512_(avx512),
      lanes_(device == Device::cpu ? kir::lanes_of(kernel)
                                   : std::max<int64_t>(kernel.vector_width, 1)),
      thread_group_size_(kernel.thread_group_size),
      b_(context_) {
  check(device != Device::cpu || thread_group_size_ == 1,
        "kernel " + kernel.name + " is for a GPU");
  if (device != Device::cpu) max_batch_ = max_batch(kernel.buffers);

  // Buffers that the kernel writes do not alias each other. An input may alias an output unless
  // Buffer::noalias is set.
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (const kir::Buffer& buffer : kernel.buffers) {
    scopes.push_back(md.createAnonymousAliasScope(domain, buffer.name));
  }
  llvm::MDNode* accumulators = md.createAnonymousAliasScope(domain, "accumulators");
  accumulator_scope_ = llvm::MDNode::get(context_, {accumulators});
  auto is_input = [&](size_t i) {
    const kir::Buffer::Role role = kernel.buffers[i].role;
    return role == kir::Buffer::Role::in || role == kir::Buffer::Role::constants;
  };
  auto is_local = [&](size_t i) { return kernel.buffers[i].role == kir::Buffer::Role::local; };
  auto may_share = [&](size_t i, size_t j) {
    if (is_input(i) == is_input(j)) return is_input(i);
    if (is_local(i) || is_local(j)) return false;
    return !kernel.buffers[is_input(i) ? i : j].noalias;
  };
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> foreign;
    for (size_t j = 0; j < scopes.size(); ++j) {
      if (i != j && !may_share(i, j)) foreign.push_back(scopes[j]);
    }
    foreign.push_back(accumulators);
    alias_scopes_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    noalias_scopes_.push_back(llvm::MDNode::get(context_, foreign));
  }
}

void KernelEmitter::emit_kernel(const std::string& symbol) {
  emit_function(symbol, kernel_.body, false);
  if (!kernel_.finish.empty()) emit_function(symbol + "_finish", kernel_.finish, true);
}

void KernelEmitter::emit_function(const std::string& symbol, const kir::Block& body,
                                  bool is_finish) {
  vars_.clear();
  lets_.clear();
  accs_.clear();
  if (thread_group_size_ > 1) sync_points_ = kir::sync_points(kernel_, body);
  declare_function(symbol);
  if (is_finish) {
    check(device_ == Device::cpu, "kernel " + kernel_.name + ": a GPU's last pass is a kernel");
    emit_block(body);
  } else {
    emit_block_loop(body);
  }
  b_.CreateRetVoid();
  std::string message;
  llvm::raw_string_ostream stream(message);
  check(!llvm::verifyFunction(*function_, &stream), "kernel " + kernel_.name + ": " + message);
}

void KernelEmitter::declare_function(const std::string& symbol) {
  llvm::Type* i64 = b_.getInt64Ty();
  const bool by_value = device_ == Device::gpu;
  std::vector<llvm::Type*> parameters(by_value ? kernel_.buffers.size() : 1, b_.getPtrTy());
  parameters.insert(parameters.end(), by_value ? 1 : 3, i64);
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
  auto* fn = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  function_ = fn;
  fn->setDoesNotThrow();
  fn->addFnAttr("no-trapping-math", "true");
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn));

  const auto first_scalar = static_cast<unsigned>(by_value ? kernel_.buffers.size() : 1);
  batch_ = fn->getArg(first_scalar);
  buffers_.clear();
  if (by_value) {
    fn->setCallingConv(llvm::CallingConv::PTX_Kernel);
    // Without nvvm.minctasm (minimum CTAs per SM), ptxas may spill registers to fit more threads on
    // an SM.
    const int64_t threads = threads_per_block(thread_group_size_);
    fn->addFnAttr("nvvm.reqntid", std::to_string(threads));
    fn->addFnAttr("nvvm.minctasm",
                  std::to_string(std::max<int64_t>(kMinResidentThreads / threads, 1)));
    for (unsigned i = 0; i < first_scalar; ++i) {
      fn->addParamAttr(i, llvm::Attribute::getWithAlignment(context_, llvm::Align(kGpuAlignment)));
      buffers_.push_back(fn->getArg(i));
    }
    return emit_thread_group_prologue();
  }
  fn->addParamAttr(0, llvm::Attribute::NoUndef);
  fn->addParamAttr(0, llvm::Attribute::ReadOnly);
  load_buffer_pointers(fn->getArg(0));
  begin_ = fn->getArg(2);
  end_ = fn->getArg(3);
}

void KernelEmitter::load_buffer_pointers(llvm::Value* table) {
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const kir::Buffer& buffer = kernel_.buffers[i];
    if (buffer.role == kir::Buffer::Role::local) {
      llvm::AllocaInst* memory =
          create_array_alloca(storage_type(buffer.dtype), buffer.elements.size);
      memory->setAlignment(llvm::Align(kir::kVectorBytes));
      buffers_.push_back(memory);
      continue;
    }
    auto* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table, i);
    auto* pointer = b_.CreateLoad(b_.getPtrTy(), slot, kernel_.buffers[i].name);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    buffers_.push_back(pointer);
  }
}

void KernelEmitter::emit_block_loop(const kir::Block& body) {
  llvm::Value* step = threads_ ? threads_->thread_group_count() : b_.getInt64(1);
  const auto blocks = range(kernel_.blocks);
  const int64_t most = blocks ? blocks->high : int64_t{1} << 31;
  var_ranges_ = {{kernel_.block_var, {0, std::max<int64_t>(most, 1) - 1}}};
  emit_counted_loop(begin_, end_, step, [&](llvm::Value* i) {
    vars_[kernel_.block_var] = i;
    emit_block(body);
  });
}

/// Emits `for (i = begin; i < end; i += step) body(i)` as a rotated loop, so that LICM can hoist
/// code out of it.
void KernelEmitter::emit_counted_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                                      const std::function<void(llvm::Value*)>& body) {
  auto* loop = llvm::BasicBlock::Create(context_, "loop", function_);
  auto* exit = llvm::BasicBlock::Create(context_, "exit", function_);
  auto* entry = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), loop, exit);
  b_.SetInsertPoint(loop);
  auto* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, entry);
  body(i);
  llvm::Value* next = b_.CreateAdd(i, step, "", /*HasNUW=*/false, /*HasNSW=*/true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, exit);
  b_.SetInsertPoint(exit);
}

void KernelEmitter::emit_block(const kir::Block& statements) {
  for (const kir::Stmt& s : statements) {
    clear_cached_values();
    const void* which = std::visit(
        [&](const auto& statement) -> const void* {
          emit(statement);
          return &statement;
        },
        static_cast<const kir::Stmt::variant&>(s));
    if (sync_points_.contains(which)) threads_->barrier();
  }
}

void KernelEmitter::clear_cached_values() {
  values_.clear();
  first_lane_values_.clear();
  uniform_.clear();
}

void KernelEmitter::emit(const kir::For& loop) {
  llvm::Value* begin = emit_expr(loop.begin);
  llvm::Value* end = emit_expr(loop.end);
  check(!begin->getType()->isVectorTy() && !end->getType()->isVectorTy(),
        "kernel " + kernel_.name + ": bounds differ from lane to lane");
  auto low = range(loop.begin), high = range(loop.end);
  if (low && high && high->high > low->low) {
    var_ranges_[loop.var] = {low->low, high->high - 1};
  } else {
    var_ranges_.erase(loop.var);
  }
  if (loop.kind == kir::For::Kind::unroll) return emit_unrolled_loop(loop, begin, end);
  if (loop.kind == kir::For::Kind::vector && thread_group_size_ > 1)
    return emit_thread_group_loop(loop, begin, end);
  if (loop.kind == kir::For::Kind::vector && lanes_ > 1) return emit_vector_loop(loop, begin, end);
  emit_serial_loop(loop, begin, end);
}

void KernelEmitter::emit_serial_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end) {
  auto* count =
      llvm::dyn_cast_or_null<llvm::ConstantInt>(constant_difference(loop.end, loop.begin));
  if (count && count->isOne()) {
    vars_[loop.var] = begin;
    return emit_block(*loop.body);
  }
  emit_counted_loop(begin, end, b_.getInt64(1), [&](llvm::Value* i) {
    vars_[loop.var] = i;
    emit_block(*loop.body);
  });
}

void KernelEmitter::emit_unrolled_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  check(first && last, "kernel " + kernel_.name + ": unrolled bounds are not constants");
  if (emit_interleaved_loop(loop, first->getSExtValue(), last->getSExtValue())) return;
  for (int64_t i = first->getSExtValue(); i < last->getSExtValue(); ++i) {
    vars_[loop.var] = b_.getInt64(static_cast<uint64_t>(i));
    var_ranges_[loop.var] = {i, i};
    emit_block(*loop.body);
  }
}

llvm::Value* KernelEmitter::constant_difference(const Expr& end, const Expr& begin) {
  if (end.op() == ScalarOp::add && end.args()[0].get() == begin.get() &&
      is_constant(end.args()[1])) {
    return b_.getInt64(static_cast<uint64_t>(end.args()[1].node().ivalue));
  }
  auto last = as_affine(end), first = as_affine(begin);
  if (!last || !first || last->terms != first->terms) return nullptr;
  return b_.getInt64(static_cast<uint64_t>(last->offset - first->offset));
}

void KernelEmitter::emit_vector_loop(const kir::For& loop, llvm::Value* begin, llvm::Value* end) {
  check(!vector_, "kernel " + kernel_.name + ": vector loops nest");
  llvm::Value* count = constant_difference(loop.end, loop.begin);
  if (!count) count = b_.CreateSub(end, begin);
  const auto width = static_cast<uint64_t>(lanes_);
  if (auto* trip = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    const int64_t n = std::max<int64_t>(trip->getSExtValue(), 0), full = n / lanes_ * lanes_;
    auto offset = [&](int64_t i) { return b_.CreateAdd(begin, b_.getInt64(i)); };
    if (full <= kStraightLineVectors * lanes_) {
      for (int64_t i = 0; i < full; i += lanes_) emit_vector_iteration(loop, offset(i), nullptr);
    } else {
      emit_counted_loop(begin, offset(full), b_.getInt64(width),
                        [&](llvm::Value* i) { emit_vector_iteration(loop, i, nullptr); });
    }
    if (n > full)
      emit_vector_iteration(loop, offset(full), active_lane_mask(b_.getInt64(n - full)));
    return;
  }
  llvm::Value* positive = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, b_.getInt64(0));
  llvm::Value* full_end = b_.CreateAdd(begin, b_.CreateAnd(positive, ~(width - 1)));
  emit_counted_loop(begin, full_end, b_.getInt64(width),
                    [&](llvm::Value* i) { emit_vector_iteration(loop, i, nullptr); });
  auto* tail = llvm::BasicBlock::Create(context_, "tail", function_);
  auto* done = llvm::BasicBlock::Create(context_, "done", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(full_end, end), tail, done);
  b_.SetInsertPoint(tail);
  llvm::Value* remaining = b_.CreateSub(end, full_end);
  // Hides the mask from the optimizer: LLVM miscompiles a store if it folds the mask to a single
  // lane (see emit_strided_store()).
  if (device_ == Device::cpu) remaining = hide_from_optimizer(remaining);
  emit_vector_iteration(loop, full_end, active_lane_mask(remaining));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

/// Returns a mask in which lanes [0, remaining) are true.
llvm::Value* KernelEmitter::active_lane_mask(llvm::Value* remaining) {
  std::vector<uint32_t> lanes;
  for (uint32_t i = 0; i < lanes_; ++i) lanes.push_back(i);
  llvm::Value* iota = llvm::ConstantDataVector::get(context_, lanes);
  llvm::Value* bound = splat(b_.CreateTrunc(remaining, b_.getInt32Ty()));
  return b_.CreateICmpULT(iota, bound);
}

void KernelEmitter::emit_vector_iteration(const kir::For& loop, llvm::Value* base,
                                          llvm::Value* mask) {
  std::vector<uint64_t> lanes;
  for (uint64_t i = 0; i < static_cast<uint64_t>(lanes_); ++i) lanes.push_back(i);
  llvm::Value* iota = llvm::ConstantDataVector::get(context_, lanes);
  int64_t multiple = 0, rest = 0;
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(base)) {
    rest = known->getSExtValue();
  } else {
    const auto first = residue(loop.begin, lanes_);
    multiple = first ? lanes_ : 1;
    rest = first.value_or(0);
  }
  vector_ = VectorLoop{loop.var, base, b_.CreateAdd(splat(base), iota), mask, multiple, rest};
  emit_block(*loop.body);
  vector_.reset();
}

void KernelEmitter::emit(const kir::Let& let) { lets_[let.id] = {emit_expr(let.value), let.value}; }

llvm::AllocaInst* KernelEmitter::create_array_alloca(llvm::Type* element, int64_t count) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::Type* type = llvm::ArrayType::get(element, static_cast<uint64_t>(count));
  return at_entry.CreateAlloca(type);
}

void KernelEmitter::emit(const kir::Accumulator& acc) {
  int64_t count = 1;
  for (int64_t d : acc.dims) count *= d;
  const bool varying = lanes_ > 1 && (acc.per_lane || vector_);
  auto shape = [&](llvm::Type* type) -> llvm::Type* {
    return varying ? llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_)) : type;
  };
  AccumulatorBinding binding{&acc, nullptr, nullptr, shape(scalar_type(acc.dtype)), varying};
  binding.value = create_array_alloca(binding.type, count);
  llvm::Value* start = identity(acc.dtype, acc.combine);
  llvm::Type* index_type = shape(b_.getInt64Ty());
  if (acc.combine == Combine::argmax) binding.argmax_index = create_array_alloca(index_type, count);
  auto reset = [&](llvm::Value* i) {
    auto slot = [&](llvm::AllocaInst* memory) {
      return b_.CreateInBoundsGEP(memory->getAllocatedType(), memory, {b_.getInt64(0), i});
    };
    b_.CreateStore(varying ? splat(start) : start, slot(binding.value));
    if (binding.argmax_index) {
      b_.CreateStore(llvm::Constant::getNullValue(index_type), slot(binding.argmax_index));
    }
  };
  // Initializes a large array of accumulators in a loop, because LLVM does not analyse an alloca
  // with many uses.
  if (count > kMaxRegisterAccumulators && device_ == Device::cpu) {
    emit_counted_loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(count)), b_.getInt64(1),
                      reset);
  } else {
    for (int64_t i = 0; i < count; ++i) reset(b_.getInt64(static_cast<uint64_t>(i)));
  }
  accs_[acc.id] = binding;
}

const KernelEmitter::AccumulatorBinding& KernelEmitter::find_accumulator(int64_t id) const {
  auto found = accs_.find(id);
  check(found != accs_.end(), "kernel " + kernel_.name + ": accumulator is not declared");
  return found->second;
}

llvm::Value* KernelEmitter::acc_address(const AccumulatorBinding& acc,
                                        const std::vector<Expr>& index, bool want_index) {
  check(index.size() == acc.decl->dims.size(),
        "kernel " + kernel_.name + ": an accumulator's index has the wrong rank");
  // Adds the constant terms of the index last, so that alias analysis can tell the accumulators of
  // a tile apart.
  llvm::Value* moving = b_.getInt64(0);
  uint64_t fixed_part = 0;
  uint64_t stride = 1;
  for (size_t d = index.size(); d-- > 0;) {
    llvm::Value* i = emit_expr(index[d]);
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(i)) {
      fixed_part += constant->getZExtValue() * stride;
    } else {
      moving = b_.CreateAdd(moving, b_.CreateMul(i, b_.getInt64(stride)));
    }
    stride *= static_cast<uint64_t>(acc.decl->dims[d]);
  }
  llvm::AllocaInst* memory = want_index ? acc.argmax_index : acc.value;
  llvm::Type* type = memory->getAllocatedType()->getArrayElementType();
  llvm::Value* base = b_.CreateInBoundsGEP(type, memory, moving);
  return b_.CreateConstInBoundsGEP1_64(type, base, fixed_part);
}

llvm::Value* KernelEmitter::identity(DType dtype, Combine combine) {
  llvm::Type* type = scalar_type(dtype);
  if (combine == Combine::sum) return llvm::Constant::getNullValue(type);
  if (combine == Combine::prod) {
    return is_float(dtype) ? llvm::ConstantFP::get(type, 1) : llvm::ConstantInt::get(type, 1);
  }
  const bool lowest = combine != Combine::min;
  if (is_float(dtype)) return llvm::ConstantFP::getInfinity(type, lowest);
  const unsigned bits = type->getIntegerBitWidth();
  const bool is_signed = is_signed_integer(dtype);
  llvm::APInt least = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0);
  llvm::APInt most =
      is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getAllOnes(bits);
  return llvm::ConstantInt::get(type, lowest ? least : most);
}

llvm::Value* KernelEmitter::emit_combine(Combine kind, DType dtype, llvm::Value* a,
                                         llvm::Value* b) {
  const bool floats = is_float(dtype);
  switch (kind) {
    case Combine::sum:
      if (dtype == DType::boolean) return b_.CreateOr(a, b);
      return floats ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Combine::prod:
      return floats ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    default:
      return emit_min_max(kind == Combine::max, dtype, a, b);
  }
}

llvm::Value* KernelEmitter::argmax_improves(DType dtype, llvm::Value* value,
                                            llvm::Value* argmax_index, llvm::Value* best,
                                            llvm::Value* best_index) {
  llvm::Value* above = emit_compare(ScalarOp::gt, dtype, value, best);
  llvm::Value* level = emit_compare(ScalarOp::eq, dtype, value, best);
  if (is_float(dtype)) {
    llvm::Value* is_nan = b_.CreateFCmpUNO(value, value);
    llvm::Value* best_is_nan = b_.CreateFCmpUNO(best, best);
    above = b_.CreateOr(above, b_.CreateAnd(is_nan, b_.CreateNot(best_is_nan)));
    level = b_.CreateOr(level, b_.CreateAnd(is_nan, best_is_nan));
  }
  llvm::Value* earlier = b_.CreateICmpSLT(argmax_index, best_index);
  return b_.CreateOr(above, b_.CreateAnd(level, earlier));
}

/// Stores to an accumulator and attaches the alias scope of accumulators. No buffer aliases an
/// accumulator, but LLVM's alias analysis cannot prove this for large arrays.
void KernelEmitter::store_accumulator(llvm::Value* value, llvm::Value* address) {
  b_.CreateStore(value, address)
      ->setMetadata(llvm::LLVMContext::MD_alias_scope, accumulator_scope_);
}

void KernelEmitter::emit(const kir::Accumulate& statement) {
  const AccumulatorBinding& acc = find_accumulator(statement.accumulator_id);
  const Combine kind = acc.decl->combine;
  const DType dtype = acc.decl->dtype;
  check(acc.varying == (vector_ && lanes_ > 1) &&
            (!acc.decl->per_lane || thread_group_size_ == 1 || in_thread_group_loop_),
        "kernel " + kernel_.name + ": an accumulator of lanes belongs to a vector loop");
  check(statement.value.dtype() == dtype,
        "kernel " + kernel_.name + ": a value of another dtype is accumulated");
  llvm::Value* address = acc_address(acc, statement.index, false);
  llvm::Value* old = b_.CreateLoad(acc.type, address);
  llvm::Value* mask = acc.varying ? vector_->mask : nullptr;
  if (kind == Combine::argmax) {
    llvm::Value* value = emit_expr(statement.value);
    llvm::Value* argmax_index = emit_expr(statement.argmax_index);
    llvm::Value* index_address = acc_address(acc, statement.index, true);
    if (acc.varying) value = splat(value), argmax_index = splat(argmax_index);
    llvm::Value* old_index = b_.CreateLoad(argmax_index->getType(), index_address);
    llvm::Value* better =
        and_masks(argmax_improves(dtype, value, argmax_index, old, old_index), mask);
    store_accumulator(b_.CreateSelect(better, value, old), address);
    store_accumulator(b_.CreateSelect(better, argmax_index, old_index), index_address);
    return;
  }
  llvm::Value* result = nullptr;
  if (statement.value.op() == ScalarOp::product && kind == Combine::sum) {
    result =
        emit_fma(emit_expr(statement.value.args()[0]), emit_expr(statement.value.args()[1]), old);
  } else {
    llvm::Value* value = emit_expr(statement.value);
    result = emit_combine(kind, dtype, old, acc.varying ? splat(value) : value);
  }
  if (mask && kind == Combine::sum && zero_in_masked_lanes(statement.value)) mask = nullptr;
  store_accumulator(mask ? b_.CreateSelect(mask, result, old) : result, address);
}

void KernelEmitter::emit(const kir::If& statement) {
  llvm::Value* condition = emit_expr(statement.condition);
  check(!condition->getType()->isVectorTy(),
        "kernel " + kernel_.name + ": a condition differs from lane to lane");
  auto* then = llvm::BasicBlock::Create(context_, "then", function_);
  auto* done = llvm::BasicBlock::Create(context_, "done", function_);
  b_.CreateCondBr(condition, then, done);
  b_.SetInsertPoint(then);
  emit_block(*statement.body);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace fluid::emit
