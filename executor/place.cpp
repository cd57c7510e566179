#include "executor/place.h"

#include <vector>

#include "executor/gpu/backend.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {

std::string Place::str() const {
  return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index);
}

Place place_named(std::string_view name, int local_rank) {
  if (name == "auto") return best_place(local_rank);
  if (name == "cpu") return cpu();
  if (name == "cuda") return cuda(local_rank);
  if (name.starts_with("cuda:")) {
    const int index = number_in<int>(name.substr(5)).value_or(-1);
    if (index >= 0) return cuda(index);
  }
  const std::vector<std::string> known = {"auto", "cpu", "cuda:0"};
  throw UserError("no place '" + std::string(name) + "'" + did_you_mean(name, known) +
                  "; places are auto, cpu and cuda:N");
}

Place best_place(int local_rank) {
  const int devices = may_have_gpus() ? gpu_backend().devices : 0;
  if (devices == 0) return cpu();
  if (local_rank >= devices) {
    throw UserError("this process has local rank " + std::to_string(local_rank) +
                    ", but the machine's last GPU is cuda:" + std::to_string(devices - 1) +
                    ": start as many ranks as there are GPUs, as `fluidrun launch --nproc auto` "
                    "does, or train on the CPU with --place cpu");
  }
  // Who is not the first has a GPU of its own; looking at another would take memory there.
  const int last = local_rank == 0 ? devices - 1 : local_rank;
  for (int device = local_rank; device <= last; ++device) {
    if (unsupported(describe_gpu(gpu_backend(), device)).empty()) return cuda(device);
  }
  return cpu();
}

std::string why_no_gpu() {
  if (!may_have_gpus() || best_place() != cpu()) return "";
  const GpuBackend& found = gpu_backend();
  if (found.devices == 0) return found.hidden ? "" : found.absence;
  return cuda(0).str() + ": " + unsupported(describe_gpu(found, 0));
}

}  // namespace fluid
