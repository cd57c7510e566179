#include "codegen/thread_group_sync.h"

#include <algorithm>
#include <set>

#include "ir/error.h"

namespace fluid::kir {
namespace {

/// A phase: the buffer accesses of a vector loop, or of one statement outside of vector loops.
/// Within a phase, each thread accesses only its own elements.
struct Phase {
  const void* statement;
  std::set<int64_t> reads, writes;  // indices of the buffers that are read and written
};

class Phases {
 public:
  explicit Phases(const Kernel& kernel) : kernel_(kernel) {}

  void add(const Block& block) {
    for (const Stmt& s : block) {
      std::visit([&](const auto& statement) { add(statement); },
                 static_cast<const Stmt::variant&>(s));
    }
  }

  std::vector<Phase> phases;

 private:
  void add(const For& loop) {
    if (loop.kind != For::Kind::vector) {
      add_bound(loop.begin);
      add_bound(loop.end);
      return add(*loop.body);
    }
    phases.push_back({&loop, {}, {}});
    collect_block(*loop.body);
  }
  void add(const If& branch) {
    add_bound(branch.condition);
    add(*branch.body);
  }
  template <class Statement>
  void add(const Statement& statement) {
    phases.push_back({&statement, {}, {}});
    collect(statement);
  }

  /// Adds the reads of a loop bound or condition as a separate phase. No barrier can follow this
  /// phase, so sync_points() rejects kernels that write a buffer which `e` reads.
  void add_bound(const Expr& e) {
    phases.push_back({nullptr, {}, {}});
    read(e);
  }

  void collect_block(const Block& block) {
    for (const Stmt& s : block) {
      std::visit([&](const auto& statement) { collect(statement); },
                 static_cast<const Stmt::variant&>(s));
    }
  }

  void collect(const For& loop) {
    read(loop.begin);
    read(loop.end);
    collect_block(*loop.body);
  }
  void collect(const If& branch) {
    read(branch.condition);
    collect_block(*branch.body);
  }
  void collect(const Let& let) { read(let.value); }
  void collect(const Accumulator&) {}
  void collect(const Prefetch&) {}
  void collect(const Accumulate& statement) {
    read(statement.value);
    read(statement.argmax_index);
  }
  void collect(const StoreTo& store) {
    read(store.offset);
    read(store.value);
    read(store.mask);
    const Buffer& buffer = kernel_.buffers[static_cast<size_t>(store.buffer)];
    if (buffer.role != Buffer::Role::error) phases.back().writes.insert(store.buffer);
  }

  void read(const Expr& e) {
    if (!e) return;
    for_each_node(e, [&](const Expr& n) {
      if (n.op() == ScalarOp::load) phases.back().reads.insert(n.node().ivalue);
    });
  }

  const Kernel& kernel_;
};

bool may_alias(const Kernel& kernel, int64_t written, int64_t other) {
  if (written == other) return true;
  const Buffer& a = kernel.buffers[static_cast<size_t>(written)];
  const Buffer& b = kernel.buffers[static_cast<size_t>(other)];
  return a.role == Buffer::Role::out && b.role == Buffer::Role::in && !b.noalias &&
         a.dtype == b.dtype;
}

}  // namespace

std::unordered_set<const void*> sync_points(const Kernel& kernel, const Block& body) {
  Phases all(kernel);
  all.add(body);
  auto conflict = [&](const std::set<int64_t>& written, const std::set<int64_t>& touched) {
    return std::ranges::any_of(written, [&](int64_t w) {
      return std::ranges::any_of(touched, [&](int64_t t) { return may_alias(kernel, w, t); });
    });
  };
  std::unordered_set<const void*> points;
  for (const Phase& p : all.phases) {
    for (const Phase& q : all.phases) {
      if (&p == &q) continue;
      if (!conflict(p.writes, q.reads) && !conflict(p.writes, q.writes) &&
          !conflict(q.writes, p.reads)) {
        continue;
      }
      check(p.statement != nullptr,
            "kernel " + kernel.name + ": a bound is read where a block writes");
      points.insert(p.statement);
    }
  }
  return points;
}

}  // namespace fluid::kir
