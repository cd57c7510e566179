#include "codegen/team_sync.h"

#include <algorithm>
#include <set>

#include "ir/error.h"

namespace fluid::kir {
namespace {

/// A part of a block within which each thread accesses only its own elements: a vector loop, or a
/// statement outside of vector loops.
struct Phase {
  const void* statement;
  std::set<int64_t> reads, writes;  // buffer indices
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
      bound(loop.begin);
      bound(loop.end);
      return add(*loop.body);
    }
    phases.push_back({&loop, {}, {}});
    inside(*loop.body);
  }
  void add(const If& branch) {
    bound(branch.condition);
    add(*branch.body);
  }
  template <class Statement>
  void add(const Statement& statement) {
    phases.push_back({&statement, {}, {}});
    collect(statement);
  }

  /// Adds the read of a loop bound or condition as a phase. There is no statement after which
  /// threads could synchronize with it, so sync_points() rejects a write to what it reads.
  void bound(const Expr& e) {
    phases.push_back({nullptr, {}, {}});
    read(e);
  }

  void inside(const Block& block) {
    for (const Stmt& s : block) {
      std::visit([&](const auto& statement) { collect(statement); },
                 static_cast<const Stmt::variant&>(s));
    }
  }

  void collect(const For& loop) {
    read(loop.begin);
    read(loop.end);
    inside(*loop.body);
  }
  void collect(const If& branch) {
    read(branch.condition);
    inside(*branch.body);
  }
  void collect(const Let& let) { read(let.value); }
  void collect(const Acc&) {}
  void collect(const Accumulate& statement) {
    read(statement.value);
    read(statement.position);
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
      if (n.op() == Scalar::load) phases.back().reads.insert(n.node().ivalue);
    });
  }

  const Kernel& kernel_;
};

bool may_coincide(const Kernel& kernel, int64_t written, int64_t other) {
  if (written == other) return true;
  const Buffer& a = kernel.buffers[static_cast<size_t>(written)];
  const Buffer& b = kernel.buffers[static_cast<size_t>(other)];
  return a.role == Buffer::Role::out && b.role == Buffer::Role::in && !b.exclusive &&
         a.dtype == b.dtype;
}

}  // namespace

std::unordered_set<const void*> sync_points(const Kernel& kernel, const Block& body) {
  Phases all(kernel);
  all.add(body);
  auto meet = [&](const std::set<int64_t>& written, const std::set<int64_t>& touched) {
    return std::ranges::any_of(written, [&](int64_t w) {
      return std::ranges::any_of(touched, [&](int64_t t) { return may_coincide(kernel, w, t); });
    });
  };
  std::unordered_set<const void*> points;
  for (const Phase& p : all.phases) {
    for (const Phase& q : all.phases) {
      if (&p == &q) continue;
      if (!meet(p.writes, q.reads) && !meet(p.writes, q.writes) && !meet(q.writes, p.reads)) {
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
