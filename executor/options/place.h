#pragma once

#include <cstdint>
#include <string>

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

}  // namespace fluid
