#include "passes/pass_table.h"

namespace fluid {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = gather_passes();
  return passes;
}

namespace {

/// Passes of the training step, or of inference.
void add_step_passes(const Options& options, std::vector<Pass>& p) {
  p.push_back(derive_inference_pass());  // first: other passes skip the ops it drops
  p.push_back(simplify_pass());          // before backward: dropped ops need no gradient
  p.push_back(cse_pass());
  p.push_back(dce_pass());

  if (options.amp) p.push_back(amp_cast_pass());  // before backward: gradients of casts are casts
  // Before backward, which differentiates its collectives.
  if (options.sync_bn && options.exchanges()) p.push_back(sync_batch_stats_pass());
  if (options.weighted)
    p.push_back(scale_partial_loss_pass());  // before backward: scales the terms of the loss
  p.push_back(append_backward_pass());
  if (options.amp) p.push_back(scale_loss_pass());
  if (options.slice != MicroBatchKind::whole)
    p.push_back(accumulate_pass());  // adds up scaled gradients
  if (options.exchanges()) {
    p.push_back(all_reduce_pass());       // before unscaling: ranks skip together
    p.push_back(mark_error_sync_pass());  // next: an empty micro-batch still has all ops
  }
  if (options.amp) p.push_back(unscale_gradients_pass());        // on the sums of the whole batch
  if (options.check_finite) p.push_back(skip_nonfinite_pass());  // no-op with loss scaling
  p.push_back(clip_gradients_pass());    // after unscaling: norms of true gradients
  p.push_back(expand_optimizer_pass());  // needs the gradients; adds the optimizer states
  if (options.mode == Mode::init) {
    p.push_back(make_startup_pass());  // after expand_optimizer: initialises its states too
  } else if (options.amp) {
    p.push_back(half_weights_pass());  // after backward: it ignores these copies
  }
  p.push_back(split_metrics_pass());  // before dce: uses results that nothing else reads
}

/// Passes from ops to kernels in memory.
void add_kernel_passes(const Options& options, std::vector<Pass>& p) {
  // 3. Only ops that kernels can compute, each once.
  p.push_back(expand_pass());  // before layouts: maps and reductions accept any layout
  p.push_back(simplify_pass());
  p.push_back(cse_pass());  // expansions repeat ops: softmax and its gradient
  p.push_back(dce_pass());  // drops forward ops that only gradients used

  // 4. Layouts and library kernels.
  if (options.libraries) {
    p.push_back(assign_layouts_pass());  // before choose_kernels, which keeps layouts
    p.push_back(choose_kernels_pass());
  }
  p.push_back(insert_copies_pass());  // after cse, which would merge the copies

  // 5. Fused kernels, their order, their memory.
  p.push_back(fuse_pass());
  if (options.fuse) {
    p.push_back(recompute_pass());       // after fuse: it looks at what groups store
    p.push_back(repeat_kernels_pass());  // after recompute: only what is still stored for long
  }
  p.push_back(outline_pass());
  p.push_back(schedule_pass());     // after outline: it orders kernels
  p.push_back(plan_memory_pass());  // after schedule: lifetimes are positions
}

}  // namespace

std::vector<Pass> pipeline(const Options& options) {
  std::vector<Pass> p;
  // 1. Checks and types of the recorded program.
  p.push_back(check_recorded_pass());
  p.push_back(set_dtype_pass());  // before infer_types: types follow from the sources
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
