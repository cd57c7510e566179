#include "executor/fluidrun/dump.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "frontend/files/npy.h"
#include "frontend/name_pattern.h"
#include "frontend/named_values.h"
#include "frontend/parameter_groups.h"
#include "frontend/recipe_parameters.h"
#include "ir/error.h"
#include "ir/near.h"
#include "ir/text.h"
#include "ops/source/kept_gradient.h"
#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr std::string_view kGradient = ".grad";
constexpr size_t kMaxNames = 8;

/// Whether retain_gradient() can keep the gradient of the variable.
bool has_dense_gradient(const ir::Op& variable) {
  return source_kind(variable) == SourceKind::parameter && !is_frozen_variable(variable) &&
         !variable.attrs.get_or("sparse", false);
}

/// All names that --dump accepts. Gradients of frozen and of sparse parameters are not among them.
std::vector<std::string> known_names(const Program& program) {
  std::vector<std::string> names = value_names(program);
  for (const auto& [name, op] : variables_by_name(program.ir().main())) {
    names.emplace_back(name);
    if (has_dense_gradient(*op)) names.push_back(std::string(name) + std::string(kGradient));
  }
  for (const ir::Op* feed : feeds_of(program.ir())) names.push_back(feed->symbol);
  for (const ir::Output& o : program.ir().main().outputs) names.push_back(o.name);
  return names;
}

/// The names that `text`, the value of --dump, selects, each once. Throws UserError for a pattern
/// that selects none.
std::vector<std::string> selected_names(const Program& program, const std::string& text) {
  std::vector<std::string> selected;
  const auto select = [&](const std::string& name) {
    if (std::ranges::find(selected, name) == selected.end()) selected.push_back(name);
  };
  for (const std::string& part : ir::split_at_commas(text)) {
    if (part.find_first_of("*?[") == std::string::npos) {
      select(part);
      continue;
    }
    const std::vector<std::string> known = known_names(program);
    const NamePattern pattern(part);
    bool found = false;
    for (const std::string& name : known) {
      if (!pattern.matches(name)) continue;
      found = true;
      select(name);
    }
    if (found) continue;
    throw UserError(fmt::format("--dump {}: the pattern matches no value{}", part,
                                pattern_suggestion(part, known)));
  }
  return selected;
}

}  // namespace

void add_dump_flags(CLI::App& command, DumpFlags& flags) {
  begin_group(command, kDebuggingGroup);
  CLI::Option* names =
      command
          .add_option("--dump", flags.names,
                      "write these values of a step as .npy files: outputs, feeds, parameters, "
                      "gradients (fc0.w.grad) and layers (bn1); * ? and [ab] select several (fc*)")
          ->type_name("NAME,...");
  command.add_option("--dump-steps", flags.steps, "number of steps of this run that --dump writes")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str()
      ->needs(names);
  command.add_option("--dump-dir", flags.directory, "directory of the files of --dump")
      ->type_name("DIR")
      ->capture_default_str()
      ->needs(names);
}

StepDump::StepDump(Program& program, const DumpFlags& flags) : flags_(flags) {
  if (flags.names.empty()) return;
  for (const std::string& name : selected_names(program, flags.names)) {
    values_.push_back(dumped_value(program, name));
  }
  std::error_code error;
  std::filesystem::create_directories(flags.directory, error);
  if (error) {
    throw UserError(fmt::format("--dump-dir {}: {}", flags.directory, error.message()));
  }
}

StepDump::DumpedValue StepDump::dumped_value(Program& program, const std::string& name) const {
  const ir::Graph& graph = program.ir().main();
  const auto output = std::ranges::find(graph.outputs, name, &ir::Output::name);
  if (output != graph.outputs.end()) return {.name = name, .source = name, .is_output = true};
  if (variable_named(graph, name) != nullptr) return {.name = name, .source = name};
  const bool has_suffix = name.ends_with(kGradient);
  const std::string parameter = has_suffix ? name.substr(0, name.size() - kGradient.size()) : "";
  const ir::Op* variable = has_suffix ? variable_named(graph, parameter) : nullptr;
  if (variable != nullptr && source_kind(*variable) == SourceKind::parameter) {
    try {
      retain_gradient(program, parameter, Loc());
    } catch (const UserError& e) {
      throw UserError(fmt::format("--dump {}: {}", name, e.what()));
    }
    return {.name = name,
            .source = kept_gradient_name(parameter),
            .recipes = recipes_that_train(graph, parameter)};
  }
  ir::Op* feed = graph.find("data", name);
  const Value value = feed == nullptr ? named_value(program, name) : feed->result();
  if (!value && is_value_of_scan_step(program, name)) {
    throw UserError(fmt::format(
        "--dump {}: each step of a scan computes another one; the scan can collect them", name));
  }
  if (!value) {
    throw UserError(fmt::format("--dump {}: no such value; there are {}", name,
                                nearest_names(name, known_names(program), kMaxNames)));
  }
  const std::string source = std::string(kDumpPrefix) + name;
  program.output(source, value, Loc());
  return {.name = name, .source = source, .is_output = true};
}

void StepDump::write(const StepEvent& step, Executor& executor) const {
  if (step.step > steps_before_ + flags_.steps) return;
  for (const DumpedValue& dumped : values_) {
    const bool is_gradient = !dumped.recipes.empty();
    if (is_gradient && (step.skipped || !dumped.recipes.contains(step.recipe))) continue;
    // The step does not compute outputs of other recipes.
    if (dumped.is_output && !step.outputs.contains(dumped.source)) continue;
    const Tensor value =
        dumped.is_output ? step.outputs[dumped.source].copy() : executor.parameter(dumped.source);
    const bool is_half = value.dtype() == f16 || value.dtype() == bf16;
    std::string file = dumped.name;
    std::ranges::replace(file, '/', '_');
    write_npy(fmt::format("{}/step-{:04}.{}.npy", flags_.directory, step.step, file),
              is_half ? value.cast(f32) : value);
  }
}

}  // namespace fluid
