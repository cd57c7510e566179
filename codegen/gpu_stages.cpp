#include "codegen/gpu_stages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace fluid {
namespace {

/// Maximum number of extra elements that a thread of the row-wise schedule (Sweep) may process,
/// compared with an even distribution over kBusyThreads threads. Above this limit, the group is
/// split into several kernels. An H200 took 30 us to combine 512 partial results in one thread, 60
/// ns for each, and about 2 us for a short kernel of a graph.
constexpr double kMaxExtraElements = 32;
constexpr double kMinSplitTerms = 8;  // minimum length of a partial reduction
// Approximate number of elements that a thread processes.
constexpr double kElementsPerThread = 4;

/// How a reduction is divided into partial reductions.
struct Division {
  size_t whole = 0;    ///< number of leading reduction variables that index the partial results
  int64_t chunk = 0;   ///< iterations of the next one that a partial reduction takes; 0: all
  double threads = 0;  ///< number of threads that compute partial reductions
  double terms = 0;    ///< number of terms of a partial reduction
  bool terms_vary = false;  ///< whether `terms` depends on the batch size
};

/// Returns the smallest divisor of the constant factor of `extent` that is at least `least`, and
/// makes at least two chunks; 0 if there is none.
int64_t chunk_of(const Dim& extent, double least) {
  const double most = std::min(static_cast<double>(extent.size), estimated_extent(extent) / 2);
  for (auto chunk = static_cast<int64_t>(std::ceil(least)); static_cast<double>(chunk) <= most;
       ++chunk) {
    if (extent.size % chunk == 0) return chunk;
  }
  return 0;
}

/// Divides a reduction of `reduce` to `out`, until kBusyThreads threads are busy.
Division divide(const std::vector<Dim>& out, const std::vector<Dim>& reduce, bool is_argmax) {
  Division division{.threads = 1 / kElementsPerThread, .terms = 1};
  for (const Dim& d : out) division.threads *= estimated_extent(d);
  for (const Dim& d : reduce) division.terms *= estimated_extent(d);
  for (const Dim& d : reduce) {
    const double extent = estimated_extent(d);
    if (is_argmax || division.threads >= kBusyThreads) break;
    double divisor = extent;
    if (division.terms / extent < kMinSplitTerms) {
      const double most =
          std::min(kBusyThreads / division.threads, division.terms / kMinSplitTerms);
      division.chunk = chunk_of(d, extent / most);
      if (division.chunk == 0) break;
      divisor = extent / static_cast<double>(division.chunk);
    }
    division.threads *= divisor;
    division.terms /= divisor;
    if (division.chunk > 0) break;
    ++division.whole;
  }
  for (size_t i = division.whole + (division.chunk > 0 ? 1 : 0); i < reduce.size(); ++i)
    division.terms_vary = division.terms_vary || !reduce[i].is_constant();
  return division;
}

std::vector<Dim> extents_of(const std::vector<Dim>& extents, const Vars& vars) {
  std::vector<Dim> dims;
  for (const int64_t v : without_unit_dims(vars)) dims.push_back(extents[static_cast<size_t>(v)]);
  return dims;
}

Division divide(const std::vector<Dim>& extents, const FusionRoot& s) {
  return divide(extents_of(extents, s.out), extents_of(extents, s.reduce),
                s.combine == Combine::argmax);
}

/// Schedules a group as several kernels. All kernels have the same buffers.
class Stages {
 public:
  Stages(const Group& group, std::string name)
      : base_(group, name, kGpu), name_(std::move(name)), stored_(group.roots.size()) {
    // Each stage computes complete reductions, without partial results per block.
    for (FusionRoot& s : base_.group.roots) s.reduces_rows = false;
    find_deferred_roots();
  }

  std::vector<kir::Kernel> kernels() {
    int last = 0;
    for (const FusionRoot& s : base_.group.roots) last = std::max(last, s.stage);
    for (int stage = 0; stage <= last; ++stage) {
      std::vector<PartialReductions> partials;
      for (const auto& roots : roots_with_equal_loops(stage, true))
        emit_reductions(roots, partials);
      for (const auto& roots : roots_with_equal_loops(stage, false)) emit_roots(roots);
      for (const PartialReductions& p : partials) combine(p);
    }
    for (const GroupPart& part : base_.group.parts) emit_deferred(part);
    for (kir::Kernel& kernel : kernels_) kernel.buffers = base_.kernel.buffers;
    return std::move(kernels_);
  }

