#include "executor/fluidrun/training_start.h"

#include <fmt/format.h>

#include <memory>

#include "executor/device/bytes_text.h"
#include "executor/fluidrun/planned_step.h"
#include "executor/launcher/print_to.h"
#include "executor/places/place_machine.h"
#include "executor/session/session_options.h"
#include "ops/optim/recipes.h"

namespace fluid {
namespace {

/// Prints to stderr the arena size of a step with AMP level O2, and of the same step in f32.
/// Half-precision weights may take more memory than half-precision activations save.
void print_o2_memory(const PreparedTraining& t) {
  const int64_t batch = t.readers.front()->batch_sizes().front();
  ExecutorOptions options;
  options.precision.amp = t.executor.amp();
  options.gpu.prefetch = !t.flags.place.no_prefetch;
  options.micro_batches = t.flags.micro_batches;
  options.debug.check_finite = t.flags.check_finite;
  set_world(options, t.flags.world, t.world);
  const std::unique_ptr<Target> target = predicting_target_of(t.executor.place(), t.flags.place);
  const StepPlanner planner(t.program, *target, session_options(options));
  const int64_t arena_bytes = planner.plan_step(batch).arena_bytes();
  print_to(stderr, "O2: {} for a training step; {}\n", bytes_text(static_cast<double>(arena_bytes)),
           f32_comparison_text(planner, batch, arena_bytes));
  const std::string note = half_instructions_text(*target, options.precision.amp->dtype);
  if (!note.empty()) print_to(stderr, "{}\n", note);
}

/// Prints to stderr that the setting `what` of a recipe takes effect at update `update`, if the
/// recipe has only `updates`. `recipe`: its name; may be empty.
void print_if_unreached(const std::string& recipe, const char* what, int64_t update,
                        int64_t updates) {
  if (update <= updates) return;
  print_to(stderr, "{}{} at update {}, but the training has {}\n",
           recipe.empty() ? "" : "recipe '" + recipe + "': ", what, update, updates);
}

}  // namespace

void print_unreached_settings(const Program& program, const RecipeCycle& cycle, int64_t steps,
                              const TrainingState& from) {
  for (size_t i = 0; i < cycle.recipes().size(); ++i) {
    const std::string& name = cycle.recipes()[i].name;
    const int64_t updates = cycle.steps_of(i, steps, from);
    if (updates == 0) {
      print_to(stderr,
               "recipe '{}' runs no step: the cycle {} is longer than the {} steps of training\n",
               name, cycle.text(), steps);
      continue;
    }
    const Attrs& recipe = recipe_named(program.ir().main(), name).attrs;
    print_if_unreached(name, "averages (--swa) start", recipe.get_or("swa_start", int64_t{0}),
                       updates);
    print_if_unreached(name, "lookahead (--lookahead) first moves the slow weights",
                       recipe.get_or("lookahead_every", int64_t{0}), updates);
  }
}

void print_training_start(const PreparedTraining& t) {
  const Reader& reader = *t.readers.front();
  const CompileReport report = t.executor.compile_report();
  const int64_t batch = reader.batch_sizes().front();
  const std::string each = t.world.size == 1
                               ? std::to_string(batch)
                               : fmt::format("{} on each of {} ranks", batch, t.world.size);
  const std::string data = reader.samples()
                               ? fmt::format("{} samples, {} steps of {} an epoch",
                                             *reader.samples(), *reader.batches(), each)
                               : fmt::format("a stream, steps of {}", each);
  print_to(stderr, "{}: {}; {} kernels compiled, {} from the cache, {:.0f} ms\n",
           t.program.ir().name, data, report.kernels, report.cache_hits,
           report.passes_ms + report.compile_ms);
  if (report.timed_ops > 0) {
    print_to(stderr, "timed the kernels of {} products and convolutions in {:.1f} s\n",
             report.timed_ops, report.timing_ms / 1e3);
  }
  for (const std::string& line : report.library_rejections) print_to(stderr, "{}\n", line);
  print_memory_report(t.executor, t.readers, t.before, t.opened);
  const bool saves = !t.flags.save.empty() || !t.flags.best.save.empty();
  if (saves || !t.flags.checkpoint.directory.empty()) print_checkpoint_memory(t.executor, t.world);
  if (t.flags.place.tf32 && t.executor.place() != cpu()) {
    print_to(stderr, "products and convolutions of f32 round their operands to TF32\n");
  }
  if (const auto& choice = t.executor.amp_choice(); choice && choice->measured()) {
    print_to(stderr, "--amp auto selects {}\n", choice->text());
  }
  const auto& amp = t.executor.amp();
  if (amp && amp->has_half_weights()) print_o2_memory(t);
}

}  // namespace fluid
