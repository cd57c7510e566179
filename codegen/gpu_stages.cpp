#include "codegen/gpu_stages.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace fluid {
namespace {

/// Maximum number of extra elements that a thread of the row-wise schedule (Sweep) may process,
/// compared with an even distribution over kBusyThreads threads. Above this limit, the group is
/// split into several kernels. With four loads in flight and 0.6 us per load, 100 elements take 15
/// us, more than the launches of two or three kernels.
constexpr double kMaxExtraElements = 100;
constexpr double kMinSplitTerms = 8;  // minimum length of a partial reduction
// Approximate number of elements that a thread processes.
constexpr double kElementsPerThread = 4;

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
      for (const auto& roots : roots_with_equal_loops(stage, true)) emit_reductions(roots);
      for (const auto& roots : roots_with_equal_loops(stage, false)) emit_roots(roots);
    }
    for (const GroupPart& part : base_.group.parts) emit_deferred(part);
    for (kir::Kernel& kernel : kernels_) kernel.buffers = base_.kernel.buffers;
    return std::move(kernels_);
  }

 private:
  using Buffers = std::array<int64_t, 2>;  ///< buffer index of each result of a reduction

  const FusionRoot& source(int id) const { return base_.group.roots[static_cast<size_t>(id)]; }

  /// Returns the ids of a stage's reductions or, if `reductions` is false, of its elementwise
  /// roots. Groups roots with equal loops. Omits deferred roots.
  std::vector<std::vector<int>> roots_with_equal_loops(int stage, bool reductions) const {
    std::vector<std::vector<int>> sets;
    for (int id = 0; id < static_cast<int>(base_.group.roots.size()); ++id) {
      const FusionRoot& s = source(id);
      if (s.stage != stage || s.combine.has_value() != reductions || deferred_.contains(id))
        continue;
      const auto same = std::ranges::find_if(sets, [&](const std::vector<int>& set) {
        return source(set[0]).out == s.out && source(set[0]).reduce == s.reduce;
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
                         [&](int id) { return deferred_.contains(id); });
    if (!ids.empty()) emit_roots(ids);
  }

  /// Emits one kernel that computes the roots `ids`: elementwise roots or complete reductions.
  void emit_roots(const std::vector<int>& ids) {
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    for (const int id : ids) store_if_consumed(roots.emplace_back(flat(b, id)));
    emit(b, std::move(roots), {});
  }

  void emit_reductions(const std::vector<int>& ids) {
    const Vars split = split_vars(source(ids[0]));
    if (split.empty()) return emit_roots(ids);
    const std::vector<int64_t> partial = emit_partial_reductions(ids, split);
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    for (size_t i = 0; i < ids.size(); ++i) {
      FlatRoot& root = roots.emplace_back(flat(b, ids[i]));
      Vars kept = split;
      kept.insert(kept.end(), root.out.begin(), root.out.end());
      root.reduce = split;
      root.body = load(partial[i], root.acc_dtype, row_major_index(b, kept));
      store_if_consumed(root);
    }
    emit(b, std::move(roots), {.may_vectorize_rows = false});
  }

  /// Emits a kernel that computes partial reductions over all reduction variables except `split`.
  /// Returns, for each reduction, the index of the buffer that holds its partial results. The
  /// partial results are indexed by `split` and by the result variables.
  std::vector<int64_t> emit_partial_reductions(const std::vector<int>& ids, const Vars& split) {
    KernelBuilder b = base_;
    std::vector<FlatRoot> roots;
    std::vector<int64_t> partial;
    for (const int id : ids) {
      FlatRoot& root = roots.emplace_back(flat(b, id));
      root.out.insert(root.out.begin(), split.begin(), split.end());
      root.reduce = without(root.reduce, split);
      root.result_index = row_major_index(b, root.out);
      root.result_elements = element_count(b, root.out);
      partial.push_back(base_.add_scratch_buffer(root.acc_dtype, root.result_elements));
      root.stores = {{0, root.result_index}};
      root.buffers = {partial.back()};
      root.unrounded = true;
    }
    emit(b, std::move(roots), {});
    return partial;
  }

  /// Returns the reduction variables that index the partial results, outermost first. Returns an
  /// empty list if one kernel computes the whole reduction.
  Vars split_vars(const FusionRoot& s) const {
    Vars split;
    if (s.combine == Combine::argmax) return split;
    double threads = estimated_trip_count(base_, without_unit_dims(s.out)) / kElementsPerThread;
    double terms = estimated_trip_count(base_, without_unit_dims(s.reduce));
    for (const int64_t v : without_unit_dims(s.reduce)) {
      const double extent = estimated_extent(base_.extent(v));
      if (threads >= kBusyThreads || terms / extent < kMinSplitTerms) break;
      split.push_back(v);
      threads *= extent;
      terms /= extent;
    }
    return split;
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
  return work * (1 - threads / kBusyThreads) > kMaxExtraElements;
}

std::vector<kir::Kernel> schedule_in_stages(const Group& group, const std::string& name) {
  return Stages(group, name).kernels();
}

}  // namespace fluid