 private:
  using Buffers = std::array<int64_t, 2>;  ///< buffer index of each result of a reduction

  /// The variables of a divided reduction.
  struct Split {
    Vars vars;             ///< reduction variables that index the partial results
    int64_t chunked = -1;  ///< the reduction variable that is divided into chunks; -1: none
    int64_t index = -1;    ///< variable of the chunks, the last of `vars`
    int64_t within = -1;   ///< variable of the iterations of a chunk
    int64_t size = 0;      ///< number of iterations of a chunk
  };
  /// Reductions with equal loops, whose partial results a kernel has stored.
  struct PartialReductions {
    std::vector<int> ids;
    Vars split;                    ///< variables that index the partial results
    std::vector<int64_t> buffers;  ///< of the partial results of each reduction
  };

  const FusionRoot& source(int id) const { return base_.group.roots[static_cast<size_t>(id)]; }

  /// Returns the ids of a stage's reductions or, if `reductions` is false, of its elementwise
  /// roots. Groups roots with equal loops. Omits roots that are deferred or emitted.
  std::vector<std::vector<int>> roots_with_equal_loops(int stage, bool reductions) const {
    std::vector<std::vector<int>> sets;
    for (int id = 0; id < static_cast<int>(base_.group.roots.size()); ++id) {
      const FusionRoot& s = source(id);
      const bool later_or_done = deferred_.contains(id) || emitted_.contains(id);
      if (s.stage != stage || s.combine.has_value() != reductions || later_or_done) continue;
      const auto same = std::ranges::find_if(sets, [&](const std::vector<int>& set) {
        const FusionRoot& first = source(set[0]);
        return first.out == s.out && first.reduce == s.reduce &&
               (first.combine == Combine::argmax) == (s.combine == Combine::argmax);
      });
      (same == sets.end() ? sets.emplace_back() : *same).push_back(id);
    }
    return sets;
  }

  /// Finds the deferred roots, which the last kernels compute. A deferred root is an elementwise
  /// root that loops over exactly the row variables of a GroupPart, such as an update of running
  /// statistics. It may run in place, because an iteration reads only elements of the row that it
  /// writes. A root is not deferred if it reads an input that a non-deferred root may overwrite.
  void find_deferred_roots() {
    const Group& group = base_.group;
    // Output index -> id of the elementwise root that computes the output.
    std::map<int, int> producers;
    for (const GroupPart& part : group.parts) {
      for (const int id : part.roots) {
        if (source(id).combine) continue;
        producers[source(id).outputs[0]] = id;
        if (std::ranges::is_permutation(without_unit_dims(source(id).out), part.rows))
          deferred_.insert(id);
      }
    }
    const std::vector<InPlace> pairs = in_place_pairs(group);
    const auto reads_replaced = [&](int id) {
      return std::ranges::any_of(pairs, [&](const InPlace& pair) {
        return !deferred_.contains(producers.at(pair.out)) && reads(source(id), pair.in);
      });
    };
    while (std::erase_if(deferred_, reads_replaced) > 0) {
    }
  }

  static bool reads(const FusionRoot& root, int input) {
    bool found = false;
    for_each_node(root.body, [&](const Expr& e) {
      found |= e.op() == ScalarOp::read && e.node().ivalue == input;
    });
    return found;
  }

  /// Returns the root as a FlatRoot, which loads the reduction results of earlier kernels from
  /// their buffers.
  FlatRoot flat(KernelBuilder& b, int id) const {
    return flatten(b, id, [&](const Expr& let) {
      const ReductionRead read = reduction_of(let);
      return load_reduction_result(
          b.group, let, stored_[static_cast<size_t>(read.root)][static_cast<size_t>(read.result)]);
    });
  }

  void emit_deferred(const GroupPart& part) {
    std::vector<int> ids;
    std::ranges::copy_if(part.roots, std::back_inserter(ids),
                         [&](int id) { return deferred_.contains(id) && !emitted_.contains(id); });
    if (!ids.empty()) emit_roots(ids);
  }

