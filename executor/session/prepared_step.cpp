#include "executor/session/prepared_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "passes/metrics.h"

namespace fluid {
namespace {

bool is_batched(const Shape& shape) {
  return std::ranges::any_of(shape, [](const Dim& d) { return d.batch; });
}

/// Returns how many separate ranges of memory hold the samples [i, j) of a tensor: the number of
/// elements of the dimensions before the batch dimension, but at least 1.
int64_t ranges_of_samples(const Shape& shape) {
  int64_t ranges = 1;
  for (const Dim& d : shape) {
    if (d.batch) break;
    ranges *= d.size;
  }
  return std::max<int64_t>(ranges, 1);
}

const ir::Output* find_output(const ir::Program& program, const std::string& name) {
  const auto& outputs = program.main().outputs;
  const auto found = std::ranges::find(outputs, name, &ir::Output::name);
  return found == outputs.end() ? nullptr : &*found;
}

}  // namespace

Options MicroBatch::options(Options step_options) const {
  step_options.micro_batch = kind;
  step_options.global_batch = step_options.global_samples();
  // Shape inference needs at least one sample, although an empty micro-batch has no samples.
  step_options.batch = std::max<int64_t>(samples, 1);
  return step_options;
}

std::vector<MicroBatch> split_into_micro_batches(int64_t batch, int64_t count) {
  count = std::min(count, batch);
  if (count <= 1) return {{batch == 0 ? MicroBatchKind::empty : MicroBatchKind::whole, 0, batch}};
  std::vector<MicroBatch> micro_batches;
  for (int64_t i = 0, first = 0; i < count; ++i) {
    const int64_t samples = batch / count + (i < batch % count ? 1 : 0);
    const MicroBatchKind kind = i == 0           ? MicroBatchKind::first
                                : i == count - 1 ? MicroBatchKind::last
                                                 : MicroBatchKind::middle;
    micro_batches.push_back({kind, first, samples});
    first += samples;
  }
  return micro_batches;
}

std::vector<int64_t> extents(const Shape& shape, int64_t batch) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape) dims.push_back(d.at(batch));
  return dims;
}

int64_t gathered_bytes(const ir::Program& program, int64_t batch) {
  int64_t bytes = 0;
  for (const ir::Output& o : program.main().outputs) {
    if (is_batched(o.value.shape())) bytes += align_up(o.value.type().bytes_at(batch));
  }
  return bytes;
}

PreparedStep::PreparedStep(Options options, std::vector<Run> runs, const ir::Program& recorded)
    : options_(std::move(options)), runs_(std::move(runs)), recorded_(recorded) {
  for (const Run& run : runs_) {
    feed_bytes_ = std::max(feed_bytes_, align_up(run.compiled->plan.feeds));
    output_bytes_ = std::max(output_bytes_, align_up(run.compiled->plan.outputs));
  }
  if (runs_.size() > 1) plan_gathering();
}

void PreparedStep::plan_gathering() {
  int64_t offset = output_bytes_;
  output_bytes_ += gathered_bytes(*runs_.front().compiled->program, options_.batch);
  for (const ir::Output& o : runs_.front().compiled->program->main().outputs) {
    const Type type = o.value.type();
    if (!is_batched(type.shape)) continue;
    const int64_t ranges = ranges_of_samples(type.shape);
    GatheredOutput g{.name = o.name,
                     .offset = offset,
                     .ranges = ranges,
                     .stride = type.bytes_at(options_.batch) / ranges,
                     .from = {},
                     .to = {},
                     .bytes = {}};
    for (const Run& run : runs_) {
      const ir::Output* part = find_output(*run.compiled->program, o.name);
      check(part != nullptr, [&] { return "output '" + o.name + "' is missing in a micro-batch"; });
      g.from.push_back(run.compiled->plan.values.at(part->value).offset);
      g.to.push_back(g.offset + type.bytes_at(run.micro_batch.first) / ranges);
      g.bytes.push_back(type.bytes_at(run.micro_batch.samples));
    }
    offset += align_up(type.bytes_at(options_.batch));
    gathered_.push_back(std::move(g));
  }
}

PreparedStep::OutputLocation PreparedStep::location_of(const ir::Output& output) const {
  const Range& range = runs_.back().compiled->plan.values.at(output.value);
  check(range.region == Region::outputs,
        [&] { return "output '" + output.name + "' has no slot"; });
  const auto gathered = std::ranges::find(gathered_, output.name, &GatheredOutput::name);
  if (gathered != gathered_.end()) return {.offset = gathered->offset, .on_host = true};
  return {.offset = range.offset, .bytes = output.value.type().bytes_at(options_.batch)};
}

