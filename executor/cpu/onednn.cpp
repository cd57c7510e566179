#include "executor/cpu/onednn.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu/onednn_half_copy.h"
#include "executor/cpu/onednn_memory.h"
#include "executor/cpu/onednn_plan.h"
#include "ops/table.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

constexpr double kCallSeconds = 4e-6;  // entering the library and a parallel region

struct Kind {
  std::string_view kernel;
  std::optional<OnednnPlan> (*plan)(const OnednnTask&);
  int channel_axis;       ///< from the end, where a bias goes
  bool winograd = false;  ///< by transformed tiles, with fewer products
};

constexpr Kind kKinds[] = {
    {"onednn.conv2d", plan_conv2d, 3},
    {"onednn.conv2d_winograd", plan_conv2d_winograd, 3, true},
    {"onednn.conv2d_grad_input", plan_conv2d_grad_input, 3},
    {"onednn.conv2d_grad_input_winograd", plan_conv2d_grad_input_winograd, 3, true},
    {"onednn.conv2d_grad_filter", plan_conv2d_grad_filter, 4},
    {"onednn.conv2d_grad_filter_winograd", plan_conv2d_grad_filter_winograd, 4, true},
    {"onednn.matmul", plan_matmul, 1}};

const Kind* kind_named(std::string_view kernel) {
  const Kind* kind = std::ranges::find(kKinds, kernel, &Kind::kernel);
  return kind != std::end(kKinds) ? kind : nullptr;
}

Type concrete(Type type, int64_t batch) {
  type.shape = type.shape.at(batch);
  return type;
}

bool is_read_of(const Expr& e, int64_t operand) {
  return e.op() == Scalar::read && e.node().ivalue == operand;
}

/// Whether `op` adds, to `before`, one number a channel; `bias` is then that operand.
bool adds_bias(const ir::Op& op, const Value& before, int channel_axis, size_t& bias) {
  if (op.operands.size() != 2) return false;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  if (body.op() != Scalar::add || !is_read_of(body.args()[0], 0) ||
      !is_read_of(body.args()[1], 1)) {
    return false;
  }
  bias = op.operands[0] == before ? 1 : 0;
  const Shape& y = before.shape();
  const Type& b = op.operands[bias].type();
  const auto axis = static_cast<size_t>(channel_axis);
  if (b.layout || op.results[0].type.shape != y || b.shape.size() < axis) return false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const bool channel = b.shape.size() - d == axis;
    if (!(channel ? b.shape[d] == y[y.size() - axis] : b.shape[d].is(1))) return false;
  }
  return b.dtype == before.dtype();
}

bool is_relu(const ir::Op& op) {
  if (op.operands.size() != 1 || op.results.size() != 1) return false;
  const Lowered lowered = lower_op(op);
  const Expr& body = lowered.bodies[0];
  return body.op() == Scalar::max && is_read_of(body.args()[0], 0) &&
         is_constant(body.args()[1], 0);
}

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<Map>(*def_of(op).lower) && op.results.size() == 1;
}

/// Empty when the chain is more than a bias and a relu.
std::optional<OnednnEpilogue> match(const ir::Op& op, const Chain& chain, int channel_axis,
                                    int64_t batch) {
  OnednnEpilogue epilogue;
  Value before = {const_cast<ir::Op*>(&op), 0};
  for (const ir::Op* next : chain) {
    if (epilogue.relu || !is_elementwise(*next)) return std::nullopt;
    size_t bias = 0;
    if (is_relu(*next)) {
      epilogue.relu = true;
    } else if (!epilogue.bias && adds_bias(*next, before, channel_axis, bias)) {
      const Type type = concrete(next->operands[bias].type(), batch);
      epilogue.bias = Type{type.dtype, {type.shape.numel()}, {}};
    } else {
      return std::nullopt;
    }
    before = {const_cast<ir::Op*>(next), 0};
  }
  return epilogue;
}

/// oneDNN computes with extents in 32 bits and dies of larger ones.
bool fits_onednn(const Type& type) {
  return std::ranges::all_of(
      type.shape, [](const Dim& d) { return d.size <= std::numeric_limits<int32_t>::max(); });
}

/// What oneDNN computes for a task in f16, of which its kernels for CPUs know nothing.
void widen(OnednnTask& task) {
  task.widened = true;
  task.result.dtype = DType::f32;
  for (Type& t : task.operands) t.dtype = DType::f32;
  if (task.epilogue.bias) task.epilogue.bias->dtype = DType::f32;
}

