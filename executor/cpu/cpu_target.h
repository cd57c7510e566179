#pragma once

#include <memory>
#include <string>

#include "executor/device/kernel_memo.h"
#include "passes/target.h"

namespace fluid {

/// What the cost model needs to know of a CPU. Bandwidths and rates are those of one thread.
struct TargetDescription {
  std::string name = "cpu";
  int threads = 1;
  int vector_bits = 256;
  int64_t l2_bytes = 1 << 20;  ///< of one core
  double gflops_f32 = 60;      ///< multiply and add counted as two
  double memory_gbs = 12;      ///< read from memory
  double cache_gbs = 60;       ///< read from the last-level cache or below
  bool bf16 = false;           ///< has bf16 dot products
};

/// This machine, from what the operating system says; rates follow from the vector width.
TargetDescription describe_host(int threads);
/// The JSON that `fluidrun devices --json` prints, and back. Throws UserError naming the file and
/// the entry that is unknown, missing or of the wrong kind. kMachineEntry, where `devices` tells
/// people what it knows besides, is not read.
inline constexpr const char* kMachineEntry = "machine";
std::string to_json(const TargetDescription& description);
TargetDescription target_from_json(const std::string& text, const std::string& file);

/// A CPU as the passes see it: itself or only described.
class CpuTarget : public Target {
 public:
  explicit CpuTarget(TargetDescription description) : cpu_(std::move(description)) {}
  std::string name() const override { return cpu_.name; }
  int threads() const override { return cpu_.threads; }
  /// Whether the libraries of this process can speak for it: they know only the instruction set
  /// that they run on. Without them there are no claims.
  bool has_this_instruction_set() const;
  std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const override;
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// What scratch() has scheduled, for whoever compiles what it planned.
  KernelMemo& kernels() const { return *kernels_; }

 private:
  TargetDescription cpu_;
  std::unique_ptr<KernelMemo> kernels_ = std::make_unique<KernelMemo>();
};

}  // namespace fluid
