#include "executor/fluidrun/train_report.h"

#include <fmt/format.h>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/memory_report.h"
#include "executor/fluidrun/planned_step.h"
#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/world_flags.h"
#include "executor/places/place_machine.h"
#include "executor/session/session_options.h"

namespace fluid {
namespace {

/// Kept in half besides f32, parameters may take more than smaller activations save.
void describe_o2(const PreparedTraining& t) {
  const int64_t batch = t.readers.front()->batch_sizes().front();
  ExecutorOptions how;
  how.precision.amp = t.executor.amp();
  how.gpu.prefetch = !t.flags.place.no_prefetch;
  how.micro_batches = t.flags.micro_batches;
  how.debug.check_finite = t.flags.check_finite;
  set_world(how, t.flags.world, t.world);
  const std::unique_ptr<Target> target = target_of(t.executor.place(), t.flags.place);
  const StepPlanner planner(t.program, *target, session_options(how));
  const int64_t total = planner.at(batch).total();
  print_to(stderr, "O2: {} for a training step; {}\n", bytes_text(static_cast<double>(total)),
           compared_to_f32(planner, batch, total));
}

}  // namespace

void describe(const PreparedTraining& t) {
  const Reader& reader = *t.readers.front();
  const CompileReport report = t.executor.compile_report();
  const int64_t batch = reader.batch_sizes().front();
  print_to(stderr,
           "{}: {} samples, {} steps of {} an epoch; {} kernels compiled, {} from the cache, "
           "{:.0f} ms\n",
           t.program.ir().name, reader.samples(), reader.batches(),
           t.world.size == 1 ? std::to_string(batch)
                             : fmt::format("{} on each of {} ranks", batch, t.world.size),
           report.kernels, report.from_cache, report.passes_ms + report.compile_ms);
  for (const std::string& line : report.of_libraries) print_to(stderr, "{}\n", line);
  describe_memory(t.executor, t.readers, t.before, t.opened);
  const bool saves = !t.flags.save.empty() || !t.flags.best.save.empty();
  if (saves || !t.flags.checkpoint.directory.empty()) describe_saving(t.executor, t.world);
  if (t.flags.place.tf32 && t.executor.place() != cpu()) {
    print_to(stderr, "products and convolutions of f32 round their operands to TF32\n");
  }
  if (const auto& choice = t.executor.amp_choice(); choice && choice->measured()) {
    print_to(stderr, "--amp auto takes {}\n", choice->text());
  }
  const auto& amp = t.executor.amp();
  if (amp && amp->has_half_weights()) describe_o2(t);
}

}  // namespace fluid
