#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "executor/cpu/cpu_target.h"
#include "executor/device/bytes_text.h"
#include "executor/device/op_cost.h"
#include "executor/fluidrun/amp.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/diagram.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/pass_table.h"

namespace fluid {
namespace {

struct SummaryFlags {
  std::string program;
  int64_t batch = 1;
  std::optional<int64_t> length;
  PlaceFlags place;  ///< only the --amp flags in `place.amp` are used
};

struct LayerRow {
  std::string name, shape;
  int64_t parameters = 0;
  double flops = 0;
  int64_t saved_bytes = 0;
};

/// The total element count and byte count of several variables.
struct VariableSize {
  int64_t elements = 0, bytes = 0;
};

/// The name of a row: the layer and its op with the most FLOPs, such as "conv0 (conv2d)".
std::string name_of(const Box& box, int64_t batch) {
  const ir::Op* most = nullptr;
  for (const ir::Op* op : box.ops) {
    if (source_kind(*op) != SourceKind::none) continue;
    if (most == nullptr || cost_of(*op, batch).flops > cost_of(*most, batch).flops) most = op;
  }
  return most == nullptr || most->name == box.title ? box.title
                                                    : box.title + " (" + most->name + ")";
}

LayerRow row_of(const Box& box, const std::set<int64_t>& saved, int64_t batch) {
  LayerRow row{.name = name_of(box, batch)};
  for (const ir::Op* op : box.ops) {
    if (op->results.empty()) continue;
    const Type& type = op->results.front().type;
    if (source_kind(*op) == SourceKind::parameter) row.parameters += type.shape.numel_at(batch);
    if (source_kind(*op) != SourceKind::none) continue;
    row.shape = type.shape.at(batch).str();
    row.flops += cost_of(*op, batch).flops;
    if (!saved.contains(op->id)) continue;
    for (const ir::Result& r : op->results) row.saved_bytes += r.type.bytes_at(batch);
  }
  return row;
}

/// One row per layer, and one per op outside all layers. Appends _1, _2, ... to equal names.
std::vector<LayerRow> rows_of(const Program& program, const std::set<int64_t>& saved,
                              int64_t batch) {
  std::vector<LayerRow> rows;
  std::map<std::string, int> occurrences, suffixes;
  for (const Box& box : diagram_of(program, saved).boxes) {
    LayerRow row = row_of(box, saved, batch);
    if (row.shape.empty()) continue;
    ++occurrences[row.name];
    rows.push_back(std::move(row));
  }
  for (LayerRow& row : rows) {
    if (occurrences[row.name] > 1) row.name += fmt::format("_{}", ++suffixes[row.name]);
  }
  return rows;
}

/// Formats a count with three significant digits and a unit prefix: "52.6 M".
std::string count_text(double count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t unit = 0;
  for (; count >= 999.5 && unit + 1 < std::size(kUnits); ++unit) count /= 1000;
  return fmt::format("{:.{}f}{}", count,
                     unit == 0 || count >= 99.95 ? 0
                     : count >= 9.995            ? 1
                                                 : 2,
                     kUnits[unit]);
}

std::string size_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

void print_row(const LayerRow& row) {
  fmt::print("{:<30} {:<18} {:>10} {:>8} {:>10}\n", row.name, row.shape, row.parameters,
             count_text(row.flops), size_text(row.saved_bytes));
}

void print_inputs(const Program& program, int64_t batch) {
  for (const ir::Op* feed : feeds_of(program.ir())) {
    const Type& type = feed->results[0].type;
    fmt::print("input {} : {}{}\n", feed->symbol, fluid::name_of(type.dtype),
               type.shape.at(batch).str());
  }
}

/// Prints the total sizes of the parameters, of the trainable parameters and of the buffers, such
/// as running statistics. `updated`: names of the variables that a training step updates. Returns
/// the bytes of the trainable parameters, which equal the bytes of the gradients.
int64_t print_variables(const Program& program, const std::set<std::string>& updated) {
  VariableSize all, trainable, buffers;
  for (const auto& op : program.ir().main().ops) {
    if (!is_variable(*op) || op->symbol == kRandomState) continue;
    const Type& type = op->results[0].type;
    const auto add = [&](VariableSize& size) {
      size.elements += type.shape.numel_at(1);
      size.bytes += type.bytes_at(1);
    };
    const bool is_parameter = source_kind(*op) == SourceKind::parameter;
    add(is_parameter ? all : buffers);
    if (is_parameter && updated.contains(op->symbol)) add(trainable);
  }
  const auto line = [](const char* name, VariableSize size) {
    fmt::print("{:<22} {:>10} {:>12}\n", name, size.elements, size_text(size.bytes));
  };
  line("total parameters", all);
  line("trainable", trainable);
  line("not trainable", {all.elements - trainable.elements, all.bytes - trainable.bytes});
  if (buffers.elements > 0) line("buffers", buffers);
  return trainable.bytes;
}

/// Throws UserError for a batch size that overflows byte counts, and for unknown names in --amp-f32
/// and --amp-half.
void check_options(const Program& program, const Options& options) {
  check_recorded_pass().run(*program.ir().clone(), options, CpuTarget(TargetDescription{}));
}

int run(const SummaryFlags& flags) {
  Program program = open_program(flags.program);
  apply_length_flag(program, flags.length);
  const Options options{.batch = flags.batch, .amp = amp_options(flags.place.amp)};
  check_options(program, options);
  const TrainingMemory training = training_memory(program);
  const std::vector<LayerRow> rows = rows_of(program, training.saved_ops, flags.batch);
  const std::string line(80, '-');
  fmt::print("{}, batch {}{}\n", program.ir().name, flags.batch,
             flags.length ? fmt::format(", length {}", *flags.length) : "");
  print_inputs(program, flags.batch);
  fmt::print("\n{:<30} {:<18} {:>10} {:>8} {:>10}\n{}\n", "layer (op)", "output", "parameters",
             "FLOPs", "saved", line);
  double flops = 0;
  int64_t saved = 0;
  for (const LayerRow& row : rows) {
    print_row(row);
    flops += row.flops;
    saved += row.saved_bytes;
  }
  fmt::print("{}\n", line);
  const int64_t gradients = print_variables(program, training.updated_variables);
  fmt::print("forward FLOPs          {:>10} {:>12} a sample\n", count_text(flops),
             count_text(flops / static_cast<double>(flags.batch)));
  fmt::print("training: gradients {}, optimizer {}, saved for backward {}\n", size_text(gradients),
             size_text(training.optimizer_bytes), size_text(saved));
  if (options.amp) {
    fmt::print("\nmixed precision\n");
    print_amp_report(program.ir(), options);
  }
  return 0;
}

}  // namespace

void add_summary(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("summary", "Print a program's layers and their sizes");
  const auto flags = std::make_shared<SummaryFlags>();
  add_program_argument(*command, flags->program);
  add_batch_flag(*command, flags->batch);
  add_length_flag(*command, flags->length);
  add_amp_flags(*command, flags->place.amp);
  command->footer(
      "Examples:\n"
      "  fluidrun summary mnist_fluid --batch 100\n\n"
      "Notes:\n"
      "  The column FLOPs counts the forward pass.\n"
      "  The column saved counts the bytes of activations that a training step keeps for its "
      "backward pass.");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
