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

/// "cpu", "cuda", "cuda:N", or "auto". Throws UserError for anything else, and for a GPU: programs
/// do not run on those yet.
Place place_named(std::string_view name);

}  // namespace fluid
