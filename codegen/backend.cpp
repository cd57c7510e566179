#include "codegen/backend.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InferAlignment.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoadStoreVectorizer.h>

#include <array>
#include <charconv>
#include <mutex>
#include <new>
#include <string_view>

#include "codegen/emit.h"
#include "codegen/emit_masked.h"
#include "ir/error.h"

namespace fluid::emit {
namespace {

#if LLVM_VERSION_MAJOR >= 21
llvm::Triple triple_of(const std::string& text) { return llvm::Triple(text); }
#else
const std::string& triple_of(const std::string& text) { return text; }
#endif

// A GPU architecture, sm_<number>. `llvm` is the first LLVM major version that supports it; 0: all
// versions that can compile this file.
struct GpuArch {
  int number, llvm;
};
constexpr std::array kGpuArchs = {GpuArch{80, 0},   GpuArch{86, 0},   GpuArch{89, 0},
                                  GpuArch{90, 0},   GpuArch{100, 20}, GpuArch{103, 21},
                                  GpuArch{120, 20}, GpuArch{121, 21}};

/// Calls the new-handler once, then throws std::bad_alloc. operator new would call the handler
/// in a loop.
[[noreturn]] void throw_bad_alloc() {
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

/// Installs LLVM error handlers that throw exceptions instead of ending the process. Such an
/// exception unwinds LLVM's stack frames without running their destructors.
void install_throwing_error_handlers() {
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw_bad_alloc(); });
  llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
    if (std::string_view(reason).starts_with("Unable to allocate")) throw_bad_alloc();
    throw InternalError("LLVM: " + std::string(reason));
  });
}

void initialise_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    install_throwing_error_handlers();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

}  // namespace

TargetSpec cpu_target_spec(const std::string& cpu) {
  TargetSpec spec;
  spec.triple = llvm::sys::getProcessTriple();
  spec.cpu = cpu;
  if (!cpu.empty()) return spec;
  spec.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  }
  std::sort(features.begin(), features.end());
  for (const std::string& feature : features) {
    spec.features += (spec.features.empty() ? "" : ",") + feature;
  }
  return spec;
}

TargetSpec gpu_target_spec(const std::string& arch) {
  int number = 0;
  const char* end = arch.data() + arch.size();
  const bool has_prefix = arch.starts_with("sm_");
  auto parsed = std::from_chars(arch.data() + std::min<size_t>(3, arch.size()), end, number);
  if (!has_prefix || parsed.ec != std::errc() || parsed.ptr != end || number < 80) {
    throw UserError("no code for the GPU architecture '" + arch + "': give sm_80 or newer");
  }
  int best = 0;
  for (const GpuArch& known : kGpuArchs) {
    if (known.number <= number && LLVM_VERSION_MAJOR >= known.llvm) best = known.number;
  }
  // PTX 8.1 raises the size limit of the kernel parameters from 4352 to 32764 bytes. Fused
  // optimizer kernels have many parameters.
  return {"nvptx64-nvidia-cuda", "sm_" + std::to_string(best), best <= 90 ? "+ptx81" : "", true};
}

std::string code_generator_version() {
  return "llvm " LLVM_VERSION_STRING " emitter " + std::to_string(kEmitterVersion);
}

struct Backend::Impl {
  TargetSpec spec;
  std::unique_ptr<llvm::TargetMachine> target;

  explicit Impl(const TargetSpec& m) : spec(m) {
    initialise_targets();
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(
#if LLVM_VERSION_MAJOR >= 22
        triple_of(spec.triple), error);
#else
        spec.triple, error);
#endif
    check(found != nullptr, "LLVM has no target for " + spec.triple + ": " + error);
    llvm::TargetOptions options;
    target.reset(found->createTargetMachine(triple_of(spec.triple), spec.cpu, spec.features,
                                            options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                            llvm::CodeGenOptLevel::Default));
    check(target != nullptr, "LLVM cannot make code for " + spec.cpu);
  }

  std::unique_ptr<llvm::Module> build(llvm::LLVMContext& context,
                                      std::span<const NamedKernel> kernels) {
    auto module = std::make_unique<llvm::Module>("fluid", context);
    module->setTargetTriple(triple_of(spec.triple));
    module->setDataLayout(target->createDataLayout());
    const Device device = spec.gpu ? Device::gpu : Device::cpu;
    const bool avx512 = !spec.gpu && target->getTargetTriple().isX86() &&
                        target->getMCSubtargetInfo()->checkFeatures("+avx512f,+avx512vl");
    for (const NamedKernel& k : kernels)
      KernelEmitter(*module, *k.kernel, device, avx512).emit_kernel(k.symbol);
    for (llvm::Function& f : *module) {
      if (f.isDeclaration()) continue;
      f.addFnAttr("target-cpu", spec.cpu);
      f.addFnAttr("target-features", spec.features);
      f.addFnAttr("prefer-vector-width", "512");
    }
    return module;
  }

  /// Width of the target's vector registers in bits.
  unsigned register_bits(const llvm::Function& f) const {
    return static_cast<unsigned>(
        target->getTargetTransformInfo(f)
            .getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector)
            .getFixedValue());
  }

  /// Runs SROA, CSE, LICM and clean-up passes. The loop vectorizer and unroller are left out,
  /// because the loops of the kernel IR are already vectorized and unrolled.
  void optimise(llvm::Module& module) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(target.get());
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);

    llvm::FunctionPassManager passes, gpu_passes, split_passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                         /*UseMemorySSA=*/true));
    passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::DSEPass());
    // Merges adjacent loads and stores of one GPU thread into vector accesses.
    gpu_passes.addPass(llvm::InferAlignmentPass());
    gpu_passes.addPass(llvm::LoadStoreVectorizerPass());
    split_passes.addPass(llvm::InstCombinePass());  // removes accesses whose mask is all false
    for (llvm::Function& f : module) {
      if (f.isDeclaration()) continue;
      passes.run(f, functions);
      if (spec.gpu) {
        load_lane_by_lane(f);
      } else if (!split_masked_accesses(f, register_bits(f))) {
        continue;
      }
      functions.invalidate(f, llvm::PreservedAnalyses::none());
      (spec.gpu ? gpu_passes : split_passes).run(f, functions);
    }
  }
};

Backend::Backend(const TargetSpec& spec) : impl_(std::make_unique<Impl>(spec)) {}
Backend::~Backend() = default;

std::string Backend::compile(std::span<const NamedKernel> kernels, OutputKind output_kind) {
  llvm::LLVMContext context;
  auto module = impl_->build(context, kernels);
  impl_->optimise(*module);
  if (output_kind == OutputKind::llvm) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, nullptr);
    return text;
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = output_kind == OutputKind::object ? llvm::CodeGenFileType::ObjectFile
                                                      : llvm::CodeGenFileType::AssemblyFile;
  const bool unsupported = impl_->target->addPassesToEmitFile(passes, stream, nullptr, type);
  check(!unsupported, "LLVM cannot emit this kind of file for " + impl_->spec.cpu);
  passes.run(*module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace fluid::emit
