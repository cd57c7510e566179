#include "executor/cpu_libraries/onednn.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu_libraries/onednn_memory.h"
#include "executor/cpu_libraries/onednn_plan.h"
#include "ops/table.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

/// Table entry: the name of a library kernel, and the function that creates its plan.
struct OnednnKernelEntry {
  std::string_view kernel;
  std::optional<OnednnPlan> (*plan)(const OnednnTask&);
  int channel_axis;  ///< channel axis of the result, counted from the end; 1: the last axis
  EpilogueSupport support = EpilogueSupport::bias_and_relu;
};

constexpr OnednnKernelEntry kOnednnKernels[] = {
    {"onednn.conv2d", plan_conv2d, 3},
    {"onednn.conv2d_grad_input", plan_conv2d_grad_input, 3},
    {"onednn.conv2d_grad_filter", plan_conv2d_grad_filter, 4},
    {"onednn.matmul", plan_matmul, 1},
    {"onednn.conv2d_int8", plan_conv2d_int8, 3, EpilogueSupport::integers},
    {"onednn.matmul_int8", plan_matmul_int8, 1, EpilogueSupport::integers}};

/// oneDNN uses 32-bit extents and crashes on larger extents.
bool fits_onednn(const Type& type) {
  return std::ranges::all_of(
      type.shape, [](const Dim& d) { return d.size <= std::numeric_limits<int32_t>::max(); });
}

/// Changes a half-precision task to f32.
void widen(OnednnTask& task) {
  task.widened_from = task.result.dtype;
  task.result.dtype = DType::f32;
  for (Type& t : task.operands) t.dtype = DType::f32;
  if (task.epilogue.bias) task.epilogue.bias->dtype = DType::f32;
}

std::optional<OnednnTask> task_of(const ir::Op& op, const EpilogueOps& chain, int64_t batch,
                                  const OnednnKernelEntry& entry) {
  auto found = library_task(op, chain, batch, entry.channel_axis, entry.support);
  if (!found || !fits_onednn(found->result)) return std::nullopt;
  if (!std::ranges::all_of(found->operands, fits_onednn)) return std::nullopt;
  return OnednnTask{std::move(*found)};
}

struct PlannedTask {
  OnednnTask task;
  OnednnPlan plan;
};

/// Returns the primitive of an op. If oneDNN has no optimised kernel for a half-precision op, the
/// op is widened to f32: oneDNN's CPU kernels have no f16, and without AVX-512 no bf16. Returns
/// nullopt if oneDNN has no optimised kernel in f32 either.
std::optional<PlannedTask> planned(const ir::Op& op, const EpilogueOps& chain, int64_t batch,
                                   const OnednnKernelEntry& entry) {
  auto task = task_of(op, chain, batch, entry);
  if (!task) return std::nullopt;
  const auto optimized_plan = [&]() -> std::optional<OnednnPlan> {
    if (!onednn_dtype(task->result.dtype)) return std::nullopt;
    auto plan = entry.plan(*task);
    if (plan && plan->implementation.find("ref") != std::string::npos) return std::nullopt;
    return plan;
  };
  auto plan = optimized_plan();
  if (!plan && is_half_precision(task->result.dtype)) {
    widen(*task);
    plan = optimized_plan();
  }
  if (!plan) return std::nullopt;
  return PlannedTask{std::move(*task), std::move(*plan)};
}

/// A primitive, and a reorder for each tensor whose layout differs from the layout that the
/// primitive requires. The workspace starts with one scratchpad, which the primitive and the
/// reorders use in turn. The converted and reordered tensors follow.
struct Reordered {
  OnednnPlan plan;
  /// Dtype of the op's tensors if they are converted to f32.
  std::optional<DType> widened_from;
  /// reorders[i] belongs to plan.args[i]; nullopt if the tensor already has the required layout.
  std::vector<std::optional<dnnl::reorder>> reorders;
  std::vector<dnnl::memory::desc> scratches;  ///< scratchpads of the reorders
  int64_t scratch_bytes = 0;
  int64_t reordered_bytes = 0;  ///< total bytes of the reordered tensors in the workspace
  int64_t widened_bytes = 0;    ///< total bytes of the tensors that are converted to f32

