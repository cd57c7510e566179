#include "tests/support/gpu_emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <array>

#include "codegen/compiler.h"
#include "codegen/emulated_thread.h"
#include "codegen/gpu.h"
#include "ir/error.h"

namespace fluid::testing {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr int64_t kWarpThreads = 32;

struct Group;

struct Fiber : EmulatedThread {
  Group* owner = nullptr;
  ucontext_t context{};
  std::vector<void*> arguments;
  bool done = false;
  /// How often it has waited with its warp or less, and with the group; what it gave last.
  std::array<int64_t, 2> waits{};
  std::array<uint64_t, 2> given{};
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
};

/// The threads of one group, run in turns.
struct Group {
  std::vector<std::unique_ptr<Fiber>> fibers;
  ucontext_t scheduler{};
  std::array<uint64_t, 64> shared{};
  KernelFn body = nullptr;
  int64_t batch = 0;
  bool moved = false;

  explicit Group(int64_t threads) {
    for (int64_t i = 0; i < threads; ++i) fibers.push_back(std::make_unique<Fiber>());
  }

  void yield(Fiber& f) { swapcontext(&f.context, &scheduler); }

  /// Until all of the aligned `size` threads around `f` have come as far.
  void wait(Fiber& f, int64_t size, size_t kind) {
    const int64_t mine = ++f.waits[kind];
    moved = true;
    const int64_t first = f.thread / size * size;
    auto here = [&] {
      for (int64_t i = first; i < first + size; ++i) {
        if (fibers[static_cast<size_t>(i)]->waits[kind] < mine) return false;
      }
      return true;
    };
    while (!here()) yield(f);
  }

  void run(bool backwards) {
    for (bool all = false; !all;) {
      all = true;
      moved = false;
      for (size_t n = 0; n < fibers.size(); ++n) {
        Fiber& f = *fibers[backwards ? fibers.size() - 1 - n : n];
        if (f.done) continue;
        swapcontext(&scheduler, &f.context);
        moved = moved || f.done;
        all = all && f.done;
      }
      check(all || moved, "threads of a group wait for others that do not come");
    }
  }
};

void start(unsigned low, unsigned high) {
  auto* f =
      reinterpret_cast<Fiber*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
  f->owner->body(f->arguments.data(), f->owner->batch, 0, 0);
  f->done = true;
  f->owner->yield(*f);
}

void wait(EmulatedThread* self, int64_t size) {
  auto* f = static_cast<Fiber*>(self);
  f->owner->wait(*f, size, size > kWarpThreads);
}

uint64_t exchange(EmulatedThread* self, uint64_t bits, int64_t distance, int64_t size) {
  auto* f = static_cast<Fiber*>(self);
  // Nobody gives again before all have taken: by turns, two places are enough.
  const auto place = static_cast<size_t>(f->waits[0] % 2);
  f->given[place] = bits;
  f->owner->wait(*f, size, 0);
  return f->owner->fibers[static_cast<size_t>(f->thread ^ distance)]->given[place];
}

/// Lets the fiber begin at the kernel's entry. Not inlined: getcontext is said to return twice.
[[gnu::noinline]] void prepare(Fiber& f) {
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack.get();
  f.context.uc_stack.ss_size = kStackBytes;
  const auto address = reinterpret_cast<uintptr_t>(&f);
  makecontext(&f.context, reinterpret_cast<void (*)()>(start), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
}

}  // namespace

struct GpuEmulator::Impl {
  Compiler compiler{CompilerOptions{.emulate_gpu = true}};
};

GpuEmulator::GpuEmulator() : impl_(std::make_unique<Impl>()) {}
GpuEmulator::~GpuEmulator() = default;

void GpuEmulator::run(std::span<const kir::Kernel> passes, std::span<void* const> buffers,
                      int64_t batch, int64_t groups, bool backwards) {
  const std::vector<CompiledKernel> code = impl_->compiler.compile(passes);
  for (size_t p = 0; p < passes.size(); ++p) {
    const int64_t threads = threads_of(passes[p].team);
    const int64_t teams = threads / passes[p].team;
    const int64_t blocks = kir::evaluate(passes[p].blocks, batch);
    const int64_t launched = std::min((blocks + teams - 1) / teams, groups);
    Group group(threads);
    group.body = code[p].body;
    group.batch = batch;
    for (int64_t g = 0; g < launched; ++g) {
      for (int64_t t = 0; t < threads; ++t) {
        Fiber& f = *group.fibers[static_cast<size_t>(t)];
        static_cast<EmulatedThread&>(f) = {t, g, launched, group.shared.data(), wait, exchange};
        f.owner = &group;
        f.arguments.assign(buffers.begin(), buffers.end());
        f.arguments.push_back(static_cast<EmulatedThread*>(&f));
        f.done = false;
        f.waits = {};
        prepare(f);
      }
      group.run(backwards);
    }
  }
}

}  // namespace fluid::testing