std::optional<OnednnTask> task_of(const ir::Op& op, const Chain& chain, int64_t batch,
                                  const Kind& kind) {
  const auto epilogue = match(op, chain, kind.channel_axis, batch);
  if (!epilogue) return std::nullopt;
  const ir::Op& last = chain.empty() ? op : *chain.back();
  OnednnTask task{op, {}, concrete(last.results[0].type, batch), *epilogue};
  for (const Value& v : op.operands) task.operands.push_back(concrete(v.type(), batch));
  const DType dtype = task.result.dtype;
  for (const Type& t : task.operands) {
    if (t.dtype != dtype || t.shape.numel().size == 0) return std::nullopt;
    if (!fits_onednn(t)) return std::nullopt;
  }
  if (task.result.shape.numel().size == 0 || !fits_onednn(task.result)) return std::nullopt;
  if (dtype == DType::f16) widen(task);
  if (!onednn_dtype(task.result.dtype)) return std::nullopt;
  return task;
}

std::string name_of(dnnl_status_t status) {
  return status == dnnl_out_of_memory ? "out of memory" : "error " + std::to_string(status);
}

/// A primitive with copies around it where the memory given is not as it wants it.
/// The workspace holds the scratch of whichever primitive runs, then the copied tensors.
struct Reordered {
  OnednnPlan plan;
  bool widens;                                         ///< all that is given is f16
  std::vector<std::optional<dnnl::reorder>> reorders;  ///< one an argument
  std::vector<dnnl::memory::desc> scratches;           ///< of those
  int64_t scratch_bytes = 0;
  int64_t moved_bytes = 0;    ///< of tensors in other layouts
  int64_t widened_bytes = 0;  ///< of f16 tensors as f32

  Reordered(OnednnPlan p, bool widens) : plan(std::move(p)), widens(widens) {
    scratch_bytes = aligned(plan.workspace.get_size());
    for (const OnednnPlan::Arg& arg : plan.args) {
      reorders.emplace_back();
      scratches.emplace_back();
      if (widens) widened_bytes += aligned(arg.given.get_size());
      if (arg.wanted == arg.given) continue;
      const bool result = &arg == &plan.args.back();
      const dnnl::reorder::primitive_desc pd(onednn_engine(), result ? arg.wanted : arg.given,
                                             onednn_engine(), result ? arg.given : arg.wanted,
                                             onednn_attributes({}));
      reorders.back() = dnnl::reorder(pd);
      scratches.back() = pd.scratchpad_desc();
      scratch_bytes = std::max(scratch_bytes, aligned(scratches.back().get_size()));
      moved_bytes += aligned(arg.wanted.get_size());
    }
  }
  int64_t workspace() const { return scratch_bytes + widened_bytes + moved_bytes; }
  int64_t moves() const {
    return std::ranges::count_if(reorders, [](const auto& r) { return r.has_value(); });
  }
};

/// The part of the peak that a kernel reaches, from minima of runs on one core with AVX-512 and
/// oneDNN 2.6.3. Convolutions in nhwc: 32->64 5x5 0.97, 20->20 5x5 0.73, 1->32 3x3 0.60, 1->20 5x5
/// 0.52; in nChw16c, which is what they take where plain tensors are reordered: 20->20 0.46.
double efficiency(const OnednnTask& task, const Kind& kind, int lanes) {
  const Shape& shape = task.result.shape;
  if (kind.channel_axis == 1) return 0.85;
  const auto c =
      static_cast<double>(shape[shape.size() - static_cast<size_t>(kind.channel_axis)].size);
  const double used = c / (std::ceil(c / lanes) * lanes);
  const bool blocks = !task.result.layout && !task.operands[0].layout && !task.operands[1].layout;
  const double lanes_used = blocks ? 0.74 * used : 0.35 + 0.65 * used;
  const bool one_channel = task.operands[0].shape[1].is(1);
  return (used == 1 ? 0.97 : lanes_used) * (one_channel ? 0.65 : 1);
}

/// Operations at the peak's rate that take as long as Winograd's F(4x4, 3x3) (Lavin and Gray, CVPR
/// 2016): 36 products for 16 results of 9 taps, between 36 transformed elements for every 16 of an
/// image. What one of those costs is from runs of 64 to 384 channels on two cores with AVX-512.
double winograd_flops(const OnednnTask& task, const Kind& kind, double flops) {
  constexpr double kTile = 4, kProducts = 36.0 / 16, kTaps = 9, kTransform = 175;
  const bool gives_filter = kind.channel_axis == 4;
  const Type& other = gives_filter ? task.operands[1] : task.result;
  const auto numel = [](const Type& t) { return static_cast<double>(t.shape.numel().size); };
  const auto whole_tiles = [&](const Dim& d) {
    const auto n = static_cast<double>(d.size);
    return std::ceil(n / kTile) * kTile / n;
  };
  const Shape& image = task.operands[0].shape;
  return whole_tiles(image[2]) * whole_tiles(image[3]) * kProducts *
         (flops / kTaps + kTransform * (numel(task.operands[0]) + numel(other)));
}

