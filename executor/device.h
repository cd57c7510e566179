#pragma once

#include <array>
#include <memory>
#include <string>

#include "executor/compile_report.h"
#include "executor/variables.h"
#include "passes/memory_plan.h"
#include "passes/options.h"
#include "passes/target.h"

namespace fluid {

/// Where a step's memory is. Addresses stay until the next bind.
struct Memory {
  std::byte* state = nullptr;                   ///< variables lie at their table's offsets
  std::array<std::byte*, 2> slots = {};         ///< feeds and outputs of even and odd steps
  std::byte* transient = nullptr;
};

/// How a step ended. When it is not good, no variable has changed.
struct Status {
  const ir::Op* op = nullptr;   ///< the op that met bad data, or null
  int64_t element = 0;          ///< where in the op's result, or of its index operand
  bool good() const { return op == nullptr; }
};

/// A program compiled for one batch size: a flat list of calls.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual void bind(const Memory& memory, const Variables& variables) = 0;
  /// Runs the whole step with the feeds and outputs of slot 0 or 1. Allocates nothing.
  virtual Status run(int slot) = 0;
};

/// A place that runs programs.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Target& target() const = 0;
  virtual int threads() const = 0;   ///< of the host, for copies
  /// Compiles the main graph of a program that went through the whole pipeline. Both arguments must
  /// live as long as the result.
  virtual std::unique_ptr<Executable> build(const ir::Program& final_program,
                                            const MemoryPlan& plan, const Options& options) = 0;
  virtual CompileReport report() const = 0;
};

}  // namespace fluid