  explicit Reordered(PlannedTask planned)
      : plan(std::move(planned.plan)), widened_from(planned.task.widened_from) {
    scratch_bytes = plan.workspace_bytes();
    for (const OnednnPlan::Arg& arg : plan.args) {
      reorders.emplace_back();
      scratches.emplace_back();
      if (widened_from) widened_bytes += align_up(arg.actual.get_size());
      if (arg.required == arg.actual) continue;
      const bool result = &arg == &plan.args.back();
      const dnnl::reorder::primitive_desc pd(onednn_engine(), result ? arg.required : arg.actual,
                                             onednn_engine(), result ? arg.actual : arg.required,
                                             onednn_attributes({}));
      reorders.back() = dnnl::reorder(pd);
      scratches.back() = pd.scratchpad_desc();
      scratch_bytes = std::max(scratch_bytes, align_up(scratches.back().get_size()));
      reordered_bytes += align_up(arg.required.get_size());
    }
  }
  int64_t workspace() const { return scratch_bytes + widened_bytes + reordered_bytes; }
  int64_t num_reorders() const {
    return std::ranges::count_if(reorders, [](const auto& r) { return r.has_value(); });
  }
};

/// If the bf16 rate is more than this multiple of the f32 rate, the CPU has matrix units (AMX).
constexpr double kVectorRatio = 4;
/// Ratio of the rate of products of 8-bit integers to the f32 rate. A vector instruction multiplies
/// four times as many 8-bit integers as f32 numbers. Measured on Zen 4: 3.5 to 4.
constexpr double kInt8Ratio = 3.5;
/// Returns the fraction of the matrix units' peak FLOP/s that a kernel reaches, in which loading
/// and rearranging operands is included. Measured on two cores with AMX and a peak of 7,200
/// GFLOP/s, in GFLOP/s: convolutions with 3x3 filters of 64 to 256 channels 2,900 to 3,800,
/// gradients of their inputs 2,000 to 2,400, of strided ones 800, of their filters 1,400 with 64
/// channels, 900 with 256; a quarter of that with 4x4 pixels. Gradients with 1x1 filters 270 and
/// 110. Products 2,100 to 2,400, 1,200 if the left matrix is transposed.
double matrix_unit_efficiency(const OnednnTask& task, const OnednnKernelEntry& entry) {
  if (entry.channel_axis == 1) return task.op.attrs.get<bool>("transpose_a") ? 0.2 : 0.36;
  const bool filter_gradient = entry.channel_axis == 4;
  const auto pixels = [](const Type& image) { return image.shape[2].size * image.shape[3].size; };
  const Type& filter = filter_gradient ? task.result : task.operands[1];
  const int64_t from = pixels(task.operands[0]);
  const int64_t to = pixels(filter_gradient ? task.operands[1] : task.result);
  const double part = std::min(from, to) < 32 ? 0.25 : 1;
  if (filter_gradient) {
    if (pixels(filter) == 1) return 0.016;
    return part * (from != to ? 0.08 : filter.shape[1].size > 128 ? 0.12 : 0.2);
  }
  if (entry.kernel != "onednn.conv2d_grad_input") return part * 0.45;
  return pixels(filter) == 1 ? 0.04 : part * (from == to ? 0.3 : 0.11);
}

/// Returns the fraction of the peak FLOP/s that a kernel reaches. The formula is fitted to the best
/// times on one core with AVX-512 and oneDNN 2.6.3. In nhwc, convolutions reach 0.97 with 32->64
/// channels and 5x5 filters, 0.73 (20->20, 5x5), 0.60 (1->32, 3x3) and 0.52 (1->20, 5x5). nchw
/// tensors are reordered to nChw16c, in which convolutions with 20->20 channels reach 0.46. Filter
/// gradients of depthwise convolutions reach 0.07 to 0.25.
double efficiency(const OnednnTask& task, const OnednnKernelEntry& entry, int lanes) {
  const Shape& shape = task.result.shape;
  if (entry.channel_axis == 1) return 0.85;
  const bool computes_filter_gradient = entry.channel_axis == 4;
  if (computes_filter_gradient && shape[1].is(1) && task.op.attrs.get<int64_t>("groups") > 1)
    return 0.12;
  const auto c =
      static_cast<double>(shape[shape.size() - static_cast<size_t>(entry.channel_axis)].size);
  const double used = c / (std::ceil(c / lanes) * lanes);
  const bool is_nchw = !task.result.layout && !task.operands[0].layout;
  const double lanes_used = is_nchw ? 0.74 * used : 0.35 + 0.65 * used;
  const bool one_channel = task.operands[0].shape[1].is(1);
  return (used == 1 ? 0.97 : lanes_used) * (one_channel ? 0.65 : 1);
}

