#include "executor/debug/nonfinite_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "executor/cpu/cpu_device.h"
#include "executor/debug/nonfinite.h"
#include "executor/device/forks.h"

namespace fluid {
namespace {

/// Whether the ops of a kernel can be recomputed one by one from its operands.
bool is_open(const ir::Op& op) {
  return op.attrs.has("body") && !op.attrs.has("kernel") &&
         std::ranges::none_of(op.operands,
                              [](const Value& v) { return v.type().layout.has_value(); });
}

/// The first non-finite result of `op`.
std::optional<BadKernel> bad_result(const ir::Op& op, void* const* buffers, int64_t batch) {
  for (size_t r = 0; r < op.results.size(); ++r) {
    const Type& type = op.results[r].type;
    if (!is_float(type.dtype)) continue;
    const int64_t numel = type.bytes_at(batch) / size_of(type.dtype);
    const void* data = buffers[op.operands.size() + r];
    if (const auto element = first_bad_element(data, type.dtype, numel)) {
      return BadKernel{&op, static_cast<int>(r), *element, {}};
    }
  }
  return std::nullopt;
}

std::vector<Tensor> copies_of(const Values& operands, void* const* buffers, int64_t batch) {
  std::vector<Tensor> copies;
  for (size_t i = 0; i < operands.size(); ++i) {
    copies.emplace_back(operands[i].dtype(), extents(operands[i].shape(), batch));
    std::memcpy(copies.back().data(), buffers[i], static_cast<size_t>(copies.back().bytes()));
  }
  return copies;
}

}  // namespace

void NonfiniteSearch::before_step() {
  session_.in_flight().wait_for_inference();
  session_.values().copy_controls(before_);
}

std::string NonfiniteSearch::find(const PreparedStep& step, const Batch& batch) {
  check_not_forked();
  const std::string source = bad_source(step, batch);
  return source.empty() ? bad_kernel(step, batch) : source;
}

void NonfiniteSearch::rerun_watched(const PreparedStep& step, size_t last, const Batch& batch,
                                    const StepsInFlight::See& see) {
  session_.rerun_watched(step, last, batch, before_, see);
}

/// Names a feed or variable that was not finite before the step; "" if all were finite.
std::string NonfiniteSearch::bad_source(const PreparedStep& step, const Batch& batch) {
  for (const Feed& feed : step.feeds()) {
    const Tensor& column = *batch.find(feed.name);
    if (!is_float(column.dtype())) continue;
    if (const auto bad = first_bad_element(column.data(), column.dtype(), column.numel())) {
      return fmt::format("element {} of feed '{}' is {}", bad->index, feed.name, bad->value);
    }
  }
  for (const Variable& v : session_.variables().all()) {
    if (!v.saved() || !is_float(v.type.dtype)) continue;
    const Tensor value = session_.values().value(v);
    if (const auto bad = first_bad_element(value.data(), value.dtype(), value.numel())) {
      return fmt::format("element {} of '{}' was {} before the step", bad->index, v.name,
                         bad->value);
    }
  }
  return "";
}

/// The CPU device that recomputes ops, so no unplanned GPU memory is needed.
Device& NonfiniteSearch::host() {
  if (!host_) host_ = cpu_device({.threads = session_.device().threads()});
  return *host_;
}

std::string NonfiniteSearch::bad_kernel(const PreparedStep& step, const Batch& batch) {
  std::optional<BadKernel> bad;
  size_t slice = 0;
  rerun_watched(step, step.runs().size() - 1, batch,
                [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
                  slice = i;
                  if (done) bad = bad_result(op, buffers, step.runs()[i].slice.samples);
                  return !bad;
                });
  if (!bad) return bad_within(step, batch);
  const int64_t samples = step.runs()[slice].slice.samples;
  if (is_open(*bad->op)) {
    // Rerun to copy the operands: the kernel may overwrite them in place.
    rerun_watched(step, slice, batch, [&](size_t i, const ir::Op& op, void* const* buffers, bool) {
      if (i != slice || &op != bad->op) return true;
      bad->operands = copies_of(op.operands, buffers, samples);
      return false;
    });
  }
  return describe(*bad, samples, host());
}

/// Searches inside kernels when all stored results are finite: the finite check may be fused with
/// gradients that are never stored.
std::string NonfiniteSearch::bad_within(const PreparedStep& step, const Batch& batch) {
  std::string text;
  rerun_watched(step, step.runs().size() - 1, batch,
                [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
                  if (done || !is_open(op)) return true;
                  const int64_t samples = step.runs()[i].slice.samples;
                  const BadKernel kernel{&op, 0, {}, copies_of(op.operands, buffers, samples)};
                  text = describe_within(kernel, samples, host());
                  return text.empty();
                });
  return text;
}

}  // namespace fluid
