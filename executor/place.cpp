#include "executor/place.h"

#include <charconv>
#include <vector>

#include "ir/error.h"

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
  int index = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (!gpu || error != std::errc() || end != number.data() + number.size() || index < 0) {
    const std::vector<std::string> known = {"auto", "cpu", "cuda:0"};
    throw UserError("no place '" + std::string(name) + "'" + did_you_mean(name, known) +
                    "; places are auto, cpu and cuda:N");
  }
  throw UserError("place '" + std::string(name) + "': this build of Fluid runs on the CPU only");
}

}  // namespace fluid
