#include "codegen/compiler.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "codegen/backend.h"
#include "codegen/object_cache.h"
#include "ir/error.h"
#include "ir/stopwatch.h"
#include "ir/threads.h"

namespace fluid {
namespace {

using emit::Backend;

/// Throws the LLVM error as DeviceError if memory is exhausted, else as InternalError.
[[noreturn]] void throw_llvm_error(llvm::Error error) {
  std::string text;
  bool no_memory = false;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase& info) {
    text = "linking a kernel: " + info.message();
    no_memory = info.convertToErrorCode() == std::errc::not_enough_memory;
  });
  if (no_memory) throw DeviceError(text);
  throw InternalError(text);
}

/// Returns the value of an llvm::Expected. On error, calls throw_llvm_error().
template <class T>
T unwrap(llvm::Expected<T> value) {
  if (!value) throw_llvm_error(value.takeError());
  return std::move(*value);
}

/// Resets the fields that do not affect the generated code: the name and, if Kernel::generic is
/// set, the number of blocks and the sizes of all buffers that are not inputs.
kir::Kernel without_unused_fields(kir::Kernel kernel) {
  kernel.name.clear();
  if (!kernel.generic) return kernel;
  kernel.blocks = Expr::index(INT32_MAX);
  for (kir::Buffer& buffer : kernel.buffers) {
    if (buffer.role != kir::Buffer::Role::in) buffer.elements = INT32_MAX;
  }
  return kernel;
}

struct Job {
  kir::Kernel kernel;
  std::string symbol;  ///< name of the generated function, and key in the object cache
  size_t text_size;    ///< length of the printed kernel IR, an estimate of the compile time
  std::string object;
  bool cached = false;
};

}  // namespace

struct Compiler::Impl {
  CompilerOptions options;
  emit::TargetSpec spec;
  std::string spec_text;
  ObjectCache cache;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::map<std::string, CompiledKernel> ready;
  CompileStats stats;
  std::mutex mutex;

  explicit Impl(CompilerOptions o)
      : options(std::move(o)),
        spec(emit::cpu_target_spec(options.cpu)),
        cache(ObjectCache::open_kernel_cache(options.cache_dir, options.cache_limit)) {
    spec_text = spec.triple + "\n" + spec.cpu + "\n" + spec.features + "\n" +
                emit::code_generator_version() + "\n";
  }

  /// Loads the object file of each job from the cache, or compiles the job's kernel. Uses up to
  /// `options.threads` threads.
  void make_objects(std::vector<Job>& jobs) {
    std::atomic<size_t> next = 0;
    auto work = [&] {
      std::unique_ptr<Backend> backend;
      for (size_t i; (i = next++) < jobs.size();) {
        Job& job = jobs[i];
        if (auto object = cache.find(job.symbol)) {
          job.object = std::move(*object);
          job.cached = true;
          continue;
        }
        if (!backend) backend = std::make_unique<Backend>(spec);
        const emit::NamedKernel named{&job.kernel, job.symbol};
        job.object = backend->compile({&named, 1}, Backend::OutputKind::object);
        cache.store(job.symbol, job.object);
      }
    };
    run_on_threads(std::min(jobs.size(), static_cast<size_t>(std::max(options.threads, 1))), work);
  }

  void link(std::vector<Job>& jobs) {
    if (!jit) {
      emit::Backend initialise_llvm(spec);
      jit = unwrap(llvm::orc::LLJITBuilder().create());
    }
    for (Job& job : jobs) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(job.object, job.symbol);
      if (llvm::Error error = jit->addObjectFile(std::move(buffer))) {
        throw_llvm_error(std::move(error));
      }
    }
    for (Job& job : jobs) {
      const auto at = ready.try_emplace(job.symbol).first;
      CompiledKernel& kernel = at->second;
      kernel.symbol = at->first;
      kernel.body = unwrap(jit->lookup(job.symbol)).toPtr<KernelFn>();
      if (job.kernel.finish.empty()) continue;
      kernel.finish = unwrap(jit->lookup(job.symbol + "_finish")).toPtr<KernelFn>();
    }
  }
};

Compiler::Compiler(CompilerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Compiler::~Compiler() = default;

CompiledKernel Compiler::compile(const kir::Kernel& kernel) {
  const kir::Kernel* one = &kernel;
  return compile({&one, 1}).front();
}

std::vector<CompiledKernel> Compiler::compile(std::span<const kir::Kernel* const> kernels) {
  std::lock_guard lock(impl_->mutex);
  const Stopwatch watch;
  std::map<const kir::Kernel*, std::string> symbols;
  std::vector<Job> jobs;
  std::set<std::string> queued;
  for (const kir::Kernel* kernel : kernels) {
    const auto [at, added] = symbols.try_emplace(kernel);
    if (!added) continue;
    kir::Kernel shared = without_unused_fields(*kernel);
    const std::string text = kir::print(shared);
    const std::string& symbol = at->second =
        "k" + ObjectCache::hash_digits(impl_->spec_text + text);
    if (impl_->ready.contains(symbol) || !queued.insert(symbol).second) continue;
    jobs.push_back({std::move(shared), symbol, text.size(), "", false});
  }
  // Compiles the longest kernels first, to balance the load of the threads.
  std::ranges::stable_sort(jobs, std::greater(), &Job::text_size);
  if (!jobs.empty()) {
    impl_->make_objects(jobs);
    impl_->link(jobs);
  }
  bool compiled = false;
  for (const Job& job : jobs) {
    ++(job.cached ? impl_->stats.cache_hits : impl_->stats.compiled);
    compiled = compiled || !job.cached;
  }
  if (compiled) impl_->cache.evict_if_due();
  std::vector<CompiledKernel> result;
  result.reserve(kernels.size());
  for (const kir::Kernel* kernel : kernels) result.push_back(impl_->ready.at(symbols.at(kernel)));
  impl_->stats.ms += watch.ms();
  return result;
}

CompileStats Compiler::stats() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

const std::string& Compiler::target_text() const { return impl_->spec_text; }

std::string emit_llvm(const kir::Kernel& kernel, const std::string& cpu) {
  const emit::NamedKernel named{&kernel, kernel.name};
  return Backend(emit::cpu_target_spec(cpu)).compile({&named, 1}, Backend::OutputKind::llvm);
}

std::string emit_assembly(const kir::Kernel& kernel, const std::string& cpu) {
  const emit::NamedKernel named{&kernel, kernel.name};
  return Backend(emit::cpu_target_spec(cpu)).compile({&named, 1}, Backend::OutputKind::assembly);
}

}  // namespace fluid
