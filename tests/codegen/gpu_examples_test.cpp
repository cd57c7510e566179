// The GPU kernels of whole training programs: valid code, and the same results as the CPU's.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "codegen/gpu_guard.h"
#include "codegen/schedule.h"
#include "executor/gpu/gpu_target.h"
#include "ir/tensor.h"
#include "ops/program_file.h"
#include "passes/pass.h"
#include "tests/support/full_run.h"
#include "tests/support/gpu_emulator.h"
#include "tests/support/h200.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/plain_target.h"
#include "tests/support/ptx.h"

namespace fluid::testing::gpu_examples_test {
namespace {

/// The program after all passes, with generated kernels only.
std::unique_ptr<ir::Program> prepared(const std::string& example, const Options& wanted) {
  Options options = wanted;
  options.use_libraries = false;
  auto program = load_program(FLUID_BINARY_DIR "/examples/" + example + ".fluid");
  run_passes(*program, pipeline(options), options, PlainTarget());
  return program;
}

void for_each_group(const ir::Program& program,
                    const std::function<void(const ir::Graph& body)>& visit) {
  for (const auto& op : program.main().ops) {
    if (op->name == "fused") visit(*program.find(op->attrs.get<GraphRef>("body").name));
  }
}

AmpOptions amp(AmpLevel level, DType dtype) { return {.dtype = dtype, .level = level}; }

void add_kernels(std::vector<kir::Kernel>& kernels, const std::string& example,
                 const Options& options) {
  for_each_group(*prepared(example, options), [&](const ir::Graph& body) {
    for (kir::Kernel& k : schedule_gpu(body, body.name)) kernels.push_back(std::move(k));
  });
}

TEST(GpuExamples, EveryKernelAssembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  auto add = [&](const std::string& example, const Options& options) {
    add_kernels(kernels, example, options);
  };
  for (const std::string example : {"linear_regression", "mnist_fluid", "mnist_cnn"}) {
    for (const Mode mode : {Mode::init, Mode::train, Mode::eval, Mode::predict}) {
      add(example, {.mode = mode, .batch = 100});
    }
  }
  add("mnist_cnn", {.batch = 32});
  for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
    for (const DType dtype : {bf16, f16}) add("mnist_cnn", {.batch = 32, .amp = amp(level, dtype)});
  }
  expect_assembles(assembler, kernels, gpu_architectures());
}

/// Adds the kernels that are generated beside library kernels. Adds optimizer kernels also in the
/// form that does nothing after rejected data.
void add_kernels_beside_libraries(std::vector<kir::Kernel>& kernels, const std::string& example,
                                  const Options& options) {
  auto program = load_program(FLUID_BINARY_DIR "/examples/" + example + ".fluid");
  run_passes(*program, pipeline(options), options, GpuTarget(kH200));
  for (const auto& op : program->main().ops) {
    if (op->name != "fused" || op->attrs.has("kernel")) continue;
    const std::string body = op->attrs.get<GraphRef>("body").name;
    for (kir::Kernel& k : schedule_gpu(*program->find(body), body)) {
      if (op->role == ir::Role::optimize) kernels.push_back(skip_if_rejected(k));
      kernels.push_back(std::move(k));
    }
  }
}

class GpuNetworks : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuNetworks, AssembleBesideLibraries) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<Options> wanted(5, Options{.batch = 64});
  wanted[1].amp = amp(AmpLevel::o1, bf16);
  wanted[2].amp = amp(AmpLevel::o2, f16);
  wanted[3].mode = Mode::predict;
  wanted[3].amp = amp(AmpLevel::o1, f16);
  wanted[4].world = 2;
  wanted[4].shard_optimizer = wanted[4].scale_partial_loss = true;
  std::vector<kir::Kernel> kernels;
  for (const Options& o : wanted) add_kernels_beside_libraries(kernels, GetParam(), o);
  EXPECT_GT(kernels.size(), 50U);
  expect_assembles(assembler, kernels, gpu_architectures());
}

class GpuRankNetworks : public GpuNetworks {};

/// Micro-batches, and the kernels of data-parallel steps: synchronized statistics, half-precision
/// gradients, loss scaling.
TEST_P(GpuRankNetworks, AssembleInPartsAndBetweenProcesses) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<Options> wanted(5, Options{.batch = 64, .scale_partial_loss = true, .world = 2});
  wanted[0].micro_batch = MicroBatchKind::first;
  wanted[0].world = 1;
  wanted[0].check_finite = true;
  wanted[1].micro_batch = MicroBatchKind::middle;
  wanted[1].amp = amp(AmpLevel::o1, bf16);
  wanted[2].micro_batch = MicroBatchKind::last;
  wanted[2].check_finite = true;
  wanted[2].buckets.dtype = bf16;
  wanted[3].sync_bn = true;
  wanted[3].buckets.dtype = f16;
  wanted[3].amp = amp(AmpLevel::o2, f16);
  wanted[4].micro_batch = MicroBatchKind::empty;
  std::vector<kir::Kernel> kernels;
  for (const Options& o : wanted) add_kernels_beside_libraries(kernels, GetParam(), o);
  EXPECT_GT(kernels.size(), 50U);
  expect_assembles(assembler, kernels, {"sm_80"});
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Examples, GpuNetworks, ::testing::Values("resnet18", "alexnet_cifar10"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuNetworks, ::testing::Values("mnist_cnn", "mnist_fluid"), name_of);
INSTANTIATE_TEST_SUITE_P(Examples, GpuRankNetworks, ::testing::Values("resnet18"), name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuRankNetworks,
                         ::testing::Values("mnist_cnn", "mnist_fluid", "alexnet_cifar10"), name_of);

