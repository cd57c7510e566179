// A training step whose numbers were not finite, run again to find where its numbers stopped being
// finite.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/cpu/cpu_device.h"
#include "executor/forks.h"
#include "executor/session.h"

namespace fluid {
namespace {

/// Whether the ops of a kernel can be computed one by one from its operands.
bool is_open(const ir::Op& op) {
  return op.attrs.has("body") && !op.attrs.has("kernel") &&
         std::ranges::none_of(op.operands,
                              [](const Value& v) { return v.type().layout.has_value(); });
}

/// The first result that is not finite.
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

/// What a step that is not applied moves on nevertheless, and more: all that is small. The tensors
/// stay from step to step, so that none is allocated.
void Session::copy_controls(Controls& to) {
  settle();
  for (const Variable& v : variables_.all()) {
    if (v.kind != VariableKind::control) continue;
    auto kept = to.find(v.name);
    if (kept == to.end()) {
      kept = to.emplace(v.name, Tensor(v.type.dtype, extents(v.type.shape, 1))).first;
    }
    Tensor& copy = kept->second;
    memory_->read(copy.data(), memory_->at().state + v.offset, copy.bytes());
  }
}

void Session::restore(const Controls& controls) {
  for (const auto& [name, value] : controls) assign(variables_.named(name), value);
}

/// Runs the slices up to number `last` as the last step ran them, until `see` returns false, and
/// leaves the state as it was, also where that fails: a step may be applied although its loss is
/// not finite.
void Session::watch_slices(
    const PreparedStep& step, size_t last, const Batch& batch,
    const std::function<bool(size_t, const ir::Op&, void* const*, bool)>& see) {
  settle();
  begin_anew(0);
  begun_[static_cast<size_t>(slots_.outputs)] = {};  // its outputs are written over
  std::vector<std::byte> after(static_cast<size_t>(memory_->regions().state));
  memory_->read(after.data(), memory_->at().state, memory_->regions().state);
  try {
    restore(before_);
    bool goes_on = true;
    for (size_t i = 0; goes_on && i <= last; ++i) {
      Executable& executable = *step.runs()[i].part->executable;
      executable.watch([&](const ir::Op& op, void* const* buffers, bool done) {
        return goes_on = see(i, op, buffers, done);
      });
      check(start_slice(step, i, batch, nullptr).has_value(), "a step that is watched goes on");
    }
  } catch (...) {
    end_watch(step, after, std::current_exception());
    throw;
  }
  end_watch(step, after, nullptr);
}

/// Nobody watches any more, and the state is `state`. Where it cannot be, no step runs from then
/// on, because of that or of what went wrong before, if anything: `why`.
void Session::end_watch(const PreparedStep& step, std::span<const std::byte> state,
                        const std::exception_ptr& why) {
  for (const PreparedStep::Run& run : step.runs()) run.part->executable->watch(nullptr);
  try {
    memory_->allow_updates();  // whatever was refused was seen already, or is no step's
    write_state(memory_->at().state, state.data(), std::ssize(state));
  } catch (...) {
    broken_ = why ? why : std::current_exception();
    std::rethrow_exception(broken_);
  }
}

/// What was not finite before the step.
std::string Session::bad_source(const PreparedStep& step, const Batch& batch) {
  for (const Feed& feed : step.feeds()) {
    const Tensor& column = *batch.find(feed.name);
    if (!is_float(column.dtype())) continue;
    if (const auto bad = first_bad_element(column.data(), column.dtype(), column.numel())) {
      return fmt::format("element {} of feed '{}' is {}", bad->index, feed.name, bad->value);
    }
  }
  for (const Variable& v : variables_.all()) {
    if (!v.saved() || !is_float(v.type.dtype)) continue;
    const Tensor value = this->value(v);
    if (const auto bad = first_bad_element(value.data(), value.dtype(), value.numel())) {
      return fmt::format("element {} of '{}' was {} before the step", bad->index, v.name,
                         bad->value);
    }
  }
  return "";
}

/// Computes the ops of kernels one by one: the host, so that no memory of a GPU is taken beyond the
/// plan.
Device& Session::searcher() {
  if (memory_->is_host()) return *device_;
  if (!searcher_) searcher_ = cpu_device({.threads = device_->threads()});
  return *searcher_;
}

std::string Session::bad_kernel(const PreparedStep& step, const Batch& batch) {
  std::optional<BadKernel> bad;
  size_t slice = 0;
  watch_slices(step, step.runs().size() - 1, batch,
               [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
                 slice = i;
                 if (done) bad = bad_result(op, buffers, step.runs()[i].slice.samples);
                 return !bad;
               });
  if (!bad) return bad_within(step, batch);
  const int64_t samples = step.runs()[slice].slice.samples;
  if (is_open(*bad->op)) {
    // Again, because a kernel may write over what it has read.
    watch_slices(step, slice, batch, [&](size_t i, const ir::Op& op, void* const* buffers, bool) {
      if (i != slice || &op != bad->op) return true;
      bad->operands = copies_of(op.operands, buffers, samples);
      return false;
    });
  }
  return describe(*bad, samples, searcher());
}

/// Where no kernel stored what is not finite: gradients may be counted and never stored.
std::string Session::bad_within(const PreparedStep& step, const Batch& batch) {
  std::string text;
  watch_slices(step, step.runs().size() - 1, batch,
               [&](size_t i, const ir::Op& op, void* const* buffers, bool done) {
                 if (done || !is_open(op)) return true;
                 const int64_t samples = step.runs()[i].slice.samples;
                 const BadKernel kernel{&op, 0, {}, copies_of(op.operands, buffers, samples)};
                 text = describe_within(kernel, samples, searcher());
                 return text.empty();
               });
  return text;
}

std::string Session::first_nonfinite(PreparedStep& step, const Batch& batch) {
  refuse_forks();
  const std::string source = bad_source(step, batch);
  return source.empty() ? bad_kernel(step, batch) : source;
}

}  // namespace fluid
