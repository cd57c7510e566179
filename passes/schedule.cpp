#include <tuple>

#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Order = std::vector<int>;  // positions in the graph before scheduling

/// Precedence constraints of the ops, and the bytes that each op allocates and frees.
class Problem {
 public:
  Problem(const ir::Graph& graph, int64_t batch) : graph_(graph), batch_(batch) {
    for (int i = 0; i < size(); ++i) position_[&op(i)] = i;
    before_.resize(graph.ops.size());
    after_.resize(graph.ops.size());
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
  const std::vector<int>& before(int i) const { return before_[static_cast<size_t>(i)]; }
  const std::vector<int>& after(int i) const { return after_[static_cast<size_t>(i)]; }
  const std::vector<int>& exchanges() const { return scheduled_collectives_; }

  /// A value with memory of its own.
  struct Root {
    int64_t bytes = 0;         ///< in the transient region
    std::vector<int> readers;  ///< distinct ops
  };
  const Root& root(int number) const { return roots_[static_cast<size_t>(number)]; }
  /// Numbers of the roots that an op reads, and of the roots that it produces.
  const std::vector<int>& read(int i) const { return read_[static_cast<size_t>(i)]; }
  const std::vector<int>& made(int i) const { return made_[static_cast<size_t>(i)]; }

  /// For each root, the number of readers that have not run.
  using Left = std::vector<int>;
  Left all_readers() const {
    Left left;
    for (const Root& r : roots_) left.push_back(static_cast<int>(r.readers.size()));
    return left;
  }
  /// Bytes that running op `i` allocates. freed() gives the bytes that it frees.
  int64_t added(int i) const {
    int64_t bytes = 0;
    for (const int r : made(i)) bytes += root(r).bytes;
    return bytes;
  }
  int64_t freed(int i, const Left& left) const {
    int64_t bytes = 0;
    for (const int r : read(i)) {
      if (left[static_cast<size_t>(r)] == 1) bytes += root(r).bytes;
    }
    return bytes;
  }

  int64_t peak(const Order& order) const {
    Left left = all_readers();
    int64_t used = 0, peak = 0;
    for (int i : order) {
      used += added(i);
      peak = std::max(peak, used);
      used -= freed(i, left);
      for (const int r : read(i)) --left[static_cast<size_t>(r)];
      for (const int r : made(i)) {
        if (root(r).readers.empty()) used -= root(r).bytes;
      }
    }
    return peak;
  }

 private:
  void add_edge(int from, int to) {
    before_[static_cast<size_t>(to)].push_back(from);
    after_[static_cast<size_t>(from)].push_back(to);
  }

  /// Only memory in the transient region counts; sources, outputs and stored values have 0 bytes.
  void number_roots() {
    std::map<Value, int> numbers;
    read_.resize(graph_.ops.size());
    made_.resize(graph_.ops.size());
    for (int i = 0; i < size(); ++i) {
      const auto at = static_cast<size_t>(i);
      std::set<int> reads;
      for (const Value v : op(i).operands) reads.insert(numbers.at(root_of(v)));
      for (const int r : reads) roots_[static_cast<size_t>(r)].readers.push_back(i);
      read_[at].assign(reads.begin(), reads.end());
      const bool source = source_kind(op(i)) != SourceKind::none;
      for (size_t r = 0; r < op(i).results.size(); ++r) {
        const Value v = graph_.ops[at]->result(static_cast<int>(r));
        if (root_of(v) != v) continue;
        made_[at].push_back(static_cast<int>(roots_.size()));
        numbers[v] = made_[at].back();
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

  /// An update runs after the other readers of its variable, so that it can be in place.
  void order_updates() {
    const auto uses = graph_.uses();
    std::map<std::string, Value> variables;  // also carried values
    for (const auto& op : graph_.ops) {
      if (source_kind(*op) != SourceKind::none) variables[op->symbol] = op->result();
    }
    for (const auto& op : graph_.ops) {
      if (!is_store(*op) || !variables.contains(op->symbol)) continue;
      const ir::Op* writer = root_of(op->operands[0]).op();
      auto readers = uses.find(variables.at(op->symbol));
      if (readers == uses.end()) continue;
      for (const ir::Op* reader : readers->second) {
        const int from = position_.at(reader), to = position_.at(writer);
        if (from < to) add_edge(from, to);
      }
    }
  }

  /// Ops that may reject data run before the first write to a variable, so that a rejected step
  /// changes nothing.
  void order_checks() {
    for (int check = 0; check < size(); ++check) {
      if (checks_data(op(check))) add_edges_to_writers(check);
    }
  }
  /// Adds edges to the writers that need not run before `from` for other reasons.
  void add_edges_to_writers(int from) {
    std::set<int> writers;
    for (const auto& op : graph_.ops) {
      if (is_store(*op)) writers.insert(position_.at(root_of(op->operands[0]).op()));
    }
    const std::vector<bool> earlier = up_to(from);
    for (const int writer : writers) {
      if (!earlier[static_cast<size_t>(writer)]) add_edge(from, writer);
    }
  }
  /// For each op, whether it must run before `last` or is `last`.
  std::vector<bool> up_to(int last) const {
    std::vector<bool> earlier(graph_.ops.size());
    std::vector<int> stack = {last};
    while (!stack.empty()) {
      const auto at = static_cast<size_t>(stack.back());
      stack.pop_back();
      if (earlier[at]) continue;
      earlier[at] = true;
      stack.insert(stack.end(), before_[at].begin(), before_[at].end());
    }
    return earlier;
  }

  /// All processes run their collectives in one order, however their programs differ.
  void order_collectives() {
    for (const ir::Op* op : fluid::exchanges(graph_))
      scheduled_collectives_.push_back(position_.at(op));
    for (size_t i = 1; i < scheduled_collectives_.size(); ++i)
      add_edge(scheduled_collectives_[i - 1], scheduled_collectives_[i]);
  }

  /// Ranks exchange their error words when all ops that may reject data have run (executor/gpu).
  /// This happens at an equal position among the collectives on all ranks, though other ops may be
  /// ordered differently. Variables are written later.
  void order_error_sync() {
    const std::optional<size_t> before = collectives_before_error_sync(graph_);
    if (!before) return;
    for (int check = 0; check < size(); ++check) {
      if (checks_data(op(check))) add_edge(check, scheduled_collectives_[*before]);
    }
    if (*before > 0) add_edges_to_writers(scheduled_collectives_[*before - 1]);
  }

  const ir::Graph& graph_;
  int64_t batch_;
  std::map<const ir::Op*, int> position_;
  std::vector<int> scheduled_collectives_;  ///< in their order of execution
  std::vector<std::vector<int>> before_, after_;
  std::vector<Root> roots_;
  std::vector<std::vector<int>> read_, made_;  ///< roots, by op
};

/// List scheduling: repeatedly takes the ready op with the lowest score, the first one on ties.
/// Stores come last. `score` may depend on a root's readers only by whether one reader is left: a
/// score is recomputed only when this changes.
template <class Score>
Order list_schedule(const Problem& p, const Score& score) {
  using Rank = std::tuple<bool, int64_t, int>;
  Problem::Left left = p.all_readers();
  std::vector<Rank> ranks(static_cast<size_t>(p.size()), Rank{false, 0, -1});
  std::set<Rank> ready;
  auto add = [&](int i) {
    Rank& rank = ranks[static_cast<size_t>(i)];
    rank = {is_store(p.op(i)), score(i, left), i};
    ready.insert(rank);
  };
  std::vector<int> waiting(static_cast<size_t>(p.size()));
  for (int i = 0; i < p.size(); ++i) {
    waiting[static_cast<size_t>(i)] = static_cast<int>(p.before(i).size());
    if (p.before(i).empty()) add(i);
  }
  Order order;
  while (!ready.empty()) {
    const int best = std::get<int>(*ready.begin());
    ready.erase(ready.begin());
    order.push_back(best);
    for (const int root : p.read(best)) {
      if (--left[static_cast<size_t>(root)] != 1) continue;
      for (int reader : p.root(root).readers) {
        if (ready.erase(ranks[static_cast<size_t>(reader)]) > 0) add(reader);
      }
    }
    for (int next : p.after(best)) {
      if (--waiting[static_cast<size_t>(next)] == 0) add(next);
    }
  }
  return order;
}

/// Runs every op as late as its readers allow: depth-first search from the last op back.
Order as_late_as_possible(const Problem& p) {
  Order order;
  std::vector<bool> done(static_cast<size_t>(p.size()));
  auto visit = [&](auto& self, int i) -> void {
    if (done[static_cast<size_t>(i)]) return;
    done[static_cast<size_t>(i)] = true;
    for (int before : p.before(i)) self(self, before);
    order.push_back(i);
  };
  for (int i = 0; i < p.size(); ++i) {
    if (p.after(i).empty() || p.op(i).role == ir::Role::forward) visit(visit, i);
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
  auto least_memory = [&](int i, const auto& left) { return p.added(i) - p.freed(i, left); };
  return {list_schedule(p, updates_early), list_schedule(p, given), as_late_as_possible(p),
          list_schedule(p, least_memory)};
}

/// Starts every collective as soon as its operands are ready. Ops that depend on a collective of
/// gradients or outputs move behind all other ops, so that computation overlaps with communication.
Order overlapped(const Problem& p, const Order& order) {
  if (p.exchanges().empty()) return order;
  std::vector<bool> waits(static_cast<size_t>(p.size()));
  std::vector<int> todo;
  std::ranges::copy_if(p.exchanges(), std::back_inserter(todo),
                       [&](int i) { return p.op(i).role == ir::Role::comm; });
  while (!todo.empty()) {
    const int i = todo.back();
    todo.pop_back();
    if (waits[static_cast<size_t>(i)]) continue;
    waits[static_cast<size_t>(i)] = true;
    // The order among collectives is no data dependency.
    std::ranges::copy_if(p.after(i), std::back_inserter(todo), [&](int next) {
      return !is_collective(p.op(i)) || !is_collective(p.op(next));
    });
  }
  Order result;
  std::vector<bool> done(static_cast<size_t>(p.size()));
  auto next = p.exchanges().begin();
  const auto add = [&](int i) {
    result.push_back(i);
    done[static_cast<size_t>(i)] = true;
    const auto is_done = [&](int before) { return done[static_cast<size_t>(before)]; };
    while (next != p.exchanges().end() && std::ranges::all_of(p.before(*next), is_done)) {
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

/// Selects the order with the lowest peak. Early collectives keep gradients alive beside
/// activations. So orders that exceed the lowest peak by at most kMargin times the reduced bytes
/// count as equal. Among these, selects the order that starts collectives first.
Order choice(const Problem& p, const std::vector<Order>& orders) {
  constexpr double kMargin = 1.5;  // times the bytes of all collectives
  int64_t exchanged = 0;
  for (const int exchange : p.exchanges()) exchanged += collective_bytes(p.op(exchange));
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
  const int64_t most = lowest + static_cast<int64_t>(kMargin * static_cast<double>(exchanged));
  const auto rank = [&](size_t i) {
    return exchanged > 0 && peaks[i] <= most ? std::tuple(lowest, starts[i])
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
  const Order best = choice(problem, orders);
  if (std::ranges::is_sorted(best)) return false;
  std::vector<std::unique_ptr<ir::Op>> ops;
  for (int i : best) ops.push_back(std::move(graph.ops[static_cast<size_t>(i)]));
  graph.ops = std::move(ops);
  return true;
}

}  // namespace

Pass schedule_pass() {
  return {.name = "schedule",
          .doc = "Orders the ops for the lowest memory peak.",
          .needs = {"fused"},
          .gives = {"scheduled"},
          .run = run_schedule};
}

}  // namespace fluid
