#include "codegen/gpu_stages.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace fluid {
namespace {

constexpr double kManyThreads = 32 * 1024;  // threads that hide the latency of a GPU's memory
/// Elements that a thread processes in sequence beyond what kManyThreads threads would need. At
/// four loads in flight and 0.6 us each they take some 15 us. The launches of two or three kernels
/// cost less.
constexpr double kLongWork = 100;
constexpr double kLeastTermsOfSplit = 8;  // fewest terms of a part of a reduction
constexpr double kElements = 4;           // elements that a thread processes at once, about

/// Builds the kernels of a group. All kernels share the group's buffers.
class Stages {
 public:
  Stages(const Group& group, std::string name)
      : base_(group, name, kGpu), name_(std::move(name)), stored_(group.sinks.size()) {
    find_late();
  }

  std::vector<kir::Kernel> passes() {
    int last = 0;
    for (const GroupSink& s : base_.group.sinks) last = std::max(last, s.stage);
    for (int stage = 0; stage <= last; ++stage) {
      for (const auto& sinks : alike(stage, true)) reduce(sinks);
      for (const auto& sinks : alike(stage, false)) compute(sinks);
    }
    for (const GroupPart& part : base_.group.parts) compute_late(part);
    for (kir::Kernel& pass : passes_) pass.buffers = base_.kernel.buffers;
    return std::move(passes_);
  }

 private:
  using Buffers = std::array<int64_t, 2>;  ///< one buffer for each result of a reduction

  const GroupSink& source(int id) const { return base_.group.sinks[static_cast<size_t>(id)]; }

  /// Returns the stage's reductions, or its maps except late ones, in sets with equal loops.
  std::vector<std::vector<int>> alike(int stage, bool reductions) const {
    std::vector<std::vector<int>> sets;
    for (int id = 0; id < static_cast<int>(base_.group.sinks.size()); ++id) {
      const GroupSink& s = source(id);
      if (s.stage != stage || s.combine.has_value() != reductions || late_.contains(id)) continue;
      const auto same = std::ranges::find_if(sets, [&](const std::vector<int>& set) {
        return source(set[0]).out == s.out && source(set[0]).reduce == s.reduce;
      });
      (same == sets.end() ? sets.emplace_back() : *same).push_back(id);
    }
    return sets;
  }

  /// Finds the late maps: maps over exactly a part's rows, such as updates of running statistics.
  /// They run in one kernel at the end. Delaying them is safe in place, because each iteration
  /// reads only elements of the row that it writes. A late map must not read an input that an
  /// earlier map may overwrite.
  void find_late() {
    const Group& group = base_.group;
    std::map<int, int> makers;  // for each output, the map that computes it
    for (const GroupPart& part : group.parts) {
      for (const int id : part.sinks) {
        if (source(id).combine) continue;
        makers[source(id).outputs[0]] = id;
        if (std::ranges::is_permutation(real(source(id).out), part.rows)) late_.insert(id);
      }
    }
    const std::vector<InPlace> pairs = in_place_pairs(group);
    const auto reads_replaced = [&](int id) {
      return std::ranges::any_of(pairs, [&](const InPlace& pair) {
        return !late_.contains(makers.at(pair.out)) && reads(source(id), pair.in);
      });
    };
    while (std::erase_if(late_, reads_replaced) > 0) {
    }
  }

  static bool reads(const GroupSink& sink, int input) {
    bool found = false;
    for_each_node(sink.body, [&](const Expr& e) {
      found |= e.op() == Scalar::read && e.node().ivalue == input;
    });
    return found;
  }

  /// Flattens a sink. Results of earlier kernels are loaded from their buffers.
  FlatSink flat(KernelBuilder& b, int id) const {
    return flatten(b, id, [&](const Expr& let) {
      const ReductionRead read = reduction_of(let);
      return load_result(b.group, let,
                         stored_[static_cast<size_t>(read.sink)][static_cast<size_t>(read.result)]);
    });
  }

  void compute_late(const GroupPart& part) {
    std::vector<int> ids;
    std::ranges::copy_if(part.sinks, std::back_inserter(ids),
                         [&](int id) { return late_.contains(id); });
    if (!ids.empty()) compute(ids);
  }

  /// Emits a kernel of maps, or of reductions over all their terms.
  void compute(const std::vector<int>& ids) {
    KernelBuilder b = base_;
    std::vector<FlatSink> sinks;
    for (const int id : ids) keep(sinks.emplace_back(flat(b, id)));
    emit(b, std::move(sinks), {});
  }