  /// Emits one kernel that computes the roots `ids`: elementwise roots or complete reductions.
  void emit_roots(const std::vector<int>& ids) {
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    for (const int id : ids) store_if_consumed(roots.emplace_back(flat(b, id)));
    emit(b, std::move(roots), {});
  }

  /// Emits the reductions `ids`: completely, or their partial results, which it adds to `partials`.
  void emit_reductions(const std::vector<int>& ids, std::vector<PartialReductions>& partials) {
    const Split split = split_of(source(ids[0]));
    if (split.vars.empty()) return emit_roots(ids);
    partials.push_back({ids, split.vars, emit_partial_reductions(ids, split)});
  }

  /// Emits a kernel that computes partial reductions over all reduction variables except those of
  /// `split`, and the elementwise roots of the same stage that loop over the same elements.
  /// Returns, for each reduction, the index of the buffer that holds its partial results. The
  /// partial results are indexed by `split` and by the result variables.
  std::vector<int64_t> emit_partial_reductions(const std::vector<int>& ids, const Split& split) {
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    std::vector<int64_t> partial;
    for (const int id : ids) {
      FlatRoot& root = roots.emplace_back(flat(b, id));
      divide_into_chunks(root, split);
      root.out.insert(root.out.begin(), split.vars.begin(), split.vars.end());
      root.reduce = without(root.reduce, split.vars);
      root.result_index = row_major_index(b, root.out);
      root.result_elements = element_count(b, root.out);
      partial.push_back(base_.add_scratch_buffer(root.acc_dtype, root.result_elements));
      root.stores = {{0, root.result_index}};
      root.buffers = {partial.back()};
      root.unrounded = true;
    }
    for (const int id : maps_over_elements_of(source(ids[0]))) {
      divide_into_chunks(roots.emplace_back(flat(b, id)), split);
      emitted_.insert(id);
    }
    emit(b, std::move(roots), {});
    return partial;
  }

  /// Returns the ids of the elementwise roots that loop over all elements that `reduction` reads,
  /// in the same stage. They do not store to an input of a reduction of their stage
  /// (in_place_pairs).
  std::vector<int> maps_over_elements_of(const FusionRoot& reduction) const {
    Vars loops = without_unit_dims(reduction.out);
    for (const int64_t v : without_unit_dims(reduction.reduce)) loops.push_back(v);
    std::vector<int> ids;
    for (const auto& set : roots_with_equal_loops(reduction.stage, false)) {
      if (std::ranges::is_permutation(without_unit_dims(source(set[0]).out), loops))
        ids.insert(ids.end(), set.begin(), set.end());
    }
    return ids;
  }

  /// Emits a kernel that combines partial results in order, and computes the elementwise roots that
  /// loop over the results.
  void combine(const PartialReductions& p) {
    const std::vector<int> maps = maps_over_results_of(p.ids);
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    for (size_t i = 0; i < p.ids.size(); ++i) {
      FlatRoot& root = roots.emplace_back(flat(b, p.ids[i]));
      Vars kept = p.split;
      kept.insert(kept.end(), root.out.begin(), root.out.end());
      root.reduce = p.split;
      root.body = load(p.buffers[i], root.acc_dtype, row_major_index(b, kept));
      if (!read_only_by(p.ids[i], maps)) store_if_consumed(root);
    }
    for (const int id : maps) roots.push_back(map_of_results(b, id, roots.front().out));
    emitted_.insert(maps.begin(), maps.end());
    emit(b, std::move(roots), {.may_vectorize_rows = false});
  }

  /// Returns an elementwise root that reads the reductions of its row, with the row variables
  /// `rows` of the reductions.
  static FlatRoot map_of_results(KernelBuilder& b, int id, const Vars& rows) {
    FlatRoot root = flatten(b, id, row_local);
    for (size_t i = 0; i < rows.size(); ++i) substitute(root, root.out[i], Expr::var(rows[i]));
    return root;
  }

