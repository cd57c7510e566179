#include "executor/quantization/activation_range.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/operators.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

std::string low_name(size_t i) { return "low." + std::to_string(i); }
std::string high_name(size_t i) { return "high." + std::to_string(i); }

/// A program whose outputs are the smallest and the largest element of each activation.
Program range_program(const ir::Program& program, const Values& activations) {
  std::unique_ptr<ir::Program> copy = program.clone();
  ir::Graph& graph = copy->main();
  std::map<int64_t, ir::Op*> by_id;
  for (const auto& op : graph.ops) by_id[op->id] = op.get();
  graph.outputs.clear();
  for (size_t i = 0; i < activations.size(); ++i) {
    const Value x(by_id.at(activations[i].op()->id), activations[i].index());
    graph.outputs.push_back({low_name(i), min(x)});
    graph.outputs.push_back({high_name(i), max(x)});
  }
  erase_dead_ops(graph);
  return Program(std::move(copy));
}

/// The columns of `batch` that are feeds of `program`.
Batch feeds_of(const Program& program, const Batch& batch) {
  Batch feeds{.size = batch.size};
  for (const auto& [name, column] : batch.columns) {
    if (program.ir().main().find("data", name) != nullptr) feeds.columns.emplace_back(name, column);
  }
  return feeds;
}

}  // namespace

std::vector<ActivationRange> measure_ranges(Executor& executor, const ir::Program& program,
                                            const Values& activations, Reader& data,
                                            int64_t batches) {
  const Program ranges_of = range_program(program, activations);
  Executor measuring(ranges_of, cpu());
  for (const std::string& name : measuring.parameters())
    measuring.set_parameter(name, executor.parameter(name));
  std::vector<ActivationRange> ranges(activations.size());
  for (int64_t n = 0; n < batches; ++n) {
    const Batch* batch = data.next();
    if (batch == nullptr && n == 0) throw UserError("quantize: the calibration data is empty");
    if (batch == nullptr) break;
    OutputViews outputs = measuring.predict(feeds_of(ranges_of, *batch));
    for (size_t i = 0; i < ranges.size(); ++i) {
      const double low = outputs[low_name(i)].item(), high = outputs[high_name(i)].item();
      if (!std::isfinite(low) || !std::isfinite(high)) {
        throw UserError(activations[i].op()->loc, "quantize: a result of " +
                                                      activations[i].op()->name +
                                                      " is not finite for the calibration data");
      }
      ranges[i].low = std::min(ranges[i].low, low);
      ranges[i].high = std::max(ranges[i].high, high);
    }
  }
  return ranges;
}

}  // namespace fluid
