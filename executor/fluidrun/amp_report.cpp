#include "executor/fluidrun/amp_report.h"

#include <fmt/format.h>

#include "executor/device/bytes_text.h"
#include "ops/source_kind.h"
#include "passes/amp_cast.h"

namespace fluid {
namespace {

/// What the results of an op in half would take besides in f32.
int64_t saved_bytes(const ir::Op& op, DType half, int64_t batch) {
  int64_t bytes = 0;
  for (const ir::Result& r : op.results) {
    if (r.type.dtype == half) bytes += r.type.bytes_at(batch);
  }
  return bytes;
}

/// The op with the name or the place that its user knows it by.
std::string op_text(const ir::Op& op) {
  const std::string& name = op.results.front().name;
  return op.name + (name.empty() ? "" : " %" + name);
}

}  // namespace

void print_amp_report(const ir::Program& program, const Options& options) {
  const AmpOptions amp = options.amp.value_or(AmpOptions());
  const std::unique_ptr<ir::Program> copy = program.clone();
  check_amp_names(copy->main(), amp);
  const AmpReport report = cast_for_amp(copy->main(), amp);
  const auto row = [](const std::string& op, const std::string& layer, std::string_view type,
                      const std::string& saved, const std::string& reason) {
    fmt::print("{:<22} {:<12} {:<5} {:>10}  {}\n", op, layer, type, saved, reason);
  };
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  row("op", "layer", "type", "smaller by", "reason");
  int64_t all_saved = 0, in_half = 0, of_parameters = 0;
  for (const AmpReport::Choice& choice : report.ops) {
    const int64_t saved = saved_bytes(*choice.op, amp.dtype, options.batch);
    all_saved += saved;
    in_half += choice.dtype == amp.dtype ? 1 : 0;
    row(op_text(*choice.op), choice.op->scope, name_of(choice.dtype), saved > 0 ? size(saved) : "-",
        choice.reason);
  }
  for (const Value& cast : report.casts) {
    const ir::Op& from = *cast.op()->operands.front().op();
    of_parameters += source_kind(from) == SourceKind::parameter ? 1 : 0;
  }
  fmt::print("{} of {} ops in {}, whose results take {} less with a batch of {}\n", in_half,
             report.ops.size(), name_of(amp.dtype), size(all_saved), options.batch);
  fmt::print("{} casts inserted, {} of them of parameters\n", report.casts.size(), of_parameters);
}

}  // namespace fluid
