// tests/golden/op_checks.md states what is checked for each op, and is current. Each attribute of
// an op is tested with more than its default.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/golden.h"
#include "tests/support/golden_attrs.h"
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
- PyTorch: number of cases whose results and gradients are compared with PyTorch's (`tests/golden/ops.py`,
  `tests/golden/op_attributes.py`)
- ONNX: number of ONNX's node vectors and cases of `tests/golden/onnx_cases.py` that record the op, as listed in
  `tests/golden/onnx_ops.json`. The same command with the filter `Onnx.OpsOfTheVectors` writes that file.

| op | samples | gradient | mistakes | PyTorch | ONNX |
|---|---|---|---|---|---|
)";

constexpr const char* kGoldenOps[] = {"ops.json", "op_attributes.json"};

struct Checks {
  size_t samples = 0, mistakes = 0, torch = 0, onnx = 0;
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
  for (const char* file : kGoldenOps) {
    const nlohmann::json golden = golden_json(file);
    for (const auto& c : golden.at("cases")) ++checks[c.at("op").get<std::string>()].torch;
  }
  const nlohmann::json onnx = golden_json("onnx_ops.json");
  for (auto& [op, of] : checks) of.onnx = onnx.value(op, size_t{0});
  std::ostringstream text;
  text << kHeader;
  for (const auto& [op, of] : checks) {
    const bool differentiable = std::holds_alternative<GradFn>(*op_named(op).grad);
    text << "| " << op << " | " << of.samples << " | "
         << (differentiable && of.differences ? "differences" : "") << " | " << of.mistakes
         << " | ";
    if (of.torch > 0) text << of.torch << " ";
    text << "| ";
    if (of.onnx > 0) text << of.onnx << " ";
    text << "|\n";
  }
  return text.str();
}

/// Returns "op.attribute". Attributes that several ops read by one function have one name.
std::string attribute_name(const OpDef& def, const std::string& attr) {
  const bool warms_up = attr == "warmup" || attr == "warmup_start" || attr == "constant_warmup";
  if (def.schedule && warms_up) return "schedule." + attr;  // read by schedule_def()
  return (*def.name == "muon_momentum" ? "muon" : *def.name) + "." + attr;
}

/// Attributes that have another value than their default in a sample or a case of PyTorch.
class VariedAttributes {
 public:
  VariedAttributes() {
    for (const OpTest& t : op_tests()) {
      for (const Sample& sample : t.samples) add(op_named(t.op), sample.attrs);
    }
    for (const char* file : kGoldenOps) {
      const nlohmann::json golden = golden_json(file);
      for (const auto& c : golden.at("cases")) add_golden(c.at("op"), c.at("attrs"));
    }
    const nlohmann::json plateau = golden_json("plateau.json");
    add_settings("optimizers.json", "optimizer", "");
    add_settings("schedules.json", "schedule", "_schedule");
    for (const auto& run : plateau.at("runs")) add_golden("plateau_schedule", run.at("settings"));
  }

  bool contains(const OpDef& def, const std::string& attr) const {
    return names_.contains(attribute_name(def, attr));
  }

 private:
  void add(const OpDef& def, const Attrs& given) {
    for (const AttrDef& attr : *def.attrs) {
      const Attr* value = given.find(attr.name);
      const auto* whole = value == nullptr ? nullptr : std::get_if<int64_t>(value);
      const bool equal = value == nullptr || *value == attr.fallback ||
                         (whole != nullptr && Attr(static_cast<double>(*whole)) == attr.fallback);
      if (!equal) names_.insert(attribute_name(def, attr.name));
    }
  }

  void add_golden(const std::string& op, const nlohmann::json& attrs) {
    if (const OpDef* def = find_op(op)) add(*def, golden_attrs(attrs));
  }

  void add_settings(const std::string& file, const char* key, const std::string& suffix) {
    const nlohmann::json json = golden_json(file);
    for (const auto& c : json.at("cases")) {
      add_golden(c.at(key).get<std::string>() + suffix, c.at("settings"));
    }
  }

  std::set<std::string> names_;
};

TEST(Checks, VaryEachAttribute) {
  const VariedAttributes varied;
  const std::map<std::string, std::string> exceptions = {
      {"plateau_schedule.metric", "a name, which the rates do not depend on"}};
  std::set<std::string> tested;
  for (const OpTest& t : op_tests()) tested.insert(t.op);
  for (const OpDef& def : op_table()) {
    if (!tested.contains(*def.name)) continue;
    for (const AttrDef& attr : *def.attrs) {
      if (exceptions.contains(attribute_name(def, attr.name))) continue;
      EXPECT_TRUE(varied.contains(def, attr.name))
          << attribute_name(def, attr.name) << " has its default in all samples and golden cases";
    }
  }
}

TEST(Checks, AreListed) { expect_golden_text("op_checks.md", table()); }

}  // namespace
}  // namespace fluid::testing::checks_test