double predicted_seconds(const OnednnTask& task, const Kind& kind, const OnednnRates& rates) {
  const std::vector<Type> out = {task.result};
  const Cost cost = (*def_of(task.op).cost)(CostCtx{task.operands, out, task.op.attrs});
  auto bytes = static_cast<double>(task.result.bytes_at(1));
  for (const Type& t : task.operands) bytes += static_cast<double>(t.bytes_at(1));
  const double flops = kind.winograd ? winograd_flops(task, kind, cost.flops)
                                     : cost.flops / efficiency(task, kind, rates.vector_lanes);
  const double rate = rates.flops * 4 / static_cast<double>(size_of(task.result.dtype));
  double seconds = kCallSeconds + std::max(flops / rate, bytes / rates.bytes);
  if (task.widened) {
    seconds +=
        kCallSeconds * static_cast<double>(task.operands.size() + 1) + 1.5 * bytes / rates.bytes;
  }
  return seconds;
}

/// The claim of layouts as the primitive wants them; empty when one cannot be said.
std::optional<Claim> claim_wanted(const OnednnTask& task, const OnednnPlan& plan, Claim claim) {
  claim.workspace = aligned(plan.workspace.get_size());
  for (const OnednnPlan::Arg& arg : plan.args) {
    if (task.widened) claim.workspace += aligned(arg.wanted.get_size());
  }
  for (size_t i = 0; i <= task.operands.size(); ++i) {
    const bool result = i == task.operands.size();
    const Type& type = result ? task.result : task.operands[i];
    const OnednnPlan::Arg& arg = result ? plan.args.back() : plan.args[i];
    const std::optional<Type> wanted =
        arg.wanted == arg.given ? type : with_onednn_layout(type, arg.wanted);
    if (!wanted) return std::nullopt;
    (result ? claim.results : claim.operands).push_back(wanted->layout);
  }
  return claim;
}

/// How one routine would run the op, unless those before it are predicted to be faster.
void add_claims(const ir::Op& op, const Chain& epilogue, const OnednnRates& rates, const Kind& kind,
                std::vector<Claim>& claims) {
  const auto task = task_of(op, epilogue, 1, kind);
  const auto plan = task ? kind.plan(*task) : std::nullopt;
  if (!plan || plan->implementation.find("ref") != std::string::npos) return;
  const Claim bare = {.kernel = std::string(kind.kernel),
                      .seconds = predicted_seconds(*task, kind, rates),
                      .keeps_nan = !task->epilogue.relu};  // oneDNN's relu makes 0 of it
  if (std::ranges::any_of(claims, [&](const Claim& c) { return c.seconds <= bare.seconds; })) {
    return;
  }
  if (auto claim = claim_wanted(*task, *plan, bare)) claims.push_back(std::move(*claim));
  const Reordered reordered(*plan, task->widened);
  if (reordered.moved_bytes == 0) return;
  Claim as_given = bare;
  as_given.workspace = reordered.workspace();
  for (const Type& t : task->operands) as_given.operands.push_back(t.layout);
  as_given.results = {task->result.layout};
  as_given.seconds += kCallSeconds * static_cast<double>(reordered.moves()) +
                      2 * static_cast<double>(reordered.moved_bytes) / rates.bytes;
  claims.push_back(as_given);
}

}  // namespace

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr onednn_attributes(const OnednnEpilogue& epilogue) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (epilogue.relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attributes.set_post_ops(post);
  }
  return attributes;
}

std::vector<Claim> onednn_claims(const ir::Op& op, const Chain& epilogue,
                                 const OnednnRates& rates) {
  std::vector<Claim> claims;
  for (const LibraryKernel& kernel : *def_of(op).kernels) {
    const Kind* kind = kernel.place == On::cpu ? kind_named(kernel.name) : nullptr;
    if (kind != nullptr) add_claims(op, epilogue, rates, *kind, claims);
  }
  std::ranges::stable_sort(claims, std::less(), &Claim::seconds);
  return claims;
}

struct OnednnKernel::Impl {
  Reordered reordered;
};

