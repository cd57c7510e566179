#include "codegen/generic_fill.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/schedule_loops.h"

namespace fluid {
namespace {

/// Returns the vector loop of `kernel` if the kernel consists of Lets followed by this loop, and
/// the loop contains only Lets and unmasked stores. Otherwise returns null.
kir::For* single_vector_loop(kir::Kernel& kernel) {
  if (kernel.body.empty() || !kernel.finish.empty()) return nullptr;
  const auto is_let = [](const kir::Stmt& s) { return std::holds_alternative<kir::Let>(s); };
  if (!std::all_of(kernel.body.begin(), kernel.body.end() - 1, is_let)) return nullptr;
  auto* loop = std::get_if<kir::For>(&kernel.body.back());
  if (!loop || loop->kind != kir::For::Kind::vector) return nullptr;
  const auto is_straight = [&](const kir::Stmt& s) {
    const auto* store = std::get_if<kir::StoreTo>(&s);
    return is_let(s) || (store && !store->mask);
  };
  return std::ranges::all_of(*loop->body, is_straight) ? loop : nullptr;
}

/// If the kernel has one output and only scalar operands, returns the number of elements of the
/// output. Else returns 0.
int64_t fill_size(const kir::Kernel& kernel) {
  int64_t size = 0;
  for (const kir::Buffer& buffer : kernel.buffers) {
    if (buffer.elements.batch) return 0;
    switch (buffer.role) {
      case kir::Buffer::Role::in:
        if (!buffer.elements.is(1)) return 0;
        break;
      case kir::Buffer::Role::out:
        if (size > 0) return 0;
        size = buffer.elements.size;
        break;
      case kir::Buffer::Role::constants:
        break;
      default:
        return 0;
    }
  }
  return size;
}

/// Appends 64-bit words to the kernel's constants buffer. `statements` holds Lets with the loaded
/// words.
class ConstantLoads {
 public:
  explicit ConstantLoads(KernelBuilder& builder) : b_(builder) {}

  Expr integer(int64_t value) { return load_word(i64, value); }

  Expr real(DType dtype, double value) {
    const Expr word = load_word(f64, std::bit_cast<int64_t>(value));
    return append_let(b_, scalar::cast(word, dtype), statements);
  }

  kir::Block statements;

 private:
  Expr load_word(DType dtype, int64_t word) {
    b_.kernel.constants.push_back(word);
    const Expr at = Expr::index(std::ssize(b_.kernel.constants) - 1);
    return append_let(b_, load(table_of(dtype), dtype, at), statements);
  }

  /// Returns the index of the constants buffer with elements of `dtype`. Adds the buffer if there
  /// is none.
  int64_t table_of(DType dtype) {
    std::vector<kir::Buffer>& buffers = b_.kernel.buffers;
    const auto found = std::ranges::find_if(buffers, [&](const kir::Buffer& b) {
      return b.role == kir::Buffer::Role::constants && b.dtype == dtype;
    });
    const auto index = found - buffers.begin();
    if (found == buffers.end()) {
      const std::string name = dtype == i64 ? "constants" : "float_constants";
      buffers.push_back({name, dtype, 0, kir::Buffer::Role::constants, true});
    }
    return index;
  }

  KernelBuilder& b_;
};

}  // namespace

void make_generic_if_fill(KernelBuilder& b) {
  kir::Kernel& kernel = b.kernel;
  const int64_t size = fill_size(kernel);
  kir::For* loop = single_vector_loop(kernel);
  if (size == 0 || !loop) return;

  // Renumbers the loop variables, because their numbers depend on the rank of the result, which
  // differs between fills.
  const int64_t block_var = std::exchange(kernel.block_var, 0);
  loop->var = 1;
  ConstantLoads constants(b);
  const auto replace_leaves = [&](Expr& e, bool is_bound) {
    e = rewrite(e, [&](const Expr& leaf) -> Expr {
      if (leaf.op() == ScalarOp::var) return Expr::var(leaf.node().ivalue == block_var ? 0 : 1);
      if (leaf.op() != ScalarOp::constant) return {};
      if (is_float(leaf.dtype())) return constants.real(leaf.dtype(), leaf.node().fvalue);
      return is_bound && is_constant(leaf, static_cast<double>(size)) ? constants.integer(size)
                                                                      : Expr();
    });
  };
  replace_leaves(loop->begin, false);
  replace_leaves(loop->end, true);
  for (kir::Stmt& s : *loop->body) {
    if (auto* let = std::get_if<kir::Let>(&s)) {
      replace_leaves(let->value, false);
    } else if (auto* store = std::get_if<kir::StoreTo>(&s)) {
      replace_leaves(store->offset, false);
      replace_leaves(store->value, false);
    }
  }
  kernel.vector_width = b.lanes();
  kernel.generic = true;
  kernel.body.insert(kernel.body.end() - 1, constants.statements.begin(),
                     constants.statements.end());
}

}  // namespace fluid
