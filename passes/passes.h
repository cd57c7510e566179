#pragma once

// One function a pass. The order in which they run is in pipeline.cpp.

#include "passes/pass.h"

namespace fluid {

Pass accumulate_pass();
Pass all_reduce_pass();
Pass amp_cast_pass();
Pass append_backward_pass();
Pass assign_layouts_pass();
Pass check_recorded_pass();
Pass choose_kernels_pass();
Pass clip_gradients_pass();
Pass cse_pass();
Pass dce_pass();
Pass derive_inference_pass();
Pass expand_pass();
Pass expand_optimizer_pass();
Pass fuse_pass();
Pass guard_loss_pass();
Pass infer_types_pass();
Pass keep_halves_pass();
Pass make_startup_pass();
Pass own_values_pass();
Pass plan_memory_pass();
Pass scale_loss_pass();
Pass schedule_pass();
Pass set_dtype_pass();
Pass share_statistics_pass();
Pass simplify_pass();
Pass split_metrics_pass();
Pass tell_refusals_pass();
Pass unscale_gradients_pass();
Pass weigh_part_pass();

}  // namespace fluid
