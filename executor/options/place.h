#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// The device on which a program runs: the CPU or one GPU.
struct Place {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;            ///< index of the GPU; 0 for the CPU
  std::string str() const;  ///< name: "cpu", "cuda:0"
  bool operator==(const Place&) const = default;
};

inline Place cpu() { return {Place::Kind::cpu, 0}; }
inline Place cuda(int index) { return {Place::Kind::cuda, index}; }

}  // namespace fluid