double predicted_seconds(const OnednnTask& task, const OnednnKernelEntry& entry,
                         const OnednnRates& rates) {
  const std::vector<Type> out = {task.result};
  const Cost cost = (*def_of(task.op).cost)(CostCtx{task.operands, out, task.op.attrs});
  auto bytes = static_cast<double>(task.result.bytes_at(1));
  for (const Type& t : task.operands) bytes += static_cast<double>(t.bytes_at(1));
  const double flops = cost.flops / efficiency(task, entry, rates.vector_lanes);
  const bool is_bf16 = task.result.dtype == DType::bf16;
  const bool has_matrix_units =
      is_bf16 && rates.bf16_flops_per_second > kVectorRatio * rates.flops_per_second;
  double rate = is_bf16 ? rates.bf16_flops_per_second : rates.flops_per_second;
  if (has_matrix_units) rate *= matrix_unit_efficiency(task, entry);
  if (entry.support == EpilogueSupport::integers) rate = kInt8Ratio * rates.flops_per_second;
  const double memory_seconds = bytes / rates.bytes_per_second;
  double seconds = kLibraryCallSeconds + std::max(flops / rate, memory_seconds);
  if (entry.kernel == "onednn.matmul" && task.operands[1].layout) {
    // In most products oneDNN copies a plain second matrix before it multiplies.
    const double copy = static_cast<double>(task.operands[1].bytes_at(1)) / rates.bytes_per_second;
    seconds = std::max(seconds - copy, kLibraryCallSeconds + memory_seconds);
  } else if (entry.kernel == "onednn.matmul" && has_matrix_units &&
             !task.op.attrs.get<bool>("transpose_b")) {
    // The copy has pairs of rows side by side. Measured: a matrix of 75 MB takes 5 ms more than a
    // transposed one.
    seconds += 3 * static_cast<double>(task.operands[1].bytes_at(1)) / rates.bytes_per_second;
  }
  if (entry.kernel == "onednn.matmul" && has_matrix_units) {
    // Products of few terms: 9,216 x 64 x 4,096 takes 8 ms, 10 GB/s of its result.
    seconds += 3 * static_cast<double>(task.result.bytes_at(1)) / rates.bytes_per_second;
  }
  if (task.widened_from) {
    seconds += kLibraryCallSeconds * static_cast<double>(task.operands.size() + 1) +
               1.5 * bytes / rates.bytes_per_second;
  }
  return seconds;
}

/// Sets the workspace of `candidate`, and sets its layouts to those that the primitive requires.
/// Returns nullopt if class Layout cannot represent such a layout.
std::optional<KernelCandidate> with_required_layouts(const OnednnTask& task, const OnednnPlan& plan,
                                                     KernelCandidate candidate) {
  candidate.workspace = plan.workspace_bytes();
  for (const OnednnPlan::Arg& arg : plan.args) {
    if (task.widened_from) candidate.workspace += align_up(arg.required.get_size());
  }
  for (size_t i = 0; i <= task.operands.size(); ++i) {
    const bool result = i == task.operands.size();
    const Type& type = result ? task.result : task.operands[i];
    const OnednnPlan::Arg& arg = result ? plan.args.back() : plan.args[i];
    const std::optional<Type> required =
        arg.required == arg.actual ? type : with_onednn_layout(type, arg.required);
    if (!required) return std::nullopt;
    (result ? candidate.results : candidate.operands).push_back(required->layout);
  }
  return candidate;
}

/// Returns a copy of `reordering` that does not reorder the filter, but requires it in the
/// primitive's layout. Returns nullopt for an op whose operand 1 is no filter, for an op that is
/// widened to f32, for a filter that needs no reorder, and for a layout that class Layout cannot
/// represent.
std::optional<KernelCandidate> with_packed_filter(const OnednnTask& task, const OnednnPlan& plan,
                                                  const KernelCandidate& reordering,
                                                  const OnednnRates& rates) {
  const OnednnPlan::Arg& filter = plan.args[1];
  const bool has_filter =
      reordering.kernel == "onednn.conv2d" || task.operands[1].dtype == DType::i8;
  if (!has_filter || filter.required == filter.actual || task.widened_from) return std::nullopt;
  const std::optional<Type> type = with_onednn_layout(task.operands[1], filter.required);
  if (!type) return std::nullopt;
  const int64_t bytes = align_up(filter.required.get_size());
  KernelCandidate packed = reordering;
  packed.operands[1] = type->layout;
  packed.workspace -= bytes;
  packed.seconds -= kLibraryCallSeconds + 2 * static_cast<double>(bytes) / rates.bytes_per_second;
  return packed;
}

