#pragma once

// The finish of a kernel, which runs once after all blocks. It combines partial results in a fixed
// order, then computes the sinks that need them, in small serial loops.

#include "codegen/schedule_sweep.h"

namespace fluid {

class Finish {
 public:
  explicit Finish(KernelBuilder& builder) : b_(builder) {}
  /// Appends the finish of one part to the kernel's finish.
  void emit(const GroupPart& part, const Sweep& sweep);

 private:
  struct Stored {  ///< buffers that hold a reduction's results
    int64_t buffers[2] = {-1, -1};
  };
  void combine(const Partial& partial, const Expr& blocks);
  void reduce(const FlatSink& sink);
  void map(std::vector<FlatSink> sinks);
  void keep(const FlatSink& sink, int64_t acc, bool lanes, kir::Block& out);
  FlatSink flat(int id);
  Expr read_kept(const Expr& let);

  KernelBuilder& b_;
  std::map<int, Stored> stored_;
};

}  // namespace fluid
