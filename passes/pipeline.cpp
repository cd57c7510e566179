#include "passes/pass_table.h"

namespace fluid {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = gather_passes();
  return passes;
}

namespace {

/// The training step, or what inference leaves of it.
void add_step_passes(const Options& options, std::vector<Pass>& p) {
  p.push_back(derive_inference_pass());  // before any work on ops that inference drops
  p.push_back(simplify_pass());          // before backward: what goes here needs no gradient
  p.push_back(cse_pass());
  p.push_back(dce_pass());

  if (options.amp) p.push_back(amp_cast_pass());  // before backward: gradients of casts are casts
  if (options.sync_bn && options.exchanges()) p.push_back(sync_batch_stats_pass());  // likewise
  if (options.weighted)
    p.push_back(scale_partial_loss_pass());  // before it: terms of a loss differ
  p.push_back(append_backward_pass());
  if (options.amp) p.push_back(scale_loss_pass());
  if (options.slice != Slice::whole) p.push_back(accumulate_pass());  // scaled, as they come
  if (options.exchanges()) {
    p.push_back(all_reduce_pass());       // before unscaling: ranks skip together
    p.push_back(mark_error_sync_pass());  // next: an empty slice still has what the others compute
  }
  if (options.amp) p.push_back(unscale_gradients_pass());  // of the whole batch: all or nothing
  if (options.check_finite) p.push_back(skip_nonfinite_pass());  // after it, which decides by more
  p.push_back(clip_gradients_pass());    // after it: norms are those of the unscaled gradients
  p.push_back(expand_optimizer_pass());  // needs the gradients; makes the optimizer's states
  if (options.mode == Mode::init) {
    p.push_back(make_startup_pass());  // after it: the states are initialised as well
  } else if (options.amp) {
    p.push_back(half_weights_pass());  // after it: backward knows nothing of the copies
  }
  p.push_back(split_metrics_pass());  // before cleaning: it reads results that outputs did not
}

/// From ops to kernels in memory.
void add_kernel_passes(const Options& options, std::vector<Pass>& p) {
  // 3. Ops that a kernel can compute, and nothing twice.
  p.push_back(expand_pass());  // before layouts: those of maps and reductions are free
  p.push_back(simplify_pass());
  p.push_back(cse_pass());  // expansions repeat each other: softmax and its gradient
  p.push_back(dce_pass());  // what the gradients left behind

  // 4. Who computes what, and in which layout.
  if (options.libraries) {
    p.push_back(assign_layouts_pass());  // before choose_kernels, which claims layouts as they are
    p.push_back(choose_kernels_pass());
  }
  p.push_back(insert_copies_pass());  // after cse, which would merge the copies away

  // 5. Kernels, their order, their memory.
  p.push_back(fuse_pass());
  p.push_back(schedule_pass());     // after fuse: it orders kernels
  p.push_back(plan_memory_pass());  // after schedule: lifetimes are positions
}

}  // namespace

std::vector<Pass> pipeline(const Options& options) {
  std::vector<Pass> p;
  // 1. The program as the user meant it.
  p.push_back(check_recorded_pass());
  p.push_back(set_dtype_pass());  // next: types are inferred from the sources' dtypes
  p.push_back(infer_types_pass());
  add_step_passes(options, p);
  add_kernel_passes(options, p);
  return p;
}

std::vector<Pass> startup_pipeline(const Options& options) {
  std::vector<Pass> p = {infer_types_pass()};
  add_kernel_passes(options, p);
  return p;
}

}  // namespace fluid