struct OnednnCall::Impl {
  /// One primitive with its arguments, or a copy.
  struct Part {
    const_dnnl_primitive_t primitive = nullptr;
    std::vector<dnnl_exec_arg_t> args;
    HalfCopy copy = {};
  };
  dnnl::stream stream{onednn_engine()};
  std::vector<dnnl::memory> memory;
  std::vector<Part> parts;  ///< in order

  dnnl_exec_arg_t arg(int id, const dnnl::memory::desc& desc, void* data) {
    memory.emplace_back(desc, onednn_engine(), data);
    return {id, memory.back().get()};
  }
  void add_reorder(const dnnl::reorder& reorder, dnnl_memory_t from, dnnl_memory_t to,
                   const dnnl::memory::desc& scratch, void* workspace) {
    parts.push_back(
        {reorder.get(),
         {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, arg(DNNL_ARG_SCRATCHPAD, scratch, workspace)}});
  }
  void add_copy(void* half, void* wide, const dnnl::memory::desc& desc, bool widens) {
    const auto n = static_cast<int64_t>(desc.get_size() / sizeof(float));
    parts.push_back({.copy = {static_cast<uint16_t*>(half), static_cast<float*>(wide), n, widens}});
  }
};

OnednnCall::OnednnCall() = default;
OnednnCall::~OnednnCall() = default;
OnednnCall::OnednnCall(OnednnCall&&) noexcept = default;
OnednnCall& OnednnCall::operator=(OnednnCall&&) noexcept = default;

void OnednnCall::run() const {
  for (const Impl::Part& part : impl_->parts) {
    if (part.primitive == nullptr) {
      part.copy.run();
      continue;
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        part.primitive, impl_->stream.get(), static_cast<int>(part.args.size()), part.args.data());
    if (status != dnnl_success) throw DeviceError("oneDNN: " + name_of(status));
  }
}

OnednnKernel::OnednnKernel(std::string_view kernel, const ir::Op& op, const Chain& epilogue,
                           int64_t batch) {
  const Kind* kind = kind_named(kernel);
  const auto task = kind != nullptr ? task_of(op, epilogue, batch, *kind) : std::nullopt;
  auto plan = task ? kind->plan(*task) : std::nullopt;
  if (!plan) throw DeviceError("oneDNN has no kernel '" + std::string(kernel) + "' for " + op.name);
  impl_ = std::make_unique<Impl>(Impl{Reordered(std::move(*plan), task->widened)});
}

OnednnKernel::~OnednnKernel() = default;
OnednnKernel::OnednnKernel(OnednnKernel&&) noexcept = default;

int64_t OnednnKernel::workspace() const { return impl_->reordered.workspace(); }

OnednnCall OnednnKernel::bind(void* const* buffers, void* workspace) const {
  const Reordered& r = impl_->reordered;
  OnednnCall call;
  call.impl_ = std::make_unique<OnednnCall::Impl>();
  OnednnCall::Impl& impl = *call.impl_;
  OnednnCall::Impl::Part main{r.plan.primitive.get(), {}};
  auto* moved = static_cast<std::byte*>(workspace) + r.scratch_bytes;
  const size_t last = r.plan.args.size() - 1;
  dnnl_memory_t given_result = nullptr;
  void* wide = nullptr;  // in the end, the result before it is narrowed
  for (size_t i = 0; i <= last; ++i) {
    const OnednnPlan::Arg& arg = r.plan.args[i];
    wide = buffers[i];
    if (r.widens) {
      wide = moved;
      moved += aligned(arg.given.get_size());
      if (i != last) impl.add_copy(buffers[i], wide, arg.given, true);
    }
    const dnnl_exec_arg_t given = impl.arg(arg.id, arg.given, wide);
    main.args.push_back(r.reorders[i] ? impl.arg(arg.id, arg.wanted, moved) : given);
    if (!r.reorders[i]) continue;
    moved += aligned(arg.wanted.get_size());
    if (i == last) {
      given_result = given.memory;
    } else {
      impl.add_reorder(*r.reorders[i], given.memory, main.args[i].memory, r.scratches[i],
                       workspace);
    }
  }
  const dnnl_memory_t wanted_result = main.args[last].memory;
  main.args.push_back(impl.arg(DNNL_ARG_SCRATCHPAD, r.plan.workspace, workspace));
  impl.parts.push_back(std::move(main));
  if (given_result != nullptr) {
    impl.add_reorder(*r.reorders[last], wanted_result, given_result, r.scratches[last], workspace);
  }
  if (r.widens) impl.add_copy(buffers[last], wide, r.plan.args[last].given, false);
  return call;
}

}  // namespace fluid
