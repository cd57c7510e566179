#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/cpu/cpu_target.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"

namespace fluid {

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the places where programs can run");
  command->footer("Example: fluidrun devices --json > target.json");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "describe the CPU for `plan --target`");
  command->callback([&action, json] {
    action = [json] {
      const TargetDescription cpu = describe_host(threads_of({}));
      if (*json) {
        fmt::print("{}\n", to_json(cpu));
      } else {
        fmt::print("cpu  {} threads, {}-bit vectors{}, {:.0f} GFLOP/s and {:.0f} GB/s a thread\n",
                   cpu.threads, cpu.vector_bits, cpu.bf16 ? ", bf16" : "", cpu.gflops_f32,
                   cpu.memory_gbs);
        fmt::print("cuda not in this build\n");
      }
      return 0;
    };
  });
}

}  // namespace fluid
