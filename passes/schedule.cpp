#include <tuple>

#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Order = std::vector<int>;  // ops in execution order, as indices into the unscheduled graph

/// The scheduling problem: precedence constraints of the ops, and the bytes that each op allocates
/// and frees.
class Problem {
 public:
  Problem(const ir::Graph& graph, int64_t batch) : graph_(graph), batch_(batch) {
    for (int i = 0; i < size(); ++i) position_[&op(i)] = i;
    predecessors_.resize(graph.ops.size());
    successors_.resize(graph.ops.size());
    for (int i = 0; i < size(); ++i) {
      for (Value v : op(i).operands) add_edge(position_.at(v.op()), i);
    }
    number_roots();
    order_updates();
    order_collectives();
    order_checks();
    order_error_sync();
  }

  int size() const { return static_cast<int>(graph_.ops.size()); }
  const ir::Op& op(int i) const { return *graph_.ops[static_cast<size_t>(i)]; }
  const std::vector<int>& predecessors(int i) const {
    return predecessors_[static_cast<size_t>(i)];
  }
  const std::vector<int>& successors(int i) const { return successors_[static_cast<size_t>(i)]; }
  const std::vector<int>& collectives() const { return scheduled_collectives_; }

  /// A value that owns its memory (see root_of()).
  struct Root {
    int64_t bytes = 0;       ///< size if the value is in the transient region, else 0
    std::vector<int> users;  ///< indices of the ops that read the value, without duplicates
  };
  const Root& root(int number) const { return roots_[static_cast<size_t>(number)]; }
  /// Indices into roots_ of the roots that op `i` reads (consumed) or computes (produced).
  const std::vector<int>& consumed(int i) const { return consumed_[static_cast<size_t>(i)]; }
  const std::vector<int>& produced(int i) const { return produced_[static_cast<size_t>(i)]; }

  /// Number of users that have not run yet, by root index.
  using RemainingUsers = std::vector<int>;
  RemainingUsers all_users() const {
    RemainingUsers remaining;
    for (const Root& r : roots_) remaining.push_back(static_cast<int>(r.users.size()));
    return remaining;
  }
  /// Bytes of the root values that op `i` computes.
  int64_t allocated_bytes(int i) const {
    int64_t bytes = 0;
    for (const int r : produced(i)) bytes += root(r).bytes;
    return bytes;
  }
  /// Bytes of the root values whose last remaining user is op `i`.
  int64_t freed_bytes(int i, const RemainingUsers& remaining) const {
    int64_t bytes = 0;
    for (const int r : consumed(i)) {
      if (remaining[static_cast<size_t>(r)] == 1) bytes += root(r).bytes;
    }
    return bytes;
  }

  int64_t peak(const Order& order) const {
    RemainingUsers remaining = all_users();
    int64_t used = 0, peak = 0;
    for (int i : order) {
      used += allocated_bytes(i);
      peak = std::max(peak, used);
      used -= freed_bytes(i, remaining);
      for (const int r : consumed(i)) --remaining[static_cast<size_t>(r)];
      for (const int r : produced(i)) {
        if (root(r).users.empty()) used -= root(r).bytes;
      }
    }
    return peak;
  }

 private:
  void add_edge(int from, int to) {
    predecessors_[static_cast<size_t>(to)].push_back(from);
    successors_[static_cast<size_t>(from)].push_back(to);
  }

