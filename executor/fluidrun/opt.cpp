#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/fluidrun/amp_report.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"
#include "executor/place_machine.h"
#include "ir/error.h"
#include "passes/passes.h"

namespace fluid {
namespace {

struct OptFlags {
  std::string program, passes, mode, output;
  int64_t batch = 1;
  bool list = false, print_after_all = false, report = false;
  PlaceFlags place;
};

std::vector<Pass> passes_named(const std::string& list) {
  std::vector<Pass> chosen;
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  for (const std::string& name : CLI::detail::split(list, ',')) {
    const auto& all = all_passes();
    const auto found = std::ranges::find(all, name, &Pass::name);
    if (found == all.end()) throw UserError("no pass '" + name + "'" + did_you_mean(name, names));
    chosen.push_back(*found);
  }
  if (const std::string fault = order_fault(chosen); !fault.empty()) throw UserError(fault);
  return chosen;
}

/// What amp_cast does after the passes before it.
void report_on_amp(const ir::Program& program, const std::vector<Pass>& passes,
                   const Options& options, const Target& target) {
  const auto amp = std::ranges::find(passes, amp_cast_pass().name, &Pass::name);
  if (amp == passes.end()) throw UserError("--report: amp_cast is not among the passes");
  const std::unique_ptr<ir::Program> copy = program.clone();
  run_passes(*copy, {passes.begin(), amp}, options, target);
  print_amp_report(*copy, options);
}

int run(const OptFlags& flags) {
  if (flags.list) {
    for (const Pass& pass : all_passes()) fmt::print("{:<18} {}\n", pass.name, pass.doc);
    return 0;
  }
  if (flags.program.empty()) throw UserError("opt needs a program, or --list");
  if (flags.passes.empty() == flags.mode.empty()) {
    throw UserError("say either --pass a,b or --pipeline train");
  }
  Program program = open_program(flags.program);
  Options options;
  options.batch = flags.batch;
  options.dtype = dtype_of(flags.place);
  options.amp = amp_of(flags.place.amp);
  if (!flags.mode.empty()) options.mode = mode_named(flags.mode);
  const std::vector<Pass> passes =
      flags.mode.empty() ? passes_named(flags.passes) : pipeline(options);
  const std::unique_ptr<Target> target = target_of(place_of(flags.place), threads_of(flags.place));
  if (flags.report) report_on_amp(program.ir(), passes, options, *target);
  for (const PassReport& report :
       run_passes(program.ir(), passes, options, *target, flags.print_after_all)) {
    if (!flags.print_after_all) continue;
    fmt::print(stderr, "// {}: {}, {:.3f} ms\n{}", report.pass,
               report.changed ? "changed" : "no change", report.ms, report.dump);
  }
  if (flags.output.empty() && !flags.report) {
    fmt::print("{}", program.text());
  }
  if (!flags.output.empty()) program.save(flags.output);
  return 0;
}

}  // namespace

void add_opt(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("opt", "Run passes over a program");
  command->footer("Example: fluidrun opt mnist.fluid --pipeline train --batch 100 -o step.fir");
  const auto flags = std::make_shared<OptFlags>();
  command->add_option("program", flags->program, "a .fluid or .fir file, or an example's name");
  command->add_option("--pass", flags->passes, "passes to run, separated by commas");
  command->add_option("--pipeline", flags->mode,
                      "train, eval, predict or init (the startup graph): all passes in order");
  command->add_option("--batch", flags->batch, "samples a step")
      ->check(must_be_count)
      ->capture_default_str();
  command->add_option("-o", flags->output, "a .fir or .fluid file; default: text to the terminal");
  command->add_flag("--print-after-all", flags->print_after_all, "show what each pass changed");
  command->add_flag("--report", flags->report,
                    "say what amp_cast does with each op, and why; the text goes to -o alone");
  command->add_flag("--list", flags->list, "describe every pass");
  add_place_flags(*command, flags->place);
  add_loss_scale_flags(*command, flags->place.amp.loss_scale);
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
