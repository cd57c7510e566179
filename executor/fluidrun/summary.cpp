#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "executor/cpu/cpu_target.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"
#include "executor/fluidrun/diagram.h"
#include "executor/fluidrun/saved.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/passes.h"

namespace fluid {
namespace {

struct SummaryFlags {
  std::string program;
  int64_t batch = 1;
};

struct Row {
  std::string name, shape;
  int64_t parameters = 0, parameter_bytes = 0, saved_bytes = 0;
  double flops = 0;
};

std::vector<Type> concrete(std::vector<Type> types, int64_t batch) {
  for (Type& t : types) t.shape = t.shape.at(batch);
  return types;
}

double flops_of(const ir::Op& op, int64_t batch) {
  std::vector<Type> in, out;
  for (const Value& v : op.operands) in.push_back(v.type());
  for (const ir::Result& r : op.results) out.push_back(r.type);
  in = concrete(std::move(in), batch);
  out = concrete(std::move(out), batch);
  return (*def_of(op).cost)({in, out, op.attrs}).flops;
}

Row row_of(const Box& box, const std::set<int64_t>& saved, int64_t batch) {
  Row row{.name = box.title};
  for (const ir::Op* op : box.ops) {
    if (op->results.empty()) continue;
    const Type& type = op->results.front().type;
    if (source_kind(*op) == SourceKind::parameter) {
      row.parameters += type.shape.numel_at(batch);
      row.parameter_bytes += type.bytes_at(batch);
      if (box.ops.size() == 1) row.shape = type.shape.at(batch).str();
      continue;
    }
    row.shape = type.shape.at(batch).str();
    if (source_kind(*op) == SourceKind::none) row.flops += flops_of(*op, batch);
    if (!saved.contains(op->id)) continue;
    for (const ir::Result& r : op->results) row.saved_bytes += r.type.bytes_at(batch);
  }
  return row;
}

void print_row(const Row& row) {
  fmt::print("{:<24} {:<22} {:>11} {:>12} {:>11.3f} {:>12}\n", row.name, row.shape, row.parameters,
             bytes_text(static_cast<double>(row.parameter_bytes)), row.flops / 1e6,
             bytes_text(static_cast<double>(row.saved_bytes)));
}

/// Refuses a batch for which the bytes of a value, or their sum, would overflow.
void check_sizes(const Program& program, int64_t batch) {
  Options options;
  options.batch = batch;
  check_recorded_pass().run(*program.ir().clone(), options, CpuTarget(TargetDescription{}));
}

int run(const SummaryFlags& flags) {
  const Program program = open_program(flags.program);
  check_sizes(program, flags.batch);
  const std::set<int64_t> saved = saved_ops(program);
  const std::string line(97, '-');
  fmt::print("{}, batch {}\n{:<24} {:<22} {:>11} {:>12} {:>11} {:>12}\n{}\n", program.ir().name,
             flags.batch, "layer", "output", "parameters", "bytes", "MFLOP", "saved", line);
  Row total{.name = "total"};
  const Diagram diagram = diagram_of(program);
  for (const Box& box : diagram.boxes) {
    const Row row = row_of(box, saved, flags.batch);
    if (row.shape.empty()) continue;
    print_row(row);
    total.parameters += row.parameters;
    total.parameter_bytes += row.parameter_bytes;
    total.saved_bytes += row.saved_bytes;
    total.flops += row.flops;
  }
  fmt::print("{}\n", line);
  print_row(total);
  fmt::print("optimizer {}, gradients {}, forward {:.3f} MFLOP a sample\n",
             bytes_text(static_cast<double>(optimizer_bytes(program))),
             bytes_text(static_cast<double>(total.parameter_bytes)),
             total.flops / 1e6 / static_cast<double>(flags.batch));
  return 0;
}

}  // namespace

void add_summary(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("summary", "Print a program's layers and their sizes");
  command->footer(
      "Example: fluidrun summary mnist_fluid --batch 100\n\n"
      "saved: activation bytes that a training step keeps for its backward pass.");
  const auto flags = std::make_shared<SummaryFlags>();
  add_program_argument(*command, flags->program);
  command->add_option("--batch", flags->batch, "samples a step")->check(must_be_count);
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
