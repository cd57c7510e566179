#include <fmt/format.h>

#include <span>

#include "executor/device/library_task.h"
#include "executor/gpu/gpu_executable.h"
#include "executor/profile/call_info.h"

namespace fluid {

/// The operands, results and workspace on which a call's algorithms are tried. Variables keep their
/// content.
std::vector<TrialBuffer> GpuExecutable::trial_buffers(const GpuCall& call,
                                                      const std::vector<void*>& addresses) const {
  std::vector<int64_t> bytes;
  for (const Value& v : call.op->operands) bytes.push_back(v.type().bytes_at(batch_));
  for (const ir::Result& r : call.op->results) bytes.push_back(r.type.bytes_at(batch_));
  bytes.push_back(planned_workspace(*call.op));
  std::vector<TrialBuffer> buffers;
  for (size_t i = 0; i < call.refs.size(); ++i) {
    buffers.push_back(
        {.memory = {static_cast<std::byte*>(addresses[i]), static_cast<size_t>(bytes.at(i))},
         .needed = call.refs[i].region == Region::state});
  }
  move_needed(buffers, {memory_.transient, static_cast<size_t>(plan_.transient)});
  return buffers;
}

/// Chooses an algorithm for every library call. At this point transient memory holds nothing that a
/// step needs. All calls are tried before the program is compiled again without the failing ones.
/// If all failures were known before, compiling again would not help, so a plain DeviceError is
/// thrown.
void GpuExecutable::prepare_library_calls(const Buffers& buffers) {
  std::string refused;
  bool is_news = false;
  for (size_t i = 0; i < list_.calls.size(); ++i) {
    if (!list_.calls[i].library) continue;
    const bool known = chooser_.record().refusal(list_.calls[i].library->task).has_value();
    if (prepare_library_call(list_.calls[i], buffers[i])) continue;
    is_news |= !known;
    if (refused.empty()) refused = refusal_of(list_.calls[i]);
  }
  if (refused.empty()) return;
  const LibraryRejection refusal(refused);
  if (is_news) throw refusal;
  throw DeviceError(refusal.what());
}

/// Returns false when the library has no working algorithm.
bool GpuExecutable::prepare_library_call(GpuCall& call, const std::vector<void*>& addresses) {
  if (call.multiplier && call.revision == chooser_.revision()) return true;
  const std::vector<TrialBuffer> buffers = trial_buffers(call, addresses);
  std::vector<void*> places;
  for (const TrialBuffer& buffer : buffers) places.push_back(buffer.memory.data());
  GpuChooser::Unused unused;
  for (const TrialBuffer& operand : std::span(buffers).first(call.op->operands.size())) {
    if (!operand.needed) unused.push_back(operand.memory);
  }
  call.multiplier =
      chooser_.multiplier(call.library->task, call.library->factors(places, places.back()),
                          call.library->workspace, unused);
  call.revision = chooser_.revision();
  return static_cast<bool>(call.multiplier);
}

std::string GpuExecutable::refusal_of(const GpuCall& call) const {
  const ir::Op& head = *LibraryBody(*call.op).head;
  const GpuLibraryCall& library = *call.library;
  const std::string layer = layer_of(head), line = head.loc.str();
  return fmt::format(
      "{}{}: {}", layer, head.loc.known() && layer != line ? " @ " + line : "",
      refusal_text(call.op->attrs.get<std::string>("kernel"), library.task, library.workspace,
                   chooser_.record().refusal(library.task).value_or("")));
}

}  // namespace fluid