  /// Fills roots_, consumed_ and produced_. Sources, graph outputs and stored values get 0 bytes,
  /// because only memory in the transient region counts.
  void number_roots() {
    std::map<Value, int> numbers;
    consumed_.resize(graph_.ops.size());
    produced_.resize(graph_.ops.size());
    for (int i = 0; i < size(); ++i) {
      const auto at = static_cast<size_t>(i);
      std::set<int> reads;
      for (const Value v : op(i).operands) reads.insert(numbers.at(root_of(v)));
      for (const int r : reads) roots_[static_cast<size_t>(r)].users.push_back(i);
      consumed_[at].assign(reads.begin(), reads.end());
      const bool source = source_kind(op(i)) != SourceKind::none;
      for (size_t r = 0; r < op(i).results.size(); ++r) {
        const Value v = graph_.ops[at]->result(static_cast<int>(r));
        if (root_of(v) != v) continue;
        produced_[at].push_back(static_cast<int>(roots_.size()));
        numbers[v] = produced_[at].back();
        roots_.push_back({source ? 0 : v.type().bytes_at(batch_), {}});
      }
    }
    const auto is_permanent = [&](const Value v) {
      roots_[static_cast<size_t>(numbers.at(root_of(v)))].bytes = 0;
    };
    for (const ir::Output& o : graph_.outputs) is_permanent(o.value);
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) is_permanent(op->operands[0]);
    }
  }

  /// Adds edges from the users of each variable to the op that computes its new value. The new
  /// value can then overwrite the old value in place.
  void order_updates() {
    const auto uses = graph_.uses();
    // Name -> value of the source (variable, feed or carried value).
    std::map<std::string, Value> variables;
    for (const auto& op : graph_.ops) {
      if (source_kind(*op) != SourceKind::none) variables[op->symbol] = op->result();
    }
    for (const auto& op : graph_.ops) {
      if (!is_store(*op) || !variables.contains(op->symbol)) continue;
      const ir::Op* writer = root_of(op->operands[0]).op();
      auto users = uses.find(variables.at(op->symbol));
      if (users == uses.end()) continue;
      for (const ir::Op* user : users->second) {
        const int from = position_.at(user), to = position_.at(writer);
        if (from < to) add_edge(from, to);
      }
    }
  }

  /// Adds edges from the ops that may reject the step's data to the ops that write variables, so
  /// that a rejected step changes no variable.
  void order_checks() {
    for (int check = 0; check < size(); ++check) {
      if (may_reject_data(op(check))) add_edges_to_writers(check);
    }
  }
  /// Adds edges from op `from` to the ops that write variables, except ops that must run before
  /// `from`.
  void add_edges_to_writers(int from) {
    std::set<int> writers;
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) writers.insert(position_.at(root_of(op->operands[0]).op()));
    }
    const std::vector<bool> earlier = ancestors_of(from);
    for (const int writer : writers) {
      if (!earlier[static_cast<size_t>(writer)]) add_edge(from, writer);
    }
  }
  /// For each op index, whether the op is `last` or must run before `last`.
  std::vector<bool> ancestors_of(int last) const {
    std::vector<bool> earlier(graph_.ops.size());
    std::vector<int> stack = {last};
    while (!stack.empty()) {
      const auto at = static_cast<size_t>(stack.back());
      stack.pop_back();
      if (earlier[at]) continue;
      earlier[at] = true;
      stack.insert(stack.end(), predecessors_[at].begin(), predecessors_[at].end());
    }
    return earlier;
  }

  /// Adds edges between consecutive collectives. All processes must run the collectives in the same
  /// order, even if their programs differ.
  void order_collectives() {
    for (const ir::Op* op : collectives_in_order(graph_))
      scheduled_collectives_.push_back(position_.at(op));
    for (size_t i = 1; i < scheduled_collectives_.size(); ++i)
      add_edge(scheduled_collectives_[i - 1], scheduled_collectives_[i]);
  }

  /// Adds edges for the error sync: the ranks exchange their error words (executor/gpu) before the
  /// marked collective, which is the same on all ranks. Ops that may reject data run before the
  /// marked collective. Ops that write variables run after the preceding collective.
  void order_error_sync() {
    const std::optional<size_t> before = collectives_before_error_sync(graph_);
    if (!before) return;
    for (int check = 0; check < size(); ++check) {
      if (may_reject_data(op(check))) add_edge(check, scheduled_collectives_[*before]);
    }
    if (*before > 0) add_edges_to_writers(scheduled_collectives_[*before - 1]);
  }

  const ir::Graph& graph_;
  int64_t batch_;
  std::map<const ir::Op*, int> position_;
  std::vector<int> scheduled_collectives_;  ///< indices of the collectives, in execution order
  std::vector<std::vector<int>> predecessors_, successors_;
  std::vector<Root> roots_;
  std::vector<std::vector<int>> consumed_, produced_;  ///< op index -> indices into roots_
};

/// List scheduling: repeatedly appends the ready op with the lowest score. Among equal scores,
/// appends the op that comes first in the graph. Stores come last. A score is recomputed only when
/// the number of remaining users of a root becomes 1. Therefore score(i, remaining) may use
/// `remaining` only to test for exactly one remaining user.
template <class Score>
Order list_schedule(const Problem& p, const Score& score) {
  using Rank = std::tuple<bool, int64_t, int>;
  Problem::RemainingUsers remaining = p.all_users();
  std::vector<Rank> ranks(static_cast<size_t>(p.size()), Rank{false, 0, -1});
  std::set<Rank> ready;
  auto add = [&](int i) {
    Rank& rank = ranks[static_cast<size_t>(i)];
    rank = {is_store(p.op(i)), score(i, remaining), i};
    ready.insert(rank);
  };
  std::vector<int> waiting(static_cast<size_t>(p.size()));
  for (int i = 0; i < p.size(); ++i) {
    waiting[static_cast<size_t>(i)] = static_cast<int>(p.predecessors(i).size());
    if (p.predecessors(i).empty()) add(i);
  }
  Order order;
  while (!ready.empty()) {
    const int best = std::get<int>(*ready.begin());
    ready.erase(ready.begin());
    order.push_back(best);
    for (const int root : p.consumed(best)) {
      if (--remaining[static_cast<size_t>(root)] != 1) continue;
      for (int user : p.root(root).users) {
        if (ready.erase(ranks[static_cast<size_t>(user)]) > 0) add(user);
      }
    }
    for (int next : p.successors(best)) {
      if (--waiting[static_cast<size_t>(next)] == 0) add(next);
    }
  }
  return order;
}

