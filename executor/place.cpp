#include "executor/place.h"

#include <vector>

#include "ir/error.h"
#include "ir/number.h"

namespace fluid {

std::string Place::str() const {
  return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index);
}

Place place_named(std::string_view name) {
  if (name == "cpu" || name == "auto") return cpu();
  std::string_view number = "0";
  bool gpu = name == "cuda";
  if (name.starts_with("cuda:")) {
    gpu = true;
    number = name.substr(5);
  }
  if (!gpu || number_in<int>(number).value_or(-1) < 0) {
    const std::vector<std::string> known = {"auto", "cpu", "cuda:0"};
    throw UserError("no place '" + std::string(name) + "'" + did_you_mean(name, known) +
                    "; places are auto, cpu and cuda:N");
  }
  throw UserError("place '" + std::string(name) + "': programs do not run on GPUs yet");
}

}  // namespace fluid