  /// Returns the ids of the elementwise roots that the kernel of the complete reductions `ids` may
  /// compute: they loop over the results, and read no other reduction. There are none if the part
  /// has other reductions, whose kernels could read what such a root overwrites.
  std::vector<int> maps_over_results_of(const std::vector<int>& ids) const {
    const GroupPart& part = *std::ranges::find_if(base_.group.parts, [&](const GroupPart& p) {
      return std::ranges::find(p.roots, ids[0]) != p.roots.end();
    });
    std::vector<int> maps;
    for (const int id : part.roots) {
      if (source(id).combine && std::ranges::find(ids, id) == ids.end()) return {};
      if (!source(id).combine && loops_over_results(source(id), ids)) maps.push_back(id);
    }
    // A root that is computed later must not read what a map overwrites.
    for (const InPlace& pair : in_place_pairs(base_.group)) {
      const bool overwrites =
          std::ranges::any_of(maps, [&](int map) { return source(map).outputs[0] == pair.out; });
      const auto reads_later = [&](int id) {
        return !source(id).combine && std::ranges::find(maps, id) == maps.end() &&
               !emitted_.contains(id) && reads(source(id), pair.in);
      };
      if (overwrites && std::ranges::any_of(part.roots, reads_later)) return {};
    }
    return maps;
  }

  /// Whether each element of an elementwise root reads the results of the reductions `ids` at its
  /// own index, and reads one of them.
  bool loops_over_results(const FusionRoot& map, const std::vector<int>& ids) const {
    const Vars rows = without_unit_dims(map.out);
    bool reads = false, same = true;
    for_each_node(map.body, [&](const Expr& e) {
      if (e.op() != ScalarOp::let) return;
      Vars index;
      for (const Expr& arg : e.args()) {
        if (arg.op() == ScalarOp::var) index.push_back(arg.node().ivalue);
      }
      reads = true;
      same = same && index == rows && std::ranges::find(ids, reduction_of(e).root) != ids.end();
    });
    const Vars results = without_unit_dims(source(ids[0]).out);
    return reads && same && std::ranges::equal(rows, results, [&](int64_t a, int64_t b) {
             return base_.extent(a) == base_.extent(b);
           });
  }

  /// Whether no root but `maps` reads the results of the reduction `id`.
  bool read_only_by(int id, const std::vector<int>& maps) const {
    for (int reader = 0; reader < static_cast<int>(base_.group.roots.size()); ++reader) {
      if (std::ranges::find(maps, reader) != maps.end()) continue;
      if (reads_reduction(source(reader).body, id)) return false;
    }
    return true;
  }

  static bool reads_reduction(const Expr& body, int reduction) {
    bool found = false;
    for_each_node(body, [&](const Expr& e) {
      found |= e.op() == ScalarOp::let && reduction_of(e).root == reduction;
    });
    return found;
  }

  /// Returns how the partial results of a reduction are indexed. `vars` is empty if one kernel
  /// computes the whole reduction.
  Split split_of(const FusionRoot& s) {
    const Division division = divide(base_.extents, s);
    const Vars reduce = without_unit_dims(s.reduce);
    Split split;
    split.vars.assign(reduce.begin(), reduce.begin() + static_cast<ptrdiff_t>(division.whole));
    if (division.chunk == 0) return split;
    split.chunked = reduce[division.whole];
    split.size = division.chunk;
    Dim chunks = base_.extent(split.chunked);
    chunks.size /= division.chunk;
    split.index = new_loop_var(chunks);
    split.within = new_loop_var(division.chunk);
    split.vars.push_back(split.index);
    return split;
  }

  int64_t new_loop_var(const Dim& extent) {
    const int64_t var = base_.next_var++;
    base_.extents.resize(static_cast<size_t>(base_.next_var));
    base_.extents.back() = extent;
    return var;
  }

  /// Replaces the variable that is divided into chunks by those of the chunks and within a chunk.
  static void divide_into_chunks(FlatRoot& root, const Split& split) {
    if (split.chunked < 0) return;
    for (Vars* vars : {&root.out, &root.reduce}) {
      const auto at = std::ranges::find(*vars, split.chunked);
      if (at != vars->end()) vars->insert(vars->erase(at), {split.index, split.within});
    }
    substitute(root, split.chunked,
               Expr::var(split.index) * Expr::index(split.size) + Expr::var(split.within));
  }

