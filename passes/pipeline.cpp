#include "passes/pass_table.h"

namespace fluid {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = gather_passes();
  return passes;
}

namespace {

/// Appends the passes that turn the recorded program into the program of one training or inference
/// step.
void add_step_passes(const Options& options, std::vector<Pass>& p) {
  p.push_back(derive_inference_pass());  // first: later passes see no training-only ops
  p.push_back(freeze_states_pass());     // before passes that read the statistics of batch_norm
  // Before amp_cast, which would cast the operands of `gradients` ops.
  p.push_back(expand_gradients_pass());
  p.push_back(simplify_pass());  // before append_backward: erased ops need no gradient
  p.push_back(cse_pass());
  p.push_back(dce_pass());

  if (options.amp)
    p.push_back(amp_cast_pass());  // before append_backward, which differentiates the casts
  // Before append_backward, which differentiates the collectives of sync_batch_stats.
  if (options.sync_bn && options.uses_collectives()) p.push_back(sync_batch_stats_pass());
  if (options.scale_partial_loss)
    p.push_back(scale_partial_loss_pass());  // before append_backward: scales the terms of the loss
  // After scale_partial_loss, which would not find the batch dimension in rows that hoist
  // concatenates. Before append_backward, so that the gradients of hoisted ops are outside the
  // scan, too.
  p.push_back(hoist_pass());
  p.push_back(append_backward_pass());
  if (options.amp) p.push_back(scale_loss_pass());
  if (options.micro_batch != MicroBatchKind::whole)
    p.push_back(accumulate_pass());  // after scale_loss: sums scaled gradients
  if (options.uses_collectives()) {
    // Before unscale_gradients, so that all ranks skip the same steps.
    p.push_back(all_reduce_pass());
    p.push_back(mark_error_sync_pass());  // before dce, which erases ops of a rank without samples
  }
  if (options.processes_part_of_batch())
    p.push_back(coalesce_gradients_pass());  // after all_reduce: coalesces the rows of all ranks
  if (options.amp)
    p.push_back(unscale_gradients_pass());  // after all_reduce: unscales the sums over ranks
  p.push_back(keep_gradients_pass());       // stores gradients after unscaling, before clipping
  if (options.check_finite) p.push_back(skip_nonfinite_pass());  // no effect with loss scaling
  p.push_back(clip_gradients_pass());    // after unscale_gradients: clips unscaled gradients
  p.push_back(expand_optimizer_pass());  // after all passes that change gradients
  if (options.mode == Mode::init) {
    p.push_back(make_startup_pass());  // after expand_optimizer: initialises optimizer states too
  } else if (options.amp) {
    p.push_back(half_weights_pass());  // after append_backward: replaces casts that need gradients
  }
}

/// Appends the passes that choose, fuse and order kernels, and that plan memory.
void add_kernel_passes(const Options& options, std::vector<Pass>& p) {
  // Hoist ops out of scans and compile the bodies of scans.
  p.push_back(hoist_pass());  // again: hoists from the scans that append_backward appended
  if (options.use_libraries)
    p.push_back(
        pack_captures_pass());        // after hoist: hoisted ops are captures, or no longer inside
  p.push_back(compile_scans_pass());  // before plan_memory, which reads the plans of bodies

  // Expansion into ops that kernels can compute, then CSE and DCE.
  p.push_back(expand_pass());  // before assign_layouts: only Map and Reduce ops accept any layout
  p.push_back(simplify_pass());
  p.push_back(fuse_dequantize_pass());  // before fold_scale_axis, which scales dequantized weights
  const bool predicts = options.mode == Mode::predict;
  if (predicts)
    p.push_back(fold_scale_axis_pass());  // after expand, which splits batch norm into scale, shift
  p.push_back(cse_pass());  // after expand: expansions contain equal ops (softmax and its gradient)
  p.push_back(dce_pass());  // erases forward ops that have no user after expand
  p.push_back(combine_ops_pass());  // after cse, which gives equal ops the same operands, and dce

  // Layouts and library kernels.
  if (options.use_libraries)
    p.push_back(assign_layouts_pass());  // before choose_kernels, which does not change layouts
  if (predicts) {
    if (options.use_libraries)
      p.push_back(pack_weights_pass());  // after assign_layouts: depends on activation layouts
    // After dce, which would erase the graph of weights, because no op refers to it. After
    // pack_weights, because precompute_weights also moves the packed copies.
    p.push_back(precompute_weights_pass());
  }
  if (options.use_libraries) p.push_back(choose_kernels_pass());
  p.push_back(insert_copies_pass());  // after cse, which would merge the copies

  // Fusion, the order of kernels, and memory.
  p.push_back(fuse_pass());
  if (options.fuse) {
    p.push_back(recompute_pass());  // after fuse: recomputes results that groups would store
    p.push_back(
        repeat_kernels_pass());  // after recompute: handles the results that are still stored
  }
  p.push_back(outline_pass());
  p.push_back(schedule_pass());     // after outline: orders kernels
  p.push_back(plan_memory_pass());  // after schedule: live ranges depend on the order
}

}  // namespace

std::vector<Pass> pipeline(const Options& options) {
  std::vector<Pass> p;
  // Check the recorded program and infer its types.
  p.push_back(check_recorded_pass());
  p.push_back(select_recipe_pass());  // before all passes that read the train op
  p.push_back(set_length_pass());     // before all passes that read extents
  // Before infer_types, which derives types from the types of sources.
  p.push_back(set_dtype_pass());
  p.push_back(infer_types_pass());
  add_step_passes(options, p);
  add_kernel_passes(options, p);
  return p;
}

std::vector<Pass> kernel_pipeline(const Options& options) {
  std::vector<Pass> p;
  add_kernel_passes(options, p);
  return p;
}

std::vector<Pass> startup_pipeline(const Options& options) {
  std::vector<Pass> p = {infer_types_pass()};
  add_kernel_passes(options, p);
  return p;
}

}  // namespace fluid