Tensor PreparedStep::view(const ir::Output& output, std::byte* slot,
                          const std::shared_ptr<PlaceMemory>& memory) const {
  return Tensor::view(output.value.dtype(), extents(output.value.shape(), options_.batch),
                      slot + location_of(output).offset, memory);
}

void PreparedStep::bind_outputs(const std::shared_ptr<PlaceMemory>& memory) {
  const ir::Program& program = *runs_.back().compiled->program;
  for (size_t slot = 0; slot < 2; ++slot) {
    std::vector<OutputView>& views = output_views_[slot];
    const bool first = views.empty();
    size_t index = 0;
    for (const ir::Output& declared : recorded_.main().outputs) {
      const ir::Output* found = find_output(program, declared.name);
      if (found == nullptr) continue;
      const ir::Op* metric = is_metric(declared.value) ? declared.value.op() : nullptr;
      if (first) {
        views.push_back({.name = found->name, .value = Tensor(f64, {}), .metric = metric});
        locations_[slot].push_back(location_of(*found));
      }
      OutputView& output = views[index++];
      (metric ? output.statistics : output.value) =
          view(*found, memory->addresses().host_slots.outputs[slot], memory);
    }
  }
}

void PreparedStep::mark_outputs_pending(size_t slot) {
  has_metric_values_[slot] = false;
  for (size_t i = 0; i < locations_[slot].size(); ++i) {
    OutputLocation& location = locations_[slot][i];
    location.on_host = location.bytes == 0;
  }
}

void PreparedStep::gather_outputs(size_t run, size_t slot, const PlaceMemory& memory) const {
  std::byte* begin = memory.addresses().host_slots.outputs[slot];
  for (const GatheredOutput& g : gathered_) {
    memory.fetch(static_cast<int>(slot), g.from[run], g.bytes[run]);
    const int64_t bytes = g.bytes[run] / g.ranges;
    for (int64_t i = 0; i < g.ranges; ++i) {
      std::memcpy(begin + g.to[run] + i * g.stride, begin + g.from[run] + i * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

void PreparedStep::fetch_output(size_t slot, size_t output_index, const PlaceMemory& memory) {
  OutputLocation& location = locations_[slot].at(output_index);
  if (location.on_host) return;
  memory.fetch(static_cast<int>(slot), location.offset, location.bytes);
  location.on_host = true;
}

std::optional<size_t> PreparedStep::index_of_output(std::string_view output) const {
  const auto found = std::ranges::find(output_views_[0], output, &OutputView::name);
  if (found == output_views_[0].end()) return std::nullopt;
  return static_cast<size_t>(found - output_views_[0].begin());
}

std::vector<std::string> PreparedStep::output_names() const {
  std::vector<std::string> names;
  for (const OutputView& o : output_views_[0]) names.push_back(o.name);
  return names;
}

UserError PreparedStep::no_output_error(std::string_view name) const {
  const auto has_name = [&](const ir::Output& o) { return o.name == name; };
  if (options_.mode == Mode::train && std::ranges::any_of(recorded_.main().outputs, has_name)) {
    return UserError(
        fmt::format("output '{}' is not computed by a step of recipe '{}', which computes {}", name,
                    options_.recipe, fmt::join(output_names(), ", ")));
  }
  return UserError("no output '" + std::string(name) + "'" + did_you_mean(name, output_names()));
}

void PreparedStep::enable_profiling(const ProfileOptions& options) {
  std::vector<size_t> calls;
  for (const Run& run : runs_) {
    run.compiled->executable->enable_timing();
    calls.push_back(run.compiled->executable->calls().size());
  }
  recorder_.emplace(options, calls);
}

const std::vector<OutputView>& PreparedStep::finish_outputs(size_t slot,
                                                            const PlaceMemory& memory) {
  if (std::exchange(has_metric_values_[slot], true)) return output_views_[slot];
  for (size_t i = 0; i < output_views_[slot].size(); ++i) {
    OutputView& output = output_views_[slot][i];
    if (!output.metric) continue;
    fetch_output(slot, i, memory);
    output.value.as<double>()[0] = metric_value(*output.metric, output.statistics.as<double>());
  }
  return output_views_[slot];
}

}  // namespace fluid
