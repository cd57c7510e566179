#include "executor/cpu/onednn.h"

#include <algorithm>
#include <cmath>

#include "executor/cpu/onednn_memory.h"
#include "executor/cpu/onednn_plan.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kCallSeconds = 4e-6;  // entering the library and a parallel region
constexpr double kEfficiency = 0.85;   // of the peak, once channels are padded

struct Kind {
  std::string_view kernel;
  std::optional<OnednnPlan> (*plan)(const OnednnTask&);
  int channel_axis;  ///< from the end, where a bias goes
};

constexpr Kind kKinds[] = {{"onednn.conv2d", plan_conv2d, 3},
                           {"onednn.conv2d_grad_input", plan_conv2d_grad_input, 3},
                           {"onednn.conv2d_grad_filter", plan_conv2d_grad_filter, 4},
                           {"onednn.matmul", plan_matmul, 1}};

const Kind* kind_of_op(const ir::Op& op) {
  for (const LibraryKernel& kernel : *def_of(op).kernels) {
    for (const Kind& kind : kKinds) {
      if (kernel.place == On::cpu && kernel.name == kind.kernel) return &kind;
    }
  }
  return nullptr;
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

std::optional<OnednnPlan> plan_of(const ir::Op& op, const Chain& chain, int64_t batch,
                                  bool choose_layouts) {
  const Kind* kind = kind_of_op(op);
  if (kind == nullptr) return std::nullopt;
  const auto epilogue = match(op, chain, kind->channel_axis, batch);
  if (!epilogue) return std::nullopt;
  const ir::Op& last = chain.empty() ? op : *chain.back();
  OnednnTask task{op, {}, concrete(last.results[0].type, batch), *epilogue, choose_layouts};
  for (const Value& v : op.operands) task.operands.push_back(concrete(v.type(), batch));
  std::vector<Type> all = task.operands;
  all.push_back(task.result);
  for (const Type& t : all) {
    if (!onednn_dtype(t.dtype) || t.dtype != all[0].dtype || t.shape.numel().size == 0) return {};
  }
  return kind->plan(task);
}

double padded(double flops, const Type& t, int lanes) {
  const auto c = static_cast<double>(t.shape.size() == 4 ? t.shape[1].size : t.shape.back().size);
  return flops * std::ceil(c / lanes) * lanes / c;
}

double predicted_seconds(const ir::Op& op, const OnednnPlan& plan, const OnednnRates& rates) {
  const std::vector<Type> in(plan.types.begin(), plan.types.end() - 1), out = {plan.types.back()};
  const Cost cost = (*def_of(op).cost)(CostCtx{in, out, op.attrs});
  double bytes = 0;
  for (const Type& t : plan.types) bytes += static_cast<double>(t.bytes_at(1));
  const double rate = rates.flops * kEfficiency * 4 / static_cast<double>(size_of(in[0].dtype));
  const Type& y = op.operands[0].type();
  return kCallSeconds +
         std::max(padded(cost.flops, in.size() > 1 ? out[0] : y, rates.vector_lanes) / rate,
                  bytes / rates.bytes);
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
  const std::optional<OnednnPlan> plan = plan_of(op, epilogue, 1, true);
  if (!plan || plan->implementation.find("ref") != std::string::npos) return {};
  Claim claim;
  claim.kernel = kind_of_op(op)->kernel;
  claim.seconds = predicted_seconds(op, *plan, rates);
  claim.workspace = static_cast<int64_t>(plan->workspace.get_size());
  for (const Type& t : plan->types) claim.operands.push_back(t.layout);
  claim.results = {claim.operands.back()};
  claim.operands.pop_back();
  return {claim};
}

struct OnednnKernel::Impl {
  OnednnPlan plan;
};

struct OnednnCall::Impl {
  dnnl::stream stream{onednn_engine()};
  const_dnnl_primitive_t primitive = nullptr;
  std::vector<dnnl::memory> memory;
  std::vector<dnnl_exec_arg_t> args;
};

OnednnCall::OnednnCall() = default;
OnednnCall::~OnednnCall() = default;
OnednnCall::OnednnCall(OnednnCall&&) noexcept = default;
OnednnCall& OnednnCall::operator=(OnednnCall&&) noexcept = default;

void OnednnCall::run() const {
  const dnnl_status_t status =
      dnnl_primitive_execute(impl_->primitive, impl_->stream.get(),
                             static_cast<int>(impl_->args.size()), impl_->args.data());
  if (status != dnnl_success) throw DeviceError("oneDNN failed to run a kernel");
}

OnednnKernel::OnednnKernel(const ir::Op& op, const Chain& epilogue, int64_t batch) {
  std::optional<OnednnPlan> plan = plan_of(op, epilogue, batch, false);
  if (!plan) throw DeviceError("oneDNN has no kernel for " + op.name + " in these layouts");
  impl_ = std::make_unique<Impl>(Impl{std::move(*plan)});
}

OnednnKernel::~OnednnKernel() = default;
OnednnKernel::OnednnKernel(OnednnKernel&&) noexcept = default;

int64_t OnednnKernel::workspace() const {
  return static_cast<int64_t>(impl_->plan.workspace.get_size());
}

OnednnCall OnednnKernel::bind(void* const* buffers, void* workspace) const {
  OnednnCall call;
  call.impl_ = std::make_unique<OnednnCall::Impl>();
  call.impl_->primitive = impl_->plan.primitive.get();
  auto add = [&](int id, const dnnl::memory::desc& desc, void* data) {
    call.impl_->memory.emplace_back(desc, onednn_engine(), data);
    call.impl_->args.push_back({id, call.impl_->memory.back().get()});
  };
  for (size_t i = 0; i < impl_->plan.args.size(); ++i) {
    add(impl_->plan.args[i].id, impl_->plan.args[i].desc, buffers[i]);
  }
  if (workspace != nullptr) add(DNNL_ARG_SCRATCHPAD, impl_->plan.workspace, workspace);
  return call;
}

}  // namespace fluid
