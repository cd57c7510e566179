#include "tests/support/ptx.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "codegen/gpu.h"
#include "tests/support/full_run.h"
#include "tests/support/temp_dir.h"

namespace fluid::testing {
namespace {

constexpr size_t kFew = 32;  ///< passes that every architecture takes in any run

/// Checks the spills and registers that the assembler reports for each kernel.
void read_messages(const std::string& text, const std::string& architecture,
                   const PtxLimits& most_of) {
  static const std::regex kEntry(
      "Compiling entry function '([^']*)'|([0-9]+) bytes spill|Used ([0-9]+) registers");
  std::string entry;
  int kernels = 0, most = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), kEntry), end; it != end; ++it) {
    const std::smatch& m = *it;
    if (m[1].matched) entry = m[1];
    if (m[2].matched) {
      EXPECT_LE(std::stoi(m[2]), most_of.spilled) << architecture << ": " << entry << ": " << m[0];
    }
    if (!m[3].matched) continue;
    EXPECT_LE(std::stoi(m[3]), most_of.registers) << architecture << ": " << entry;
    ++kernels;
    most = std::max(most, std::stoi(m[3]));
  }
  std::printf("%s: %d kernels, at most %d registers\n", architecture.c_str(), kernels, most);
}

/// Returns the kernels to assemble for architecture `a` of `all`.
std::vector<kir::Kernel> shard_of(const std::vector<kir::Kernel>& passes, size_t a, size_t all) {
  if (is_full_run() || passes.size() <= kFew) return passes;
  std::vector<kir::Kernel> share;
  for (size_t i = a; i < passes.size(); i += all) share.push_back(passes[i]);
  return share;
}

}  // namespace

std::string ptx_assembler() {
  for (const char* candidate : {"/usr/local/cuda/bin/ptxas", "ptxas"}) {
    if (std::system((std::string(candidate) + " --version > /dev/null 2>&1").c_str()) == 0) {
      return candidate;
    }
  }
  return "";
}

std::vector<std::string> gpu_architectures() { return {"sm_80", "sm_90", "sm_100", "sm_120"}; }

void expect_assembles(const std::string& assembler, std::vector<kir::Kernel> passes,
                      const std::vector<std::string>& architectures, const PtxLimits& most_of) {
  std::set<std::string> seen;
  std::erase_if(passes, [&](kir::Kernel& kernel) {
    const std::string name = std::exchange(kernel.name, "k");
    const bool known = !seen.insert(kir::print(kernel)).second;
    kernel.name = name + "_" + std::to_string(seen.size());
    return known;
  });
  const TempDir dir;
  const std::string source = dir.path() + "/kernels.ptx", log = dir.path() + "/log";
  for (size_t a = 0; a < architectures.size(); ++a) {
    const std::string& architecture = architectures[a];
    const std::string text =
        compile_ptx(shard_of(passes, a, architectures.size()), architecture).ptx;
    EXPECT_EQ(text.find(".local"), std::string::npos) << "memory of a thread's own";
    std::ofstream(source) << text;
    const std::string command = assembler + " -v -arch=" + architecture + " -o /dev/null " + source;
    const int status = std::system((command + " > " + log + " 2>&1").c_str());
    std::ifstream file(log);
    const std::string messages(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(status, 0) << architecture << ": " << messages;
    read_messages(messages, architecture, most_of);
  }
}

}  // namespace fluid::testing