  void reduce(const std::vector<int>& ids) {
    const Vars parts = parts_of(source(ids[0]));
    if (parts.empty()) return compute(ids);
    const std::vector<int64_t> partial = reduce_parts(ids, parts);
    KernelBuilder b = base_;
    std::vector<FlatSink> sinks;
    for (size_t i = 0; i < ids.size(); ++i) {
      FlatSink& sink = sinks.emplace_back(flat(b, ids[i]));
      Vars kept = parts;
      kept.insert(kept.end(), sink.out.begin(), sink.out.end());
      sink.reduce = parts;
      sink.body = load(partial[i], sink.acc, position_over(b, kept));
      keep(sink);
    }
    emit(b, std::move(sinks), {.rows_in_lanes = false});
  }

  /// Emits a kernel that reduces over all reduced variables except `parts`. Returns one buffer of
  /// partial results per reduction, indexed by `parts` and the kept variables.
  std::vector<int64_t> reduce_parts(const std::vector<int>& ids, const Vars& parts) {
    KernelBuilder b = base_;
    std::vector<FlatSink> sinks;
    std::vector<int64_t> partial;
    for (const int id : ids) {
      FlatSink& sink = sinks.emplace_back(flat(b, id));
      sink.out.insert(sink.out.begin(), parts.begin(), parts.end());
      sink.reduce = without(sink.reduce, parts);
      sink.kept = position_over(b, sink.out);
      sink.kept_size = count_over(b, sink.out);
      partial.push_back(base_.scratch(sink.acc, sink.kept_size));
      sink.stores = {{0, sink.kept}};
      sink.buffers = {partial.back()};
      sink.unrounded = true;
    }
    emit(b, std::move(sinks), {});
    return partial;
  }

  /// Returns the reduced variables that index the first kernel's partial results, outermost first.
  Vars parts_of(const GroupSink& s) const {
    Vars parts;
    if (s.combine == Combine::argmax) return parts;
    double threads = nominal_points(base_, real(s.out)) / kElements;
    double terms = nominal_points(base_, real(s.reduce));
    for (const int64_t v : real(s.reduce)) {
      const double extent = nominal(base_.extent(v));
      if (threads >= kManyThreads || terms / extent < kLeastTermsOfSplit) break;
      parts.push_back(v);
      threads *= extent;
      terms /= extent;
    }
    return parts;
  }

  /// Stores a reduction's results in scratch if a later kernel reads them.
  void keep(FlatSink& sink) {
    if (!sink.source->consumed) return;
    for (size_t r = 0; r < sink.source->outputs.size(); ++r) {
      const DType dtype = compute_dtype(sink.source->op->results[r].type.dtype);
      int64_t& buffer = stored_[static_cast<size_t>(sink.id)][r];
      buffer = base_.scratch(dtype, sink.kept_size);
      sink.stores.push_back({static_cast<int>(r), sink.kept});
      sink.buffers.push_back(buffer);
    }
  }

  void emit(KernelBuilder& b, std::vector<FlatSink> sinks, SweepOptions options) {
    const Vars rows = sinks.front().out;
    Sweep sweep(b, std::move(sinks), rows, options);
    const Expr block = b.new_var();
    b.kernel.name = name_ + "_" + std::to_string(passes_.size());
    b.kernel.block_var = block.node().ivalue;
    b.kernel.blocks = sweep.blocks();
    sweep.emit(block, b.kernel.body);
    passes_.push_back(std::move(b.kernel));
  }

  KernelBuilder base_;  ///< with the buffers allocated so far
  std::string name_;
  std::set<int> late_;           ///< sinks that run in the last kernel
  std::vector<Buffers> stored_;  ///< indexed by sink id
  std::vector<kir::Kernel> passes_;
};

double points(const Group& group, const Vars& vars) {
  double n = 1;
  for (const int64_t v : real(vars)) n *= nominal(group.extents[static_cast<size_t>(v)]);
  return n;
}

}  // namespace

bool leaves_idle(const Group& group, const std::vector<kir::Kernel>& sweep) {
  const kir::Kernel& kernel = sweep.front();
  const bool refuses = kernel.buffers.back().role == kir::Buffer::Role::error;
  if (sweep.size() > 1 || refuses) return false;
  double elements = 0;
  for (const GroupSink& s : group.sinks) elements += points(group, s.out) * points(group, s.reduce);
  const auto threads =
      static_cast<double>(kir::evaluate(kernel.blocks, kNominalBatch) * kernel.team);
  const double work = elements / threads / static_cast<double>(kernel.vector_width);
  return work * (1 - threads / kManyThreads) > kLongWork;
}

std::vector<kir::Kernel> staged(const Group& group, const std::string& name) {
  return Stages(group, name).passes();
}

}  // namespace fluid