/// Returns a copy of `plain` that requires the second matrix in the layout that oneDNN prefers.
/// Measured with 1 to 64 rows on two cores of a Zen 4: the product takes 0.3 to 0.95 of the time.
std::optional<KernelCandidate> with_packed_matrix(const OnednnTask& task,
                                                  const KernelCandidate& plain,
                                                  const OnednnKernelEntry& entry,
                                                  const OnednnRates& rates) {
  if (entry.kernel != "onednn.matmul" || task.widened_from) return std::nullopt;
  const std::optional<PackedMatmul> product = packed_matmul(task);
  if (!product) return std::nullopt;
  OnednnTask on_packed = task;
  on_packed.operands[1] = product->weights;
  KernelCandidate packed = plain;
  packed.operands[1] = product->weights.layout;
  packed.workspace = product->workspace_bytes;
  packed.seconds = predicted_seconds(on_packed, entry, rates);
  return packed;
}

/// Adds the candidates of one kernel, unless an existing candidate is predicted to be at least as
/// fast.
void add_candidates(const ir::Op& op, const EpilogueOps& epilogue, const OnednnRates& rates,
                    const OnednnKernelEntry& entry, std::vector<KernelCandidate>& candidates) {
  const auto found = planned(op, epilogue, 1, entry);
  if (!found) return;
  const auto& [task, plan] = *found;
  const KernelCandidate base = {
      .kernel = std::string(entry.kernel),
      .seconds = predicted_seconds(task, entry, rates),
      .propagates_nan = !task.epilogue.relu};  // oneDNN's relu turns NaN into 0
  if (std::ranges::any_of(candidates,
                          [&](const KernelCandidate& c) { return c.seconds <= base.seconds; })) {
    return;
  }
  if (auto candidate = with_required_layouts(task, plan, base)) {
    candidates.push_back(std::move(*candidate));
    if (auto packed = with_packed_matrix(task, candidates.back(), entry, rates))
      candidates.push_back(std::move(*packed));
  }
  const Reordered reordered(*found);
  if (reordered.reordered_bytes == 0) return;
  KernelCandidate reordering = base;
  reordering.workspace = reordered.workspace();
  for (const Type& t : task.operands) reordering.operands.push_back(t.layout);
  reordering.results = {task.result.layout};
  reordering.seconds += kLibraryCallSeconds * static_cast<double>(reordered.num_reorders()) +
                        2 * static_cast<double>(reordered.reordered_bytes) / rates.bytes_per_second;
  candidates.push_back(reordering);
  if (const auto packed = with_packed_filter(task, plan, reordering, rates))
    candidates.push_back(*packed);
}

/// A oneDNN kernel with bound memory addresses.
class OnednnCall {
 public:
  OnednnCall(const Reordered& r, void* const* buffers, void* workspace);

  /// Whether the call is a single primitive that runs directly on `buffers`, without copies.
  bool can_rebind() const { return rebound_ > 0; }
  /// Rebinds the call to other buffers. Requires can_rebind().
  void rebind(void* const* buffers) {
    const std::vector<dnnl_exec_arg_t>& args = commands_.front().args;
    for (size_t i = 0; i < rebound_; ++i) {
      check_onednn(dnnl_memory_set_data_handle(args[i].memory, buffers[i]));
    }
  }

  void run() const {
    for (const Command& command : commands_) {
      if (command.primitive != nullptr) {
        run_onednn(command.primitive, stream_, command.args);
      } else if (command.shards) {
        command.shards();
      } else {
        command.convert.run();
      }
    }
  }

 private:
  /// One command of a call: a primitive with its arguments, sharded primitives, or a conversion.
  struct Command {
    const_dnnl_primitive_t primitive = nullptr;
    std::vector<dnnl_exec_arg_t> args = {};
    HalfConversion convert = {};
    std::function<void()> shards = {};
  };

  dnnl_exec_arg_t at(int id, const dnnl::memory::desc& desc, void* data) {
    memory_.emplace_back(desc, onednn_engine(), data);
    return {id, memory_.back().get()};
  }
  void add_reorder(const dnnl::reorder& reorder, dnnl_memory_t from, dnnl_memory_t to,
                   const dnnl::memory::desc& scratch, void* workspace) {
    commands_.push_back(
        {reorder.get(),
         {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, at(DNNL_ARG_SCRATCHPAD, scratch, workspace)}});
  }
  void add_conversion(DType half_dtype, void* half, void* wide, const dnnl::memory::desc& desc,
                      bool to_f32) {
    commands_.push_back({.convert = {.half_dtype = half_dtype,
                                     .half_data = static_cast<uint16_t*>(half),
                                     .f32_data = static_cast<float*>(wide),
                                     .count = static_cast<int64_t>(desc.get_size() / sizeof(float)),
                                     .to_f32 = to_f32}});
  }

