#pragma once

#include "ops/table.h"
#include "passes/target.h"

namespace fluid {

/// A target without libraries, whose kernels need no scratch: what passes are tested against.
class PlainTarget : public Target {
 public:
  std::string name() const override { return "plain"; }
  int threads() const override { return 1; }
  std::vector<Claim> claims(const ir::Op&, const Chain&) const override { return {}; }
  double generated_seconds(const ir::Op&) const override { return 1e-3; }
  int64_t scratch(const ir::Op&, int64_t) const override { return 0; }
};

/// As PlainTarget, with a library that takes whatever an op lists for the CPU, with any epilogue.
class LibraryTarget : public PlainTarget {
 public:
  std::vector<Claim> claims(const ir::Op& op, const Chain&) const override {
    for (const LibraryKernel& kernel : *def_of(op).kernels) {
      if (kernel.place != On::cpu) continue;
      Claim claim;
      claim.kernel = kernel.name;
      claim.seconds = 1e-4;
      claim.workspace = 4096;
      claim.operands.resize(op.operands.size());
      claim.results.resize(op.results.size());
      return {claim};
    }
    return {};
  }
};

}  // namespace fluid
