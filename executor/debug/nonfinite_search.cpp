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

/// Whether the ops in the body of a kernel can be recomputed one at a time from the operands of the
/// kernel.
bool is_recomputable(const ir::Op& op) {
  return op.attrs.has("body") && !op.attrs.has("kernel") &&
         std::ranges::none_of(op.operands,
                              [](const Value& v) { return v.type().layout.has_value(); });
}

/// Finds the first non-finite result of `op`.
std::optional<NonfiniteKernel> first_nonfinite_result(const ir::Op& op, void* const* buffers,
                                                      int64_t batch) {
  for (size_t r = 0; r < op.results.size(); ++r) {
    const Type& type = op.results[r].type;
    if (!is_float(type.dtype)) continue;
    const int64_t numel = type.bytes_at(batch) / size_of(type.dtype);
    const void* data = buffers[op.operands.size() + r];
    if (const auto element = first_nonfinite_element(data, type.dtype, numel)) {
      return NonfiniteKernel{&op, static_cast<int>(r), *element, {}};
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

void NonfiniteSearch::save_control_variables() {
  session_.in_flight().wait_for_inference();
  session_.values().save_control_variables(controls_before_);
}

std::string NonfiniteSearch::describe_first_nonfinite(const PreparedStep& step,
                                                      const Batch& batch) {
  check_not_forked();
  const std::string source = describe_nonfinite_input(step, batch);
  return source.empty() ? describe_nonfinite_kernel(step, batch) : source;
}

void NonfiniteSearch::rerun_observed(const PreparedStep& step, size_t last_micro_batch,
                                     const Batch& batch,
                                     const StepsInFlight::RerunObserver& observer) {
  session_.rerun_observed(step, last_micro_batch, batch, controls_before_, observer);
}

/// Describes the first feed or variable that had a non-finite value before the step. Returns "" if
/// all values were finite.
std::string NonfiniteSearch::describe_nonfinite_input(const PreparedStep& step,
                                                      const Batch& batch) {
  for (const Feed& feed : step.feeds()) {
    const Tensor& column = *batch.find(feed.name);
    if (!is_float(column.dtype())) continue;
    if (const auto bad = first_nonfinite_element(column.data(), column.dtype(), column.numel())) {
      return fmt::format("element {} of feed '{}' is {}", bad->index, feed.name, bad->value);
    }
  }
  for (const Variable& v : session_.variables().all()) {
    if (!v.is_recorded() || !is_float(v.type.dtype)) continue;
    const Tensor value = session_.values().value(v);
    if (const auto bad = first_nonfinite_element(value.data(), value.dtype(), value.numel())) {
      return fmt::format("element {} of '{}' was {} before the step", bad->index, v.name,
                         bad->value);
    }
  }
  return "";
}

/// Returns the device that recomputes ops. This is the CPU, because recomputing on the GPU would
/// need memory that was not planned.
Device& NonfiniteSearch::host_device() {
  if (!host_) host_ = cpu_device({.threads = session_.device().threads()});
  return *host_;
}

std::string NonfiniteSearch::describe_nonfinite_kernel(const PreparedStep& step,
                                                       const Batch& batch) {
  std::optional<NonfiniteKernel> bad;
  size_t bad_run = 0;
  size_t calls = 0;  // number of started calls; distinguishes repeated calls of an op in a scan
  rerun_observed(step, step.runs().size() - 1, batch,
                 [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
                   bad_run = i;
                   if (done) {
                     bad = first_nonfinite_result(op, buffers, step.runs()[i].micro_batch.samples);
                   } else {
                     ++calls;
                   }
                   return !bad;
                 });
  if (!bad) return describe_nonfinite_body_op(step, batch);
  const int64_t samples = step.runs()[bad_run].micro_batch.samples;
  if (is_recomputable(*bad->op)) {
    // Copies the operands in a second rerun, before the kernel runs, because the kernel may
    // overwrite its operands in place.
    size_t begun = 0;
    rerun_observed(step, bad_run, batch,
                   [&](size_t, const ir::Op& op, void* const* buffers, bool done) {
                     if (done || ++begun != calls) return true;
                     bad->operands = copies_of(op.operands, buffers, samples);
                     return false;
                   });
  }
  return describe_nonfinite_op(*bad, samples, host_device());
}

/// Searches inside the kernels for a non-finite value when all stored results are finite. A kernel
/// may compute and check gradients that it never stores.
std::string NonfiniteSearch::describe_nonfinite_body_op(const PreparedStep& step,
                                                        const Batch& batch) {
  std::string text;
  rerun_observed(
      step, step.runs().size() - 1, batch,
      [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
        if (done || !is_recomputable(op)) return true;
        const int64_t samples = step.runs()[i].micro_batch.samples;
        const NonfiniteKernel kernel{&op, 0, {}, copies_of(op.operands, buffers, samples)};
        text = describe_nonfinite_body_op_or_empty(kernel, samples, host_device());
        return text.empty();
      });
  return text;
}

}  // namespace fluid
