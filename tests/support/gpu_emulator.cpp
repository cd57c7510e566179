#include "tests/support/gpu_emulator.h"

#include <algorithm>
#include <map>

#include "codegen/gpu.h"
#include "ir/error.h"
#include "tests/support/ptx_machine.h"

namespace fluid::testing {
namespace {

/// The memory of a launch: one block a buffer.
std::vector<PtxBlock> blocks_of(const kir::Kernel& pass, std::span<void* const> buffers,
                                int64_t batch) {
  check(buffers.size() == pass.buffers.size(), "a kernel is run with other buffers than its own");
  std::vector<PtxBlock> blocks;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const kir::Buffer& b = pass.buffers[i];
    const auto* begin = static_cast<const std::byte*>(buffers[i]);
    blocks.push_back({begin, begin + b.elements.at(batch) * size_of(b.dtype)});
  }
  return blocks;
}

}  // namespace

struct GpuEmulator::Impl {
  const PtxMachine& gpu_fingerprint(const kir::Kernel& pass) {
    std::unique_ptr<PtxMachine>& machine = machines[kir::print(pass)];
    if (!machine) machine = std::make_unique<PtxMachine>(compile_ptx({&pass, 1}, architecture).ptx);
    return *machine;
  }

  std::string architecture;
  std::map<std::string, std::unique_ptr<PtxMachine>> machines;  ///< by the kernel's text
};

GpuEmulator::GpuEmulator(std::string architecture) : impl_(std::make_unique<Impl>()) {
  impl_->architecture = std::move(architecture);
}
GpuEmulator::~GpuEmulator() = default;

void GpuEmulator::run(std::span<const kir::Kernel> passes, std::span<void* const> buffers,
                      int64_t batch, int64_t groups, bool backwards) {
  for (const kir::Kernel& pass : passes) {
    const int64_t threads = threads_per_block(pass.thread_group_size),
                  thread_groups = threads / pass.thread_group_size;
    const int64_t blocks = kir::evaluate(pass.blocks, batch);
    const int64_t launched = std::min((blocks + thread_groups - 1) / thread_groups, groups);
    std::vector<uint64_t> arguments;
    for (void* buffer : buffers) arguments.push_back(reinterpret_cast<uint64_t>(buffer));
    arguments.push_back(static_cast<uint64_t>(batch));
    const std::vector<PtxBlock> memory = blocks_of(pass, buffers, batch);
    const auto find = [&](const void* address) {
      for (const PtxBlock& block : memory) {
        if (block.begin <= address && address < block.end) return block;
      }
      return PtxBlock();
    };
    impl_->gpu_fingerprint(pass).run(pass.name, launched, threads, arguments, find,
                                     {.backwards = backwards, .must_be_given = true});
  }
}

}  // namespace fluid::testing