  dnnl::stream stream_{onednn_engine()};
  std::vector<dnnl::memory> memory_;
  std::vector<Command> commands_;  ///< in execution order
  size_t rebound_ = 0;             ///< number of arguments that rebind() sets; 0: none
};

OnednnCall::OnednnCall(const Reordered& r, void* const* buffers, void* workspace) {
  Command main{r.plan.primitive.get(), {}};
  auto* moved = static_cast<std::byte*>(workspace) + r.scratch_bytes;
  const size_t last = r.plan.args.size() - 1;
  dnnl_memory_t actual_result = nullptr;
  // Address of the current argument: the f32 copy if there is one, else the buffer. The last
  // argument is the result, so `wide` is the result's address after the loop.
  void* wide = nullptr;
  std::vector<void*> required;
  for (size_t i = 0; i <= last; ++i) {
    const OnednnPlan::Arg& arg = r.plan.args[i];
    wide = buffers[i];
    if (r.widened_from) {
      wide = moved;
      moved += align_up(arg.actual.get_size());
      if (i != last) add_conversion(*r.widened_from, buffers[i], wide, arg.actual, true);
    }
    const dnnl_exec_arg_t actual = at(arg.id, arg.actual, wide);
    main.args.push_back(r.reorders[i] ? at(arg.id, arg.required, moved) : actual);
    required.push_back(r.reorders[i] ? moved : wide);
    if (!r.reorders[i]) continue;
    moved += align_up(arg.required.get_size());
    if (i == last) {
      actual_result = actual.memory;
    } else {
      add_reorder(*r.reorders[i], actual.memory, main.args[i].memory, r.scratches[i], workspace);
    }
  }
  const dnnl_memory_t required_result = main.args[last].memory;
  if (r.plan.shards) {
    commands_.push_back(
        {.shards = r.plan.shards->bind(required[0], required[1], required[2], workspace)});
  } else {
    main.args.push_back(at(DNNL_ARG_SCRATCHPAD, r.plan.scratchpad, workspace));
    commands_.push_back(std::move(main));
  }
  if (actual_result != nullptr) {
    add_reorder(*r.reorders[last], required_result, actual_result, r.scratches[last], workspace);
  }
  if (r.widened_from)
    add_conversion(*r.widened_from, buffers[last], wide, r.plan.args[last].actual, false);
  if (commands_.size() == 1 && !r.plan.shards) rebound_ = last + 1;
}

}  // namespace

void run_onednn(const_dnnl_primitive_t primitive, const dnnl::stream& stream,
                const std::vector<dnnl_exec_arg_t>& args) {
  check_onednn(
      dnnl_primitive_execute(primitive, stream.get(), static_cast<int>(args.size()), args.data()));
}

void check_onednn(dnnl_status_t status) {
  if (status == dnnl_success) return;
  throw DeviceError("oneDNN: " + (status == dnnl_out_of_memory
                                      ? "out of memory"
                                      : "error " + std::to_string(status)));
}

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr onednn_attributes(const Epilogue& epilogue) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (epilogue.relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attributes.set_post_ops(post);
  }
  return attributes;
}

std::vector<KernelCandidate> onednn_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                               const OnednnRates& rates) {
  std::vector<KernelCandidate> candidates;
  for (const OnednnKernelEntry* entry : cpu_kernels_for(kOnednnKernels, op))
    add_candidates(op, epilogue, rates, *entry, candidates);
  std::ranges::stable_sort(candidates, std::less(), &KernelCandidate::seconds);
  return candidates;
}

LibraryRoutine onednn_kernel(std::string_view kernel, const ir::Op& op, const EpilogueOps& epilogue,
                             int64_t batch) {
  const OnednnKernelEntry* entry = find_kernel(kOnednnKernels, kernel);
  auto found = entry != nullptr ? planned(op, epilogue, batch, *entry) : std::nullopt;
  if (!found)
    throw DeviceError("oneDNN has no kernel '" + std::string(kernel) + "' for " + op.name);
  auto reordered = std::make_shared<const Reordered>(std::move(*found));
  LibraryBinder bind = [reordered](void* const* buffers, void* workspace) -> LibraryCall {
    auto call = std::make_shared<OnednnCall>(*reordered, buffers, workspace);
    LibraryCall bound{.run = [reordered, call] { call->run(); }};
    if (call->can_rebind()) bound.rebind = [call](void* const* to) { call->rebind(to); };
    return bound;
  };
  return {std::move(bind), reordered->workspace()};
}

}  // namespace fluid
