#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include "codegen/gpu.h"
#include "ops/program_file.h"
#include "passes/pass.h"
#include "tests/support/errors.h"
#include "tests/support/kir_samples.h"
#include "tests/support/plain_target.h"

namespace fluid::testing {
namespace {

const std::vector<std::string> kArchitectures = {"sm_80", "sm_90", "sm_100", "sm_120"};

TEST(Ptx, EveryScalarAssembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    for (kir::Kernel& pass : passes_of(kernel)) kernels.push_back(std::move(pass));
  }
  expect_assembles(assembler, std::move(kernels), kArchitectures);
}

/// The kernels of `program` in one mode, all of them generated.
void add_kernels(const ir::Program& program, Mode mode, std::vector<kir::Kernel>& kernels) {
  const Options options{.mode = mode, .batch = 100, .libraries = false};
  const auto copy = program.clone();
  run_passes(*copy, pipeline(options), options, PlainTarget());
  for (const auto& op : copy->main().ops) {
    if (op->name != "fused") continue;
    const ir::Graph* body = copy->find(op->attrs.get<GraphRef>("body").name);
    for (kir::Kernel& kernel : schedule_gpu(*body, body->name)) {
      kernels.push_back(std::move(kernel));
    }
  }
}

TEST(Ptx, EveryKernelOfTheExamplesAssembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  std::vector<kir::Kernel> kernels;
  for (const std::string name : {"linear_regression", "mnist_fluid", "mnist_cnn"}) {
    const auto program = load_program(FLUID_BINARY_DIR "/examples/" + name + ".fluid");
    for (const Mode mode : {Mode::init, Mode::train, Mode::eval}) {
      add_kernels(*program, mode, kernels);
    }
  }
  expect_assembles(assembler, kernels, kArchitectures);
}

TEST(Ptx, CallsNothing) {
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    const std::string text = compile_ptx(passes_of(kernel), "sm_90").ptx;
    EXPECT_EQ(text.find("call"), std::string::npos) << kernel.name;
    EXPECT_NE(text.find(".entry " + kernel.name + "("), std::string::npos);
    EXPECT_NE(text.find("%ctaid.x"), std::string::npos);
  }
}

TEST(Ptx, RefusesOtherArchitectures) {
  for (const char* arch : {"gfx90a", "sm_70", "sm_", "sm_90x", ""}) {
    expect_user_error(
        [&] { compile_ptx({}, arch); },
        "no code for the GPU architecture '" + std::string(arch) + "': give sm_80 or newer");
  }
}

}  // namespace
}  // namespace fluid::testing
