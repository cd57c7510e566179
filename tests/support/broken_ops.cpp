#include "tests/support/broken_ops.h"

#include <algorithm>

#include "ops/operators.h"

namespace fluid::testing {
namespace {

std::optional<OpDef> wrong_gradient(const OpTest& test, OpDef def) {
  const GradFn* grad = std::get_if<GradFn>(&*def.grad);
  if (grad == nullptr || !test.gradient || def.inputs->empty()) return std::nullopt;
  def.grad.value = GradFn([right = *grad](const GradCtx& c) {
    Values grads = right(c);
    for (Value& g : grads) {
      if (g) g = g * 1.01;
    }
    return grads;
  });
  return def;
}

/// Adds 1e-3 (1 to integers, flips bool) to the body at the result's first element.
Expr disturbed(const Expr& body, size_t rank) {
  Expr first = Expr::constant(DType::boolean, 1);
  for (size_t d = 0; d < rank; ++d) {
    const Expr at = Expr::var(static_cast<int64_t>(d));
    first = scalar::logical_and(first, scalar::compare(ScalarOp::eq, at, Expr::index(0)));
  }
  const Expr changed = body.dtype() == DType::boolean
                           ? scalar::logical_not(body)
                           : body + (is_float(body.dtype()) ? 1e-3 : 1.0);
  return scalar::select(first, changed, body);
}

/// Adds 1e-3 (1 to integers, flips bool) to what is stored in a buffer.
void disturb_stores(kir::Block& block, int64_t buffer) {
  for (kir::Stmt& s : block) {
    if (auto* loop = std::get_if<kir::For>(&s)) {
      disturb_stores(*loop->body, buffer);
    } else if (auto* branch = std::get_if<kir::If>(&s)) {
      disturb_stores(*branch->body, buffer);
    } else if (auto* store = std::get_if<kir::StoreTo>(&s); store && store->buffer == buffer) {
      store->value = disturbed(store->value, 0);
    }
  }
}

int64_t first_output(const kir::Kernel& kernel) {
  const auto at = std::ranges::find(kernel.buffers, kir::Buffer::Role::out, &kir::Buffer::role);
  return at - kernel.buffers.begin();
}

std::optional<OpDef> wrong_forward(OpDef def) {
  if (const Map* map = std::get_if<Map>(&*def.lower)) {
    def.lower.value = Map{[right = map->body](const LowerCtx& c) {
      std::vector<Expr> bodies = right(c);
      bodies[0] = disturbed(bodies[0], c.out_type().shape.size());
      return bodies;
    }};
  } else if (const Reduce* reduce = std::get_if<Reduce>(&*def.lower)) {
    def.lower.value = Reduce{reduce->combine, [right = reduce->body](const LowerCtx& c) {
                               ReduceBody body = right(c);
                               body.body = disturbed(body.body, c.out_type().shape.size());
                               return body;
                             }};
  } else if (const Loops* loops = std::get_if<Loops>(&*def.lower)) {
    def.lower.value = Loops{[right = loops->kernel](const LoopsCtx& c) {
                              kir::Kernel kernel = right(c);
                              disturb_stores(kernel.body, first_output(kernel));
                              return kernel;
                            },
                            loops->checked};
  } else if (const Expand* expand = std::get_if<Expand>(&*def.lower)) {
    def.lower.value = Expand{[right = expand->ops](const ExpandCtx& c) {
      Values results = right(c);
      const bool of_bools = results[0].dtype() == boolean;
      results[0] = of_bools ? logical_not(results[0])
                            : results[0] + (is_float(results[0].dtype()) ? 1e-3 : 1.0);
      return results;
    }};
  } else {
    return std::nullopt;
  }
  return def;
}

OpDef wrong_infer(OpDef def) {
  def.infer.value = [right = *def.infer](const InferCtx& c) {
    std::vector<Type> types = right(c);
    Shape& shape = types[0].shape;
    if (shape.empty()) {
      shape.emplace_back(1);
    } else {
      shape.back().size += 1;
    }
    return types;
  };
  return def;
}

std::optional<OpDef> wrong_cost(const OpTest& test, OpDef def) {
  const Built b = build(test, test.samples[0]);
  std::vector<Type> in, out;
  for (const Value& v : b.op->operands) in.push_back({v.dtype(), v.shape().at(b.batch), {}});
  for (const ir::Result& r : b.op->results) {
    out.push_back({r.type.dtype, r.type.shape.at(b.batch), {}});
  }
  const Cost cost = (*def.cost)(CostCtx{in, out, b.op->attrs});
  if (cost.flops == 0 && cost.bytes == 0) return std::nullopt;
  def.cost.value = [right = *def.cost](const CostCtx& c) {
    const Cost cost = right(c);
    return Cost{.flops = cost.flops * 100, .bytes = cost.bytes * 100};
  };
  return def;
}

/// Declares the pairs of equal types that are not declared, and no others.
std::optional<OpDef> wrong_in_place(const OpTest& test, OpDef def) {
  std::vector<InPlace> inverted;
  bool any = false;
  // Some kernels that an op writes work in place although the op does not declare it.
  const bool lowered =
      !std::holds_alternative<Expand>(*def.lower) && !std::holds_alternative<Loops>(*def.lower);
  for (const Sample& sample : test.samples) {
    const Built b = build(test, sample);
    const size_t operands = std::min(b.op->operands.size(), def.inputs->size());
    for (size_t out = 0; lowered && out < b.op->results.size(); ++out) {
      for (size_t in = 0; in < operands; ++in) {
        if (b.op->results[out].type != b.op->operands[in].type()) continue;
        const auto same_pair = [&](const InPlace& p) {
          return p.out == static_cast<int>(out) && p.in == static_cast<int>(in);
        };
        any = true;
        if (std::none_of(def.in_place->begin(), def.in_place->end(), same_pair)) {
          inverted.push_back({static_cast<int>(out), static_cast<int>(in)});
        }
      }
    }
  }
  if (!any) return std::nullopt;
  def.in_place.value = inverted;
  return def;
}

}  // namespace

std::string_view name_of(Break kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"gradient", "forward", "infer", "cost",
                                                             "in_place"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<OpDef> broken(const OpTest& test, Break kind) {
  const OpDef& def = op_named(test.op);
  switch (kind) {
    case Break::gradient:
      return wrong_gradient(test, def);
    case Break::forward:
      return wrong_forward(def);
    case Break::infer:
      return wrong_infer(def);
    case Break::cost:
      return wrong_cost(test, def);
    default:
      return wrong_in_place(test, def);
  }
}

Faults check_for(Break kind, const OpTest& test, const OpDef& def) {
  switch (kind) {
    case Break::gradient:
      return check_gradient(test, def);
    case Break::cost:
      return check_cost(test, def);
    case Break::in_place:
      return check_in_place(test, def);
    default:
      return check_forward(test, def);
  }
}

}  // namespace fluid::testing