/// Convolutions too, which libraries do not compute in f64: some of these spill a little.
TEST(GpuExamples, EveryKernelInF64Assembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> examples = {"resnet18"};
  if (is_full_run()) examples.insert(examples.end(), {"mnist_cnn", "alexnet_cifar10"});
  for (const std::string& example : examples) {
    add_kernels_beside_libraries(kernels, example, {.batch = 64, .dtype = f64});
  }
  EXPECT_GT(kernels.size(), 50U);
  expect_assembles(assembler, kernels, gpu_architectures(), {.spilled = 160});
}

/// Kernels that sweep over all parameters of a network. The registers per thread must not grow with
/// the number of buffers, or occupancy would fall.
TEST(GpuExamples, SweepsOverManyBuffersAssemble) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  add_kernels(kernels, "resnet18", {.batch = 32});
  for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
    for (const DType dtype : {bf16, f16}) {
      add_kernels(kernels, "resnet18", {.batch = 32, .amp = amp(level, dtype)});
    }
  }
  std::erase_if(kernels, [](const kir::Kernel& k) { return k.buffers.size() <= 40; });
  EXPECT_FALSE(kernels.empty());
  expect_assembles(assembler, kernels, gpu_architectures(), {.registers = 80});
}

/// Memory for a kernel's buffers: operands at random, results zero.
std::vector<Tensor> memory_for(const kir::Kernel& kernel, int64_t batch, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(0.1, 2);
  std::vector<Tensor> memory;
  for (const kir::Buffer& b : kernel.buffers) {
    if (b.role != kir::Buffer::Role::in) {
      memory.push_back(memory_of(kernel, b, batch));
      continue;
    }
    Tensor t(f64, {b.elements.at(batch)});
    for (double& x : t.as<double>()) {
      x = is_float(b.dtype) ? real(random) : static_cast<double>(random() % 2);
    }
    memory.push_back(t.cast(b.dtype));
  }
  return memory;
}

std::vector<void*> pointers_to(std::vector<Tensor>& memory) {
  std::vector<void*> pointers;
  for (Tensor& t : memory) pointers.push_back(t.data());
  return pointers;
}

/// Tolerance for sums in another order; half-precision results may round differently.
double tolerance(DType dtype) {
  if (!is_float(dtype)) return 0;
  return dtype == f64 ? 1e-11 : dtype == f32 ? 1e-4 : dtype == f16 ? 2e-3 : 1.6e-2;
}

void expect_equal(const kir::Kernel& kernel, const std::vector<Tensor>& cpu,
                  const std::vector<Tensor>& gpu) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const kir::Buffer& b = kernel.buffers[i];
    if (b.role != kir::Buffer::Role::out) continue;
    for (int64_t j = 0; j < cpu[i].numel(); ++j) {
      const double want = cpu[i].at(j), got = gpu[i].at(j);
      if (std::isnan(want) && std::isnan(got)) continue;
      if (want == got) continue;
      ASSERT_NEAR(want, got, tolerance(b.dtype) * (1 + std::fabs(want)))
          << b.name << "[" << j << "] of " << kir::print(kernel);
    }
  }
}

/// Every kernel of a program on the CPU and on an emulated GPU, from equal operands.
void expect_places_agree(const std::string& example, const Options& options,
                         const std::string& architecture = "sm_90") {
  SCOPED_TRACE(example);
  const auto program = prepared(example, options);
  Compiler compiler{CompilerOptions{}};
  GpuEmulator emulator(architecture);
  uint64_t seed = 0;
  for_each_group(*program, [&](const ir::Graph& body) {
    if (::testing::Test::HasFatalFailure()) return;
    const int64_t batch = options.batch;
    const kir::Kernel kernel = schedule(body, "k");
    std::vector<Tensor> cpu = memory_for(kernel, batch, ++seed);
    const std::vector<void*> cpu_memory = pointers_to(cpu);
    const CompiledKernel code = compiler.compile(kernel);
    code.body(cpu_memory.data(), batch, 0, kir::evaluate(kernel.blocks, batch));
    if (code.finish != nullptr) code.finish(cpu_memory.data(), batch, 0, 1);

    const std::vector<kir::Kernel> passes = schedule_gpu(body, "k");
    std::vector<Tensor> gpu = memory_for(passes.front(), batch, seed);
    emulator.run(passes, pointers_to(gpu), batch, 1000);
    expect_equal(kernel, cpu, gpu);
  });
  EXPECT_GT(seed, 0U) << "no kernels";
}

TEST(GpuExamples, KernelsComputeWhatTheCpusDo) {
  expect_places_agree("linear_regression", {.batch = 700});
  expect_places_agree("mnist_fluid", {.batch = 2});
  expect_places_agree("mnist_cnn", {.batch = 2, .amp = amp(AmpLevel::o2, f16)}, "sm_120");
  expect_places_agree("mnist_cnn", {.mode = Mode::init, .batch = 3});
  if (!is_full_run()) return;
  expect_places_agree("mnist_cnn", {.batch = 3});
  expect_places_agree("mnist_cnn", {.batch = 3, .amp = amp(AmpLevel::o1, bf16)}, "sm_100");
  expect_places_agree("mnist_cnn", {.mode = Mode::eval, .batch = 3});
}

}  // namespace
}  // namespace fluid::testing::gpu_examples_test
