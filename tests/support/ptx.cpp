#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "codegen/compiler.h"
#include "tests/support/temp_dir.h"

namespace fluid::testing {

std::string ptx_assembler() {
  for (const char* candidate : {"/usr/local/cuda/bin/ptxas", "ptxas"}) {
    if (std::system((std::string(candidate) + " --version > /dev/null 2>&1").c_str()) == 0) {
      return candidate;
    }
  }
  return "";
}

void expect_assembles(const std::string& assembler, std::vector<kir::Kernel> kernels,
                      const std::vector<std::string>& architectures) {
  std::set<std::string> seen;
  std::erase_if(kernels, [&](kir::Kernel& kernel) {
    const std::string name = std::exchange(kernel.name, "k");
    const bool known = !seen.insert(kir::print(kernel)).second;
    kernel.name = name + "_" + std::to_string(seen.size());
    return known;
  });
  const TempDir dir;
  const std::string source = dir.path() + "/kernels.ptx", log = dir.path() + "/log";
  for (const std::string& architecture : architectures) {
    std::ofstream(source) << emit_ptx(kernels, architecture);
    const std::string command = assembler + " -arch=" + architecture + " -o /dev/null " + source;
    const int status = std::system((command + " > " + log + " 2>&1").c_str());
    std::ifstream messages(log);
    EXPECT_EQ(status, 0) << architecture << ": "
                         << std::string(std::istreambuf_iterator<char>(messages), {});
  }
}

}  // namespace fluid::testing
