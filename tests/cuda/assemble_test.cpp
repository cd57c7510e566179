#include <gtest/gtest.h>

#include <string_view>

#include "codegen/gpu.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/result.h"
#include "tests/support/kir_samples.h"

/// nvJitLink leaks memory when it rejects a text.
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink.so"; }

namespace fluid::cuda::assemble_test {
namespace {

constexpr std::string_view kKernel = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 to) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

TEST(Assemble, MakesCodeForEveryArchitecture) {
  for (const int architecture : {80, 90, 100, 120}) {
    void* image = nullptr;
    size_t bytes = 0;
    ASSERT_EQ(assemble_for(architecture, kKernel.data(), kKernel.size(), &image, &bytes),
              fluid_gpu_ok)
        << last_error();
    const std::string_view code(static_cast<const char*>(image), bytes);
    EXPECT_TRUE(code.starts_with("\177ELF")) << architecture;
    EXPECT_NE(code.find(".text.fill"), std::string_view::npos) << architecture;
    free_cubin(image);
  }
}

TEST(Assemble, TakesWhatTheCodeGeneratorMakes) {
  std::vector<kir::Kernel> kernels;
  for (const kir::Kernel& kernel : testing::every_scalar_kernels()) {
    for (kir::Kernel& pass : split_off_finish(kernel)) {
      pass.name = "k_" + std::to_string(kernels.size());
      kernels.push_back(std::move(pass));
    }
  }
  const GpuProgram program = compile_ptx(kernels, "sm_90");
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(assemble_for(90, program.ptx.data(), program.ptx.size(), &image, &bytes), fluid_gpu_ok)
      << last_error();
  const std::string_view code(static_cast<const char*>(image), bytes);
  for (const GpuLaunch& launch : program.launches) {
    EXPECT_NE(code.find(".text." + launch.entry), std::string_view::npos) << launch.entry;
  }
  free_cubin(image);
}

TEST(Assemble, SaysWhatIsWrong) {
  void* image = nullptr;
  size_t bytes = 0;
  std::string wrong(kKernel);
  wrong.replace(wrong.find("mov.u32"), 7, "mow.u32");
  EXPECT_EQ(assemble_for(90, wrong.data(), wrong.size(), &image, &bytes), fluid_gpu_invalid_usage);
  EXPECT_NE(std::string(last_error()).find("mow"), std::string::npos) << last_error();
  EXPECT_EQ(image, nullptr);
  EXPECT_EQ(std::string(last_error()).find('\n'), std::string::npos) << last_error();
  EXPECT_EQ(assemble_for(99, kKernel.data(), kKernel.size(), &image, &bytes), fluid_gpu_unusable);
  EXPECT_NE(std::string(last_error()).find("sm_99: "), std::string::npos) << last_error();
}

}  // namespace
}  // namespace fluid::cuda::assemble_test