/// An order in which ops run shortly before their first user. It is the postorder of a
/// depth-first search along predecessors, starting from forward ops and ops without successors.
Order as_late_as_possible(const Problem& p) {
  Order order;
  std::vector<bool> done(static_cast<size_t>(p.size()));
  auto visit = [&](auto& self, int i) -> void {
    if (done[static_cast<size_t>(i)]) return;
    done[static_cast<size_t>(i)] = true;
    for (int before : p.predecessors(i)) self(self, before);
    order.push_back(i);
  };
  for (int i = 0; i < p.size(); ++i) {
    if (p.successors(i).empty() || p.op(i).role == ir::Role::forward) visit(visit, i);
  }
  for (int i = 0; i < p.size(); ++i) visit(visit, i);
  std::ranges::stable_partition(order, [&](int i) { return !is_store(p.op(i)); });
  return order;
}

std::vector<Order> candidates(const Problem& p) {
  auto given = [](int i, const auto&) { return int64_t{i}; };
  auto updates_early = [&](int i, const auto&) {
    return int64_t{i} - (p.op(i).role == ir::Role::optimize ? p.size() : 0);
  };
  auto least_memory = [&](int i, const auto& remaining) {
    return p.allocated_bytes(i) - p.freed_bytes(i, remaining);
  };
  return {list_schedule(p, updates_early), list_schedule(p, given), as_late_as_possible(p),
          list_schedule(p, least_memory)};
}

/// Returns `order`, changed to overlap communication with computation. Each collective starts as
/// soon as its operands are computed. Ops that depend on a collective of gradients or outputs run
/// after all other ops.
Order overlapped(const Problem& p, const Order& order) {
  if (p.collectives().empty()) return order;
  std::vector<bool> waits(static_cast<size_t>(p.size()));
  std::vector<int> todo;
  std::ranges::copy_if(p.collectives(), std::back_inserter(todo),
                       [&](int i) { return p.op(i).role == ir::Role::comm; });
  while (!todo.empty()) {
    const int i = todo.back();
    todo.pop_back();
    if (waits[static_cast<size_t>(i)]) continue;
    waits[static_cast<size_t>(i)] = true;
    // Skips edges between collectives, because they are not data dependencies.
    std::ranges::copy_if(p.successors(i), std::back_inserter(todo), [&](int next) {
      return !is_collective(p.op(i)) || !is_collective(p.op(next));
    });
  }
  Order result;
  std::vector<bool> done(static_cast<size_t>(p.size()));
  auto next = p.collectives().begin();
  const auto add = [&](int i) {
    result.push_back(i);
    done[static_cast<size_t>(i)] = true;
    const auto is_done = [&](int before) { return done[static_cast<size_t>(before)]; };
    while (next != p.collectives().end() && std::ranges::all_of(p.predecessors(*next), is_done)) {
      result.push_back(*next);
      done[static_cast<size_t>(*next++)] = true;
    }
  };
  for (const bool waiting : {false, true}) {
    for (const int i : order) {
      if (!is_collective(p.op(i)) && !is_store(p.op(i)) &&
          waits[static_cast<size_t>(i)] == waiting) {
        add(i);
      }
    }
  }
  for (const int i : order) {
    if (is_store(p.op(i))) result.push_back(i);
  }
  return result;
}

/// Applies overlapped() to the orders and returns the order with the lowest peak memory. With
/// collectives, orders whose peak exceeds the lowest peak by at most a margin count as equal. Among
/// equal orders, returns the one that starts collectives earliest. The margin is kMargin times the
/// bytes of all collectives. Without a margin, an early start would lose, because gradients and
/// activations are then in memory at once.
Order lowest_peak(const Problem& p, const std::vector<Order>& orders) {
  constexpr double kMargin = 1.5;
  int64_t collective_total = 0;
  for (const int collective : p.collectives())
    collective_total += collective_bytes(p.op(collective));
  std::vector<Order> all;
  std::vector<int64_t> peaks, starts;
  for (const Order& order : orders) {
    const Order& last = all.emplace_back(overlapped(p, order));
    peaks.push_back(p.peak(last));
    starts.push_back(0);
    for (size_t at = 0; at < last.size(); ++at) {
      if (is_collective(p.op(last[at]))) starts.back() += static_cast<int64_t>(at);
    }
  }
  const int64_t lowest = std::ranges::min(peaks);
  const int64_t most =
      lowest + static_cast<int64_t>(kMargin * static_cast<double>(collective_total));
  const auto rank = [&](size_t i) {
    return collective_total > 0 && peaks[i] <= most ? std::tuple(lowest, starts[i])
                                                    : std::tuple(peaks[i], int64_t{0});
  };
  size_t best = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (rank(i) < rank(best)) best = i;
  }
  return all[best];
}

bool run_schedule(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  const Problem problem(graph, options.batch);
  const std::vector<Order> orders = candidates(problem);
  const Order best = lowest_peak(problem, orders);
  if (std::ranges::is_sorted(best)) return false;
  std::vector<std::unique_ptr<ir::Op>> ops;
  for (int i : best) ops.push_back(std::move(graph.ops[static_cast<size_t>(i)]));
  graph.ops = std::move(ops);
  return true;
}

}  // namespace

Pass schedule_pass() {
  return {.name = "schedule",
          .doc = "Orders the ops for the lowest peak memory.",
          .needs = {"fused"},
          .provides = {"scheduled"},
          .run = run_schedule};
}

}  // namespace fluid
