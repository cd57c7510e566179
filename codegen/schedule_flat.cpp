#include "codegen/schedule_flat.h"

#include <algorithm>

#include "ops/index_range.h"
#include "ops/intern.h"

namespace fluid {
namespace {

Expr index_of(int64_t var) { return var < 0 ? Expr::index(0) : Expr::var(var); }

DType accumulator(const FusionRoot& root) {
  const DType body = root.body.dtype();
  if (body == f64 || body == f32) return body;
  return i64;
}

/// Returns the indices of the tensor access `read`. Clamps each index that may be out of range, for
/// example a data-dependent index or one computed by arange. Adds a bounds check for each clamped
/// index to `root`.
std::vector<Expr> clamp(const KernelBuilder& builder, const Type& type, const Expr& read,
                        int64_t input, FlatRoot& root) {
  std::vector<Expr> index(read.args().begin(), read.args().begin() + type.shape.rank());
  const bool masked = read.args().size() > index.size();
  for (size_t d = 0; d < index.size(); ++d) {
    if (is_constant(in_range(index[d], type.shape[d], builder.extents), 1)) continue;
    const Expr end = extent_expr(type.shape[d]);
    Expr bad = scalar::logical_or(scalar::compare(ScalarOp::lt, index[d], Expr::index(0)),
                                  scalar::compare(ScalarOp::ge, index[d], end));
    if (masked) bad = scalar::logical_and(bad, read.args().back());
    root.checks.push_back({bad, index[d], input});
    index[d] = scalar::max(scalar::min(index[d], end - Expr::index(1)), Expr::index(0));
  }
  return index;
}

/// Whether all index expressions in `e` use the variables `a` and `b` only as a * size + b. One
/// loop can then replace the loops over both variables.
bool only_in_row_major_index(const Expr& e, int64_t a, int64_t b, int64_t size,
                             std::map<const ExprNode*, bool>& memo) {
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  bool good = true;
  const std::optional<Affine> affine = e.dtype() == i64 ? as_affine(e) : std::nullopt;
  if (affine) {
    good = affine->coefficient(a) == affine->coefficient(b) * size;
  } else {
    for (const Expr& arg : e.args()) good = good && only_in_row_major_index(arg, a, b, size, memo);
  }
  return memo[e.get()] = good;
}

std::vector<Expr> expressions(const FlatRoot& root) {
  std::vector<Expr> all = {root.body};
  for (const Expr& e : {root.argmax_index, root.result_index}) {
    if (e) all.push_back(e);
  }
  for (const auto& [result, offset] : root.stores) all.push_back(offset);
  for (const IndexCheck& c : root.checks) {
    all.push_back(c.out_of_range);
    all.push_back(c.index);
  }
  return all;
}

bool has(const Vars& vars, int64_t v) { return std::ranges::find(vars, v) != vars.end(); }

bool collapsible(const KernelBuilder& builder, const std::vector<FlatRoot>& roots, int64_t a,
                 int64_t b) {
  const Dim& size = builder.extent(b);
  if (size.batch) return false;
  std::map<const ExprNode*, bool> memo;
  for (const FlatRoot& root : roots) {
    if (has(root.out, a) != has(root.out, b) || has(root.reduce, a) != has(root.reduce, b)) {
      return false;
    }
    for (const Expr& e : expressions(root)) {
      if (!only_in_row_major_index(e, a, b, size.size, memo)) return false;
    }
  }
  return true;
}

}  // namespace

Vars without_unit_dims(const Vars& vars) {
  Vars kept;
  std::ranges::copy_if(vars, std::back_inserter(kept), [](int64_t v) { return v >= 0; });
  return kept;
}

Expr row_major_index(const KernelBuilder& builder, const Vars& vars) {
  Expr index = Expr::index(0);
  for (int64_t v : without_unit_dims(vars))
    index = index * extent_expr(builder.extent(v)) + Expr::var(v);
  return index;
}

Dim element_count(const KernelBuilder& builder, const Vars& vars) {
  Shape shape;
  for (int64_t v : without_unit_dims(vars)) shape.push_back(builder.extent(v));
  return shape.numel();
}

KernelBuilder::KernelBuilder(Group analyzed, std::string name, const Processor& target)
    : processor(target), group(std::move(analyzed)), extents(group.extents) {
  kernel.name = std::move(name);
  auto add = [&](const Value& v, kir::Buffer::Role role, const std::string& stem, size_t i) {
    Dim elements = 1;
    const Type& type = v.type();
    if (!type.layout) {
      elements = type.shape.numel();
    } else {
      elements = Dim(type.bytes_at(1) / size_of(type.dtype));
      elements.batch = type.shape.has_batch();
    }
    kernel.buffers.push_back({stem + std::to_string(i), type.dtype, elements, role});
  };
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    add(group.inputs[i], kir::Buffer::Role::in, "in", i);
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    add(group.outputs[i], kir::Buffer::Role::out, "out", i);
  }
  for (kir::Buffer& buffer : kernel.buffers) {
    buffer.noalias = buffer.role == kir::Buffer::Role::in;
  }
  for (const InPlace& pair : in_place_pairs(group)) {
    kernel.buffers[static_cast<size_t>(pair.in)].noalias = false;
  }
  // Gives the roots in Kernel::finish their own variables, because Sweep may rename the variables
  // of the other roots.
  std::map<int64_t, Expr> fresh;
  auto renamed = [&](int64_t v) {
    if (v < 0) return v;
    if (!fresh.contains(v)) {
      fresh[v] = Expr::var(static_cast<int64_t>(extents.size()));
      extents.push_back(extents[static_cast<size_t>(v)]);
    }
    return fresh[v].node().ivalue;
  };
  for (FusionRoot& root : group.roots) {
    if (!root.in_finish_phase) continue;
    for (int64_t& v : root.out) v = renamed(v);
    for (int64_t& v : root.reduce) v = renamed(v);
    root.body = rewrite(root.body, [&](const Expr& e) {
      return e.op() == ScalarOp::var ? Expr::var(renamed(e.node().ivalue)) : Expr();
    });
  }
  next_var = static_cast<int64_t>(extents.size());
  next_let = 2 * static_cast<int64_t>(group.roots.size());
}

