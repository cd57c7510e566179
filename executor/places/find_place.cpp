#include "executor/places/find_place.h"

#include <cstdlib>
#include <optional>

#include "executor/gpu_driver/backend.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

/// Whether CUDA_VISIBLE_DEVICES makes exactly one GPU visible to this process. Under Slurm each
/// rank of a host may see a different GPU.
bool has_one_visible_gpu(const std::vector<int>& gpus) {
  return gpus.size() == 1 && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
}

/// Returns the GPU of local rank `local_rank`; nullopt when there are too few GPUs.
std::optional<Place> gpu_of_local_rank(const std::vector<int>& gpus, int local_rank) {
  if (has_one_visible_gpu(gpus)) return cuda(gpus.front());
  const auto rank = static_cast<size_t>(local_rank);
  return rank < gpus.size() ? std::optional(cuda(gpus[rank])) : std::nullopt;
}

}  // namespace

Place parse_place(std::string_view name, int local_rank) {
  if (name == "auto") return best_place(local_rank);
  if (name == "cpu") return cpu();
  if (name == "cuda")
    return gpu_of_local_rank(list_usable_gpus(), local_rank).value_or(cuda(local_rank));
  if (name.starts_with("cuda:")) {
    const int index = parse_number<int>(name.substr(5)).value_or(-1);
    if (index >= 0) return cuda(index);
  }
  const std::vector<std::string> known = {"auto", "cpu", "cuda:0"};
  throw UserError("no place '" + std::string(name) + "'" + did_you_mean(name, known) +
                  "; places are auto, cpu and cuda:N");
}

std::vector<int> list_usable_gpus() {
  return may_have_gpus() ? supported_gpu_indices(gpu_backend()) : std::vector<int>();
}

Place best_place(int local_rank) {
  const std::vector<int> gpus = list_usable_gpus();
  if (gpus.empty()) return cpu();
  if (const std::optional<Place> own = gpu_of_local_rank(gpus, local_rank)) return *own;
  throw UserError(
      "this process has local rank " + std::to_string(local_rank) +
      ", but the last GPU that programs can run on is cuda:" + std::to_string(gpus.back()) +
      ": start as many ranks as there are GPUs, as `fluidrun launch --nproc auto` "
      "does, name --place cuda:0 where each rank sees another GPU as its only one, or train on "
      "the CPU with --place cpu");
}

std::string explain_missing_gpu() {
  if (!may_have_gpus() || best_place() != cpu()) return "";
  const GpuBackend& found = gpu_backend();
  if (found.devices == 0) return found.hidden ? "" : found.unavailable_reason;
  return cuda(0).str() + ": " + unsupported_reason(describe_gpu(found, 0));
}

}  // namespace fluid
