#pragma once

// One part of a group as a sweep over its rows, cut into blocks.

#include <list>

#include "codegen/schedule_loops.h"

namespace fluid {

/// What a block leaves behind of a reduction over rows; `finish` combines it over the blocks.
struct Partial {
  const FlatSink* sink = nullptr;
  int64_t buffer = 0;
  int64_t positions = -1;    ///< of an argmax, else -1
  bool block_major = false;  ///< [blocks, kept] rather than [kept, blocks]
  int64_t stride = 0;        ///< elements between rows of that array
};

struct SweepOptions {
  bool rows_in_lanes = true;  ///< where that suits the strides better
};

class Sweep {
 public:
  Sweep(KernelBuilder& builder, const GroupPart& part);
  /// Of sinks that all have `rows`.
  Sweep(KernelBuilder& builder, std::vector<FlatSink> sinks, Vars rows,
        const SweepOptions& options = {});

  Expr blocks() const { return blocks_; }
  double operations_per_block() const { return operations_per_block_; }
  /// Statements of block `number` of this part.
  void emit(const Expr& number, kir::Block& out);
  const std::list<Partial>& partials() const { return partials_; }

 private:
  /// Sinks of one stage in one nest of loops inside a row.
  struct Nest {
    Vars outer;             ///< kept variables, outside the accumulators
    Vars inner;             ///< all others but rows
    size_t told_apart = 0;  ///< the first of `inner`, which sums in memory keep; 0: there are none
    bool array = false;     ///< the kept variables index an array of accumulators
    std::vector<FlatSink*> sinks;
    int64_t vector = -1;  ///< of outer or inner, else -1
  };
  struct Binding {  ///< an accumulator of a sink
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
  Vars prefix_;              ///< rows that number the blocks
  int64_t chunk_ = 0;        ///< of the last row variable, which then numbers blocks too
  Expr count_;               ///< combinations of the prefix
  Expr per_block_;
  Expr blocks_;
  int64_t max_blocks_ = 0;  ///< where partials are kept, else 0
  double operations_per_block_ = 0;
  std::list<Partial> partials_;
  std::map<int, Binding> accs_;  ///< by sink
  Expr number_;
};

/// Fills in a kernel that sweeps over all parts of the group.
void sweep(KernelBuilder& builder);

}  // namespace fluid