int64_t KernelBuilder::add_scratch_buffer(DType dtype, Dim elements) {
  kernel.buffers.push_back({"scratch" + std::to_string(kernel.buffers.size()), dtype, elements,
                            kir::Buffer::Role::scratch});
  return static_cast<int64_t>(kernel.buffers.size()) - 1;
}

int64_t KernelBuilder::add_local_buffer(DType dtype, int64_t elements) {
  kernel.buffers.push_back(
      {"local" + std::to_string(kernel.buffers.size()), dtype, elements, kir::Buffer::Role::local});
  return static_cast<int64_t>(kernel.buffers.size()) - 1;
}

Expr KernelBuilder::load_constant(int64_t value) {
  std::vector<int64_t>& values = kernel.constants;
  const auto is_constants = [](const kir::Buffer& b) {
    return b.role == kir::Buffer::Role::constants;
  };
  if (values.empty()) {
    kernel.buffers.push_back({"constants", i64, 0, kir::Buffer::Role::constants, true});
  }
  const auto buffer = std::ranges::find_if(kernel.buffers, is_constants);
  const auto at = std::ranges::find(values, value) - values.begin();
  if (at == std::ssize(values)) values.push_back(value);
  buffer->elements = std::ssize(values);
  return load(buffer - kernel.buffers.begin(), i64, Expr::index(at));
}