  /// If a later kernel reads the results of the reduction, adds scratch buffers for the results and
  /// stores the results there.
  void store_if_consumed(FlatRoot& root) {
    if (!root.source->read_by_root) return;
    for (size_t r = 0; r < root.source->outputs.size(); ++r) {
      const DType dtype = compute_dtype(root.source->op->results[r].type.dtype);
      int64_t& buffer = stored_[static_cast<size_t>(root.id)][r];
      buffer = base_.add_scratch_buffer(dtype, root.result_elements);
      root.stores.push_back({static_cast<int>(r), root.result_index});
      root.buffers.push_back(buffer);
    }
  }

  void emit(KernelBuilder& b, std::vector<FlatRoot> roots, SweepOptions options) {
    const Vars rows = roots.front().out;
    Sweep sweep(b, std::move(roots), rows, options);
    const Expr block = b.new_var();
    b.kernel.name = name_ + "_" + std::to_string(kernels_.size());
    b.kernel.block_var = block.node().ivalue;
    b.kernel.blocks = sweep.blocks();
    sweep.emit(block, b.kernel.body);
    kernels_.push_back(std::move(b.kernel));
  }

  KernelBuilder base_;  ///< copied for each kernel; contains all buffers added so far
  std::string name_;
  std::set<int> deferred_;       ///< ids of the deferred roots
  std::set<int> emitted_;        ///< ids of the elementwise roots in the kernels of reductions
  std::vector<Buffers> stored_;  ///< scratch buffers of reduction results, indexed by root id
  std::vector<kir::Kernel> kernels_;
};

double group_iterations(const Group& group, const Vars& vars) {
  double n = 1;
  for (const int64_t v : without_unit_dims(vars))
    n *= estimated_extent(group.extents[static_cast<size_t>(v)]);
  return n;
}

/// Whether schedule_in_stages() can replace a row-wise schedule that has a finish function. All
/// roots of the finish function must be elementwise, and all other roots must be in the first
/// stage. Otherwise an elementwise root could overwrite an operand that a root of a later stage
/// reads.
bool can_replace_finish(const Group& group) {
  return std::ranges::all_of(group.parts, &GroupPart::has_column_reductions) &&
         std::ranges::all_of(group.roots, [](const FusionRoot& s) {
           return s.in_finish_phase ? !s.combine : s.stage == 0;
         });
}

/// Whether schedule_in_stages() can divide the reductions of a group so that a thread takes fewer
/// than `most` terms, whatever the batch size.
bool are_divisible(const Group& group, double most) {
  return std::ranges::all_of(group.roots, [&](const FusionRoot& s) {
    if (!s.combine) return true;
    const Division division = divide(group.extents, s);
    return division.threads >= kBusyThreads || (division.terms < most && !division.terms_vary);
  });
}

/// Number of partial results that a thread of the finish function combines, one after the other.
double finish_elements(const std::vector<kir::Kernel>& sweep) {
  if (sweep.size() == 1) return 0;
  double elements = 0;
  for (const kir::Buffer& b : sweep.front().buffers) {
    if (b.role == kir::Buffer::Role::scratch)
      elements += static_cast<double>(b.elements.at(kir::kNominalBatch));
  }
  return elements / static_cast<double>(sweep.back().thread_group_size);
}

}  // namespace

bool leaves_gpu_idle(const Group& group, const std::vector<kir::Kernel>& sweep) {
  const kir::Kernel& kernel = sweep.front();
  const bool checks_data = kernel.buffers.back().role == kir::Buffer::Role::error;
  if (checks_data || (sweep.size() > 1 && !can_replace_finish(group))) return false;
  double elements = 0;
  for (const FusionRoot& s : group.roots)
    elements += group_iterations(group, s.out) * group_iterations(group, s.reduce);
  const auto threads = static_cast<double>(kir::evaluate(kernel.blocks, kir::kNominalBatch) *
                                           kernel.thread_group_size);
  const double work = elements / threads / static_cast<double>(kernel.vector_width);
  const double extra = std::max(work * (1 - threads / kBusyThreads), 0.0) + finish_elements(sweep);
  return extra > kMaxExtraElements && are_divisible(group, extra);
}

std::vector<kir::Kernel> schedule_in_stages(const Group& group, const std::string& name) {
  return Stages(group, name).kernels();
}

}  // namespace fluid
