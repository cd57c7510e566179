#pragma once

// Schedule of one part of a group: a sweep over its rows, cut into blocks.

#include <list>

#include "codegen/schedule_loops.h"

namespace fluid {

/// The partial results of a reduction over rows, one per block. `finish` combines them.
struct Partial {
  const FlatSink* sink = nullptr;
  int64_t buffer = 0;
  int64_t positions = -1;    ///< buffer of positions for argmax, else -1
  bool block_major = false;  ///< layout [blocks, kept] instead of [kept, blocks]
  int64_t stride = 0;        ///< elements between rows of the array
};

struct SweepOptions {
  bool rows_in_lanes = true;  ///< allows rows in lanes where strides favour them
};

class Sweep {
 public:
  Sweep(KernelBuilder& builder, const GroupPart& part);
  /// Sweeps over `sinks`, all of which have the variables `rows`.
  Sweep(KernelBuilder& builder, std::vector<FlatSink> sinks, Vars rows,
        const SweepOptions& options = {});

  Expr blocks() const { return blocks_; }
  double operations_per_block() const { return operations_per_block_; }
  /// Emits block `number` of this part.
  void emit(const Expr& number, kir::Block& out);
  const std::list<Partial>& partials() const { return partials_; }

 private:
  /// Sinks of one stage that share one nest of loops inside a row.
  struct Nest {
    Vars outer;            ///< kept variables, whose loops enclose the accumulators
    Vars inner;            ///< all variables except `outer` and rows
    size_t kept_dims = 0;  ///< number of leading `inner` variables that index sums in memory
    bool array = false;    ///< the kept variables index an array of accumulators
    std::vector<FlatSink*> sinks;
    int64_t vector = -1;  ///< variable of outer or inner that runs in lanes, else -1
  };
  struct Binding {  ///< a sink's accumulator; `lanes`: one value per lane
    int64_t acc = 0;
    bool lanes = false;
  };

  void make_nests();
  Nest& nest_for(FlatSink& sink);
  void choose_vector();
  void partition();
  void make_partials();
  double row_operations() const;

  Expr per_block(double operations_a_row, double rows_a_block, bool vector);
  void start_partials(const Expr& number, kir::Block& out);
  void end_partials(const Expr& number, kir::Block& out);
  kir::Block& row_loops(const Expr& number, kir::Block& out);
  void emit_row(kir::Block& out);
  void emit_nest(const Nest& nest, kir::Block& out);
  void emit_point(const Nest& nest, std::vector<FlatSink>& sinks, kir::Block& out);
  void emit_results(const FlatSink& sink, kir::Block& out);
  kir::Block& nest_loops(const Nest& nest, const Vars& vars, kir::Block& out);
  Vars flattened(const Nest& nest, const Vars& vars) const;
  kir::Block& flat_loop(int64_t fastest, const Vars& others, kir::Block& out);
  void declare(const FlatSink& sink, bool lanes, kir::Block& out);
  void accumulate(const Nest& nest, const FlatSink& sink, const Expr& value, kir::Block& out);
  const Partial* partial_of(const FlatSink& sink) const;
  void over_kept(const FlatSink& sink, kir::Block& out,
                 const std::function<void(kir::Block&)>& body);

  KernelBuilder& b_;
  std::vector<FlatSink> sinks_;
  Vars rows_;
  SweepOptions options_;
  std::vector<std::vector<Nest>> stages_;
  int64_t row_vector_ = -1;  ///< the row variable that runs in lanes, else -1
  Vars prefix_;              ///< leading rows, whose combinations are divided among blocks
  int64_t chunk_ = 0;        ///< tile of the last row variable if blocks divide it too, else 0
  Expr count_;               ///< combinations of `prefix_`, times chunks
  Expr per_block_;
  Expr blocks_;
  int64_t max_blocks_ = 0;  ///< most blocks if there are partial results, else 0
  double operations_per_block_ = 0;
  std::list<Partial> partials_;
  std::map<int, Binding> accs_;  ///< accumulator of each sink, by sink id
  Expr number_;
};

/// Fills in a kernel that sweeps over all parts of the group.
void sweep(KernelBuilder& builder);

}  // namespace fluid
