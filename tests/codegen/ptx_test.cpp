#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include "codegen/compiler.h"
#include "executor/cpu/kernels.h"
#include "ops/program_file.h"
#include "passes/pass.h"
#include "tests/support/errors.h"
#include "tests/support/kir_samples.h"
#include "tests/support/plain_target.h"

namespace fluid::testing {
namespace {

TEST(Ptx, EveryScalarAssembles) {
  const std::string assembler = ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  expect_assembles(assembler, every_scalar_kernels(), {"sm_80", "sm_90", "sm_100", "sm_120"});
}

/// The kernels of `program` in one mode, all of them generated.
void add_kernels(const ir::Program& program, Mode mode, std::vector<kir::Kernel>& kernels) {
  KernelMemo memo;
  const Options options{.mode = mode, .batch = 100, .libraries = false};
  const auto copy = program.clone();
  run_passes(*copy, pipeline(options), options, PlainTarget());
  for (const auto& op : copy->main().ops) {
    if (op->name == "fused") kernels.push_back(memo.kernel_of(*op));
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
  expect_assembles(assembler, kernels, {"sm_80", "sm_90", "sm_100"});
}

TEST(Ptx, CallsNothingAndStridesOverTheGrid) {
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    const std::string text = emit_ptx({&kernel, 1}, "sm_90");
    EXPECT_EQ(text.find("call"), std::string::npos) << kernel.name;
    EXPECT_NE(text.find(".entry " + kernel.name + "("), std::string::npos);
    EXPECT_NE(text.find("%nctaid.x"), std::string::npos);
  }
}

TEST(Ptx, RefusesOtherArchitectures) {
  for (const char* arch : {"gfx90a", "sm_70", "sm_", "sm_90x", ""}) {
    expect_user_error(
        [&] { emit_ptx({}, arch); },
        "no code for the GPU architecture '" + std::string(arch) + "': give sm_80 or newer");
  }
}

}  // namespace
}  // namespace fluid::testing
