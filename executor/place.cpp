#include "executor/place.h"

#include <vector>

#include "executor/gpu/backend.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {

std::string Place::str() const {
  return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index);
}

Place place_named(std::string_view name) {
  if (name == "auto") return best_place();
  if (name == "cpu") return cpu();
  if (name == "cuda") return cuda(0);
  if (name.starts_with("cuda:")) {
    const int index = number_in<int>(name.substr(5)).value_or(-1);
    if (index >= 0) return cuda(index);
  }
  const std::vector<std::string> known = {"auto", "cpu", "cuda:0"};
  throw UserError("no place '" + std::string(name) + "'" + did_you_mean(name, known) +
                  "; places are auto, cpu and cuda:N");
}

Place best_place() {
  if (!may_have_gpus() || gpu_backend().devices == 0) return cpu();
  return unsupported(describe_gpu(gpu_backend(), 0)).empty() ? cuda(0) : cpu();
}

}  // namespace fluid
