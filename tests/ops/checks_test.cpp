// tests/golden/op_checks.md states what is checked for each op, and is current.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/golden_text.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::checks_test {
namespace {

constexpr const char* kHeader =
    R"(# What is checked for each op

Written by `FLUID_UPDATE_GOLDENS=1 build/release/test_ops --gtest_filter='Checks.*'`.

For each sample, the harness (`tests/support/op_harness.h`) compares the op's results in f64 with those of an
independent reference. It compares the cost and the in-place pairs with the lowered form, the generated kernels with the
reference, on the CPU and on an emulated GPU, and the text with what it parses to. A full run (`FLUID_TEST_ALL=1`)
compiles the kernels of each sample in f64, f32, f16, bf16 and all integer dtypes that the op takes. Other runs compile
them in f32, and two of three samples in one other float dtype, in one integer dtype, and on the emulated GPU in one of
each.

- samples: number of samples
- gradient: "differences" if the gradient is compared with finite differences at the samples
- mistakes: number of invalid uses whose messages are checked
- PyTorch: number of cases whose results and gradients are compared with PyTorch's (`tests/golden/ops.py`)

| op | samples | gradient | mistakes | PyTorch |
|---|---|---|---|---|
)";

struct Checks {
  size_t samples = 0, mistakes = 0, torch = 0;
  bool differences = false;
};

std::string table() {
  std::map<std::string, Checks> checks;
  for (const OpTest& t : op_tests()) {
    Checks& of = checks[t.op];
    of.samples += t.samples.size();
    of.mistakes += t.bad.size();
    of.differences = of.differences || t.gradient;
  }
  std::ifstream golden(FLUID_SOURCE_DIR "/tests/golden/ops.json");
  const nlohmann::json cases = nlohmann::json::parse(golden).at("cases");
  for (const auto& c : cases) ++checks[c.at("op").get<std::string>()].torch;
  std::ostringstream text;
  text << kHeader;
  for (const auto& [op, of] : checks) {
    const bool differentiable = std::holds_alternative<GradFn>(*op_named(op).grad);
    text << "| " << op << " | " << of.samples << " | "
         << (differentiable && of.differences ? "differences" : "") << " | " << of.mistakes
         << " | ";
    if (of.torch > 0) text << of.torch << " ";
    text << "|\n";
  }
  return text.str();
}

TEST(Checks, AreListed) { expect_golden_text("op_checks.md", table()); }

}  // namespace
}  // namespace fluid::testing::checks_test
