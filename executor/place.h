#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluid {

/// Where a program runs.
struct Place {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;            ///< of the GPU
  std::string str() const;  ///< "cpu", "cuda:0"
  bool operator==(const Place&) const = default;
};

inline Place cpu() { return {Place::Kind::cpu, 0}; }
inline Place cuda(int index) { return {Place::Kind::cuda, index}; }

/// "cpu", "cuda", which is the first GPU, "cuda:N", whether there is such a GPU or not, or "auto".
/// Throws UserError for anything else.
Place place_named(std::string_view name);

/// The first GPU where programs run on it, else the CPU. Throws DeviceError when there is a GPU
/// that does not answer.
Place best_place();

}  // namespace fluid
