#pragma once

#include <algorithm>

#include "ops/table.h"
#include "passes/target.h"

namespace fluid {

/// A target without libraries, whose kernels need no scratch: what passes are tested against.
class PlainTarget : public Target {
 public:
  std::string name() const override { return "plain"; }
  int threads() const override { return 1; }
  std::vector<KernelCandidate> candidates(const ir::Op&, const EpilogueOps&) const override {
    return {};
  }
  double generated_seconds(const ir::Op& op) const override {
    return 1e-6 + 1e-9 * (*def_of(op).cost)({types(op, true), types(op, false), op.attrs}).flops;
  }
  bool runs_combine_ops() const override { return true; }
  int64_t scratch_bytes(const ir::Op&, int64_t) const override { return 0; }

 private:
  static std::vector<Type> types(const ir::Op& op, bool operands) {
    std::vector<Type> types;
    for (Value v : op.operands) {
      if (operands) types.push_back(v.type());
    }
    for (const ir::Result& r : op.results) {
      if (!operands) types.push_back(r.type);
    }
    return types;
  }
};

/// As PlainTarget, with a library that takes whatever an op lists for the CPU, with any epilogue,
/// in the layouts that it has; layouts other than plain please it. An epilogue of two ops loses
/// NaNs.
class LibraryTarget : public PlainTarget {
 public:
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override {
    for (const LibraryKernel& kernel : *def_of(op).kernels) {
      if (kernel.device != KernelDevice::cpu) continue;
      KernelCandidate candidate;
      candidate.kernel = kernel.name;
      candidate.workspace = 4096;
      candidate.propagates_nan = epilogue.size() < 2;
      candidate.results = {op.results[0].type.layout};
      for (const Value& v : op.operands) candidate.operands.push_back(v.type().layout);
      candidate.seconds = candidate.results[0] || candidate.operands[0] ? 2e-6 : 5e-6;
      return {candidate};
    }
    return {};
  }
};

/// As LibraryTarget, with a library that also adds a matrix to its result, in the matrix's memory,
/// and whose kernels nothing keeps from running.
class AddingTarget : public LibraryTarget {
 public:
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override {
    std::vector<KernelCandidate> candidates = LibraryTarget::candidates(op, epilogue);
    const auto is_result = [&](const Value& v) { return v.type() == op.results[0].type; };
    const bool adds = epilogue.size() == 1 && std::ranges::all_of(epilogue[0]->operands, is_result);
    for (KernelCandidate& candidate : candidates) candidate.overwrites_addend = adds;
    return candidates;
  }
  bool libraries_may_write_variables() const override { return false; }
};

/// As LibraryTarget, with a faster kernel for convolutions and matrix products, which needs blocked
/// weights.
class PackingTarget : public LibraryTarget {
 public:
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override {
    std::vector<KernelCandidate> candidates = LibraryTarget::candidates(op, epilogue);
    if (op.name != "conv2d" && op.name != "matmul") return candidates;
    KernelCandidate packed = candidates.at(0);
    packed.seconds *= 0.9;
    packed.operands[1] =
        op.name == "matmul" ? Layout{{0, 1}, {{0, 4}}} : Layout{{0, 1, 2, 3}, {{0, 4}}};
    candidates.insert(candidates.begin(), packed);
    return candidates;
  }
};

/// As LibraryTarget, with kernels for weights of i8 that are twice as fast.
class IntegerTarget : public LibraryTarget {
 public:
  double generated_seconds(const ir::Op& op) const override {
    const bool reads_i8 =
        std::ranges::any_of(op.operands, [](const Value& v) { return v.dtype() == i8; });
    return LibraryTarget::generated_seconds(op) / (reads_i8 ? 2 : 1);
  }
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override {
    std::vector<KernelCandidate> candidates = LibraryTarget::candidates(op, epilogue);
    for (KernelCandidate& candidate : candidates) {
      if (candidate.kernel.ends_with("_int8")) candidate.seconds /= 2;
    }
    return candidates;
  }
};

/// As LibraryTarget, with memory so fast that kernels may run twice.
class RepeatingTarget : public LibraryTarget {
 public:
  bool runs_repeat_kernels() const override { return true; }
};

}  // namespace fluid
