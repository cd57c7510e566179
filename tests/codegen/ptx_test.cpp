#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "codegen/compiler.h"
#include "ir/error.h"
#include "tests/support/kir_builder.h"
#include "tests/support/kir_samples.h"
#include "tests/support/temp_dir.h"

namespace fluid::testing {
namespace {

/// The assembler's path, or "" when there is none.
std::string ptxas() {
  for (const char* candidate : {"/usr/local/cuda/bin/ptxas", "ptxas"}) {
    if (std::system((std::string(candidate) + " --version > /dev/null 2>&1").c_str()) == 0) {
      return candidate;
    }
  }
  return "";
}

TEST(Ptx, EveryScalarAssembles) {
  const std::string assembler = ptxas();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas in /usr/local/cuda/bin or on the PATH";
  const TempDir dir;
  const std::vector<kir::Kernel> kernels = every_scalar_kernels();
  for (const std::string arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    const std::string source = dir.path() + "/" + arch + ".ptx";
    const std::string log = dir.path() + "/log";
    std::ofstream(source) << emit_ptx(kernels, arch);
    const std::string command =
        assembler + " -arch=" + arch + " -o /dev/null " + source + " > " + log + " 2>&1";
    std::ifstream messages;
    const int status = std::system(command.c_str());
    messages.open(log);
    EXPECT_EQ(status, 0) << arch << ": "
                         << std::string(std::istreambuf_iterator<char>(messages), {});
  }
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
    EXPECT_THROW(emit_ptx({}, arch), UserError) << arch;
  }
}

}  // namespace
}  // namespace fluid::testing
