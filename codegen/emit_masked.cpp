#include "codegen/emit_masked.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <numeric>
#include <vector>

namespace fluid::emit {
namespace {

/// Operands of a masked load or store. LLVM 22 turned the alignment operand into an attribute.
struct MaskedAccess {
  llvm::IntrinsicInst& call;
  bool store;
  llvm::Value* address;
  llvm::Value* mask;
  llvm::Value* value;  ///< value to store, or the passthru operand of a load
  llvm::FixedVectorType* type;
  llvm::Align align;

  explicit MaskedAccess(llvm::IntrinsicInst& c)
      : call(c), store(c.getIntrinsicID() == llvm::Intrinsic::masked_store) {
    const unsigned last = call.arg_size() - 1, address_at = store ? 1 : 0;
    address = call.getArgOperand(address_at);
    mask = call.getArgOperand(store ? last : last - 1);
    value = call.getArgOperand(store ? 0 : last);
    type = llvm::cast<llvm::FixedVectorType>(value->getType());
    align = last == 3
                ? llvm::cast<llvm::ConstantInt>(call.getArgOperand(address_at + 1))->getAlignValue()
                : call.getParamAlign(address_at).valueOrOne();
  }

  uint64_t element_bytes() const { return type->getScalarSizeInBits() / 8; }
  llvm::Value* address_of(llvm::IRBuilder<>& b, unsigned lane) const {
    return b.CreateConstInBoundsGEP1_64(type->getElementType(), address, lane);
  }
  llvm::Align align_of(unsigned lane) const {
    return commonAlignment(align, lane * element_bytes());
  }
};

std::vector<llvm::IntrinsicInst*> masked_accesses(llvm::Function& function, bool stores) {
  std::vector<llvm::IntrinsicInst*> found;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (call == nullptr) continue;
    const auto id = call->getIntrinsicID();
    if (id == llvm::Intrinsic::masked_load || (stores && id == llvm::Intrinsic::masked_store)) {
      found.push_back(call);
    }
  }
  return found;
}

void load_lane_by_lane(const MaskedAccess& load, const llvm::Constant& mask) {
  llvm::IRBuilder<> b(&load.call);
  llvm::Value* value = load.value;
  for (unsigned i = 0; i < load.type->getNumElements(); ++i) {
    if (!mask.getAggregateElement(i)->isOneValue()) continue;
    auto* lane =
        b.CreateAlignedLoad(load.type->getElementType(), load.address_of(b, i), load.align_of(i));
    lane->copyMetadata(load.call);
    value = b.CreateInsertElement(value, lane, i);
  }
  load.call.replaceAllUsesWith(value);
  load.call.eraseFromParent();
}

/// Concatenates two vectors of the same length.
llvm::Value* concatenate(llvm::IRBuilder<>& b, llvm::Value* low, llvm::Value* high) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(low->getType())->getNumElements();
  std::vector<int> all(2 * lanes);
  std::iota(all.begin(), all.end(), 0);
  return b.CreateShuffleVector(low, high, all);
}

/// Whether all lanes of a mask are known to be disabled.
bool is_all_false(llvm::Value* mask, const llvm::DataLayout& layout) {
  return llvm::computeKnownBits(mask, layout).isZero();
}

/// Emits the access to lanes [first, first + lanes), split into accesses to at most `most` lanes.
/// Omits accesses without an enabled lane. Returns the loaded vector, or null for a store.
llvm::Value* emit_part(llvm::IRBuilder<>& b, const MaskedAccess& access, unsigned first,
                       unsigned lanes, unsigned most) {
  if (lanes > most && lanes % 2 == 0) {
    llvm::Value* low = emit_part(b, access, first, lanes / 2, most);
    llvm::Value* high = emit_part(b, access, first + lanes / 2, lanes / 2, most);
    return access.store ? nullptr : concatenate(b, low, high);
  }
  std::vector<int> part(lanes);
  std::iota(part.begin(), part.end(), static_cast<int>(first));
  llvm::Value* mask = b.CreateShuffleVector(access.mask, part);
  llvm::Value* value = b.CreateShuffleVector(access.value, part);
  if (is_all_false(mask, access.call.getDataLayout())) return access.store ? nullptr : value;
  llvm::Value* address = access.address_of(b, first);
  const llvm::Align align = access.align_of(first);
  llvm::CallInst* call = access.store
                             ? b.CreateMaskedStore(value, address, align, mask)
                             : b.CreateMaskedLoad(value->getType(), address, align, mask, value);
  call->copyMetadata(access.call);
  return access.store ? nullptr : call;
}

}  // namespace

void load_lane_by_lane(llvm::Function& function) {
  for (llvm::IntrinsicInst* call : masked_accesses(function, false)) {
    const MaskedAccess load(*call);
    if (const auto* mask = llvm::dyn_cast<llvm::Constant>(load.mask))
      load_lane_by_lane(load, *mask);
  }
}

bool split_masked_accesses(llvm::Function& function, unsigned register_bits) {
  bool changed = false;
  for (llvm::IntrinsicInst* call : masked_accesses(function, true)) {
    const MaskedAccess access(*call);
    const auto most = static_cast<unsigned>(register_bits / 8 / access.element_bytes());
    const unsigned lanes = access.type->getNumElements();
    if (lanes <= most && !is_all_false(access.mask, call->getDataLayout())) continue;
    llvm::IRBuilder<> b(call);
    llvm::Value* loaded = emit_part(b, access, 0, lanes, most);
    if (!access.store) call->replaceAllUsesWith(loaded);
    call->eraseFromParent();
    changed = true;
  }
  return changed;
}

}  // namespace fluid::emit
