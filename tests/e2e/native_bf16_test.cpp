// Training in bf16 takes the CPU's own instructions for it, by oneDNN's account of what it runs; a
// CPU that lacks them comes to the same.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <vector>

#include "executor/host/host_cpu.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::native_bf16_test {
namespace {

class NativeBf16 : public FluidrunTest {
 protected:
  struct Run {
    std::vector<double> losses;
    std::set<std::string> kernels;  ///< oneDNN's names of those that ran
    std::string output;
  };
  /// Two steps on a CPU of which oneDNN knows nothing above `isa`.
  Run trained(const std::string& isa) const {
    const std::string log = "log" + isa;
    const Result result = run_command(
        "env ONEDNN_VERBOSE=1 " + (isa.empty() ? "" : "ONEDNN_MAX_CPU_ISA=" + isa) + " " +
        kFluidrun + " train mnist_cnn --data digits?n=64 --batch 32 --amp o1 --log-json " + log);
    EXPECT_EQ(result.code, 0) << result.output;
    Run run{{}, {}, result.output};
    std::ifstream file(dir_.file(log));
    for (std::string line; std::getline(file, line);) {
      const auto logged = nlohmann::json::parse(line);
      if (!logged.contains("event")) run.losses.push_back(logged["loss"]);
    }
    const std::regex ran(",exec,cpu,(convolution|matmul),([^,]*),");
    for (std::sregex_iterator it(result.output.begin(), result.output.end(), ran), end; it != end;
         ++it) {
      run.kernels.insert((*it)[2]);
    }
    return run;
  }
  static bool is_native(const std::string& kernel) {
    return std::regex_search(kernel, std::regex("avx512_core_bf16|amx|avx10"));
  }
};

TEST_F(NativeBf16, IsTakenWhereTheCpuHasItAndComputesTheSame) {
  const Run here = trained("");
  if (here.output.find("onednn_verbose,") == std::string::npos) {
    GTEST_SKIP() << "this build has no oneDNN";
  }
  const std::vector<std::string> features = host_cpu().features;
  const bool has = std::ranges::find(features, "avx512_bf16") != features.end();
  EXPECT_EQ(std::ranges::any_of(here.kernels, is_native), has) << here.output;
  for (const std::string isa : {"AVX512_CORE", "AVX2"}) {
    SCOPED_TRACE(isa);
    const Run baseline_cpu = trained(isa);
    EXPECT_TRUE(std::ranges::none_of(baseline_cpu.kernels, is_native)) << baseline_cpu.output;
    ASSERT_EQ(baseline_cpu.losses.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(baseline_cpu.losses[i], here.losses[i], 0x1p-8 * here.losses[i])
          << "a rounding to bf16";
    }
  }
}

}  // namespace
}  // namespace fluid::native_bf16_test