Expr offset_of(const Type& type, const std::vector<Expr>& index) {
  std::vector<Expr> outer = index;
  std::vector<Dim> sizes(type.shape.begin(), type.shape.end());
  // For each layout block: (index within the block, block size), innermost block last.
  std::vector<std::pair<Expr, int64_t>> inner;
  std::vector<size_t> order(index.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (type.layout) {
    order.assign(type.layout->order.begin(), type.layout->order.end());
    for (auto block = type.layout->blocks.rbegin(); block != type.layout->blocks.rend(); ++block) {
      const auto axis = static_cast<size_t>(block->axis);
      const Expr size = Expr::index(block->size);
      inner.insert(inner.begin(), {scalar::mod(outer[axis], size), block->size});
      outer[axis] = scalar::floordiv(outer[axis], size);
      sizes[axis].size = (sizes[axis].size + block->size - 1) / block->size;
    }
  }
  Expr offset = Expr::index(0);
  for (size_t d : order) offset = offset * extent_expr(sizes[d]) + outer[d];
  for (const auto& [e, size] : inner) offset = offset * Expr::index(size) + e;
  return offset;
}

Expr load(int64_t buffer, DType dtype, const Expr& offset, const Expr& mask, double fallback) {
  ExprNode n{.op = ScalarOp::load, .dtype = compute_dtype(dtype), .args = {offset}};
  n.ivalue = buffer;
  if (mask) {
    n.args.push_back(mask);
    n.fvalue = fallback;
  }
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

Expr load_reduction_result(const Group& group, const Expr& let, int64_t buffer) {
  const ReductionRead read = reduction_of(let);
  const ir::Op* op = group.roots[static_cast<size_t>(read.root)].op;
  const Type& type = op->results[static_cast<size_t>(read.result)].type;
  const Type plain{type.dtype, type.shape, std::nullopt};
  return load(buffer, compute_dtype(type.dtype), offset_of(plain, let.args()));
}

/// Replaces constant operands of a philox node by loads from the constants buffer. Layers that
/// differ only in their random streams then share a kernel.
Expr philox_of_constants(KernelBuilder& builder, const Expr& philox) {
  std::vector<Expr> args = philox.args();
  // Arguments 1 and 2: the two 32-bit halves of the stream id, or the run counter and the stream
  // id.
  for (const size_t i : {1, 2}) {
    if (is_constant(args[i])) args[i] = builder.load_constant(args[i].node().ivalue);
  }
  return scalar::philox(args[0], args[1], args[2], args[3]);
}

FlatRoot flatten(KernelBuilder& builder, int root_id,
                 const std::function<Expr(const Expr& let)>& resolve) {
  const FusionRoot& source = builder.group.roots[static_cast<size_t>(root_id)];
  FlatRoot root;
  root.source = &source;
  root.id = root_id;
  root.out = without_unit_dims(source.out);
  root.reduce = without_unit_dims(source.reduce);
  root.acc_dtype = accumulator(source);
  Interner intern;
  root.body = intern(rewrite(source.body, [&](const Expr& e) -> Expr {
    if (e.op() == ScalarOp::let) return resolve(e);
    if (e.op() == ScalarOp::philox && !builder.processor.gpu)
      return philox_of_constants(builder, e);
    if (e.op() != ScalarOp::read) return {};
    const int64_t input = e.node().ivalue;
    const Type& type = builder.group.inputs[static_cast<size_t>(input)].type();
    std::vector<Expr> index(e.args().begin(), e.args().begin() + type.shape.rank());
    if (e.node().checked) index = clamp(builder, type, e, input, root);
    const bool masked = e.args().size() > index.size();
    return load(input, type.dtype, offset_of(type, index), masked ? e.args().back() : Expr(),
                e.node().fvalue);
  }));
  builder.has_checks = builder.has_checks || !root.checks.empty();
  std::vector<Expr> index;
  for (int64_t v : source.out) index.push_back(index_of(v));
  for (size_t r = 0; r < source.outputs.size(); ++r) {
    const int slot = source.outputs[r];
    if (slot < 0) continue;
    const Type& type = builder.group.outputs[static_cast<size_t>(slot)].type();
    root.stores.push_back({static_cast<int>(r), offset_of(type, index)});
    root.buffers.push_back(static_cast<int64_t>(builder.group.inputs.size()) + slot);
  }
  if (root.is_reduction()) {
    root.result_index = row_major_index(builder, source.out);
    root.result_elements = element_count(builder, root.out);
    root.body = scalar::cast(root.body, root.acc_dtype);
  }
  if (source.combine == Combine::argmax)
    root.argmax_index = row_major_index(builder, source.reduce);
  return root;
}

Expr replace_var(const Expr& e, int64_t var, const Expr& replacement) {
  return rewrite(e, [&](const Expr& n) {
    return n.op() == ScalarOp::var && n.node().ivalue == var ? replacement : Expr();
  });
}

void substitute(FlatRoot& root, int64_t var, const Expr& replacement) {
  auto apply = [&](Expr& e) {
    if (e) e = replace_var(e, var, replacement);
  };
  apply(root.body);
  apply(root.argmax_index);
  apply(root.result_index);
  for (auto& [result, offset] : root.stores) apply(offset);
  for (IndexCheck& c : root.checks) {
    apply(c.out_of_range);
    apply(c.index);
  }
  for (Vars* vars : {&root.out, &root.reduce}) {
    if (replacement.op() == ScalarOp::var) {
      std::ranges::replace(*vars, var, replacement.node().ivalue);
    } else {
      std::erase(*vars, var);
    }
  }
}

void collapse_vars(KernelBuilder& builder, std::vector<FlatRoot>& roots, Vars& rows) {
  Vars vars;
  for (const FlatRoot& root : roots) {
    for (const Vars* list : {&root.out, &root.reduce}) {
      for (int64_t v : *list) {
        if (!has(vars, v)) vars.push_back(v);
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t a : vars) {
      const auto b = std::ranges::find_if(
          vars, [&](int64_t v) { return v != a && collapsible(builder, roots, a, v); });
      if (b == vars.end()) continue;
      Dim& size = builder.extents[static_cast<size_t>(*b)];
      const Dim& outer = builder.extent(a);
      size = Dim(size.size * outer.size);
      size.batch = outer.batch;
      for (FlatRoot& root : roots) substitute(root, a, Expr::index(0));
      std::erase(rows, a);
      std::erase(vars, a);
      changed = true;
      break;
    }
  }
  Interner intern;
  for (FlatRoot& root : roots) root.body = intern(root.body);
}

}  // namespace fluid
