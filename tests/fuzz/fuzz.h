#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace fluid::fuzz {

using Random = std::mt19937_64;

/// A number in [0, n).
inline size_t below(Random& random, size_t n) { return static_cast<size_t>(random() % n); }

/// One kind of damage: makes a damaged input from `random` and hands it to its reader, which must
/// return or throw UserError.
struct Attack {
  std::string name;
  std::function<void(Random& random)> attempt;
  int weight = 1;  ///< attempts for each unit of --count
};

/// Programs: random ones as they are (`net`), and damaged files of them (`fluid-bytes`,
/// `fluid-structure`, `fir-bytes`). What is accepted is planned, compiled and run for a step.
std::vector<Attack> program_attacks();

/// Other damaged files: `safetensors`, `npy`, `idx`, `gz`, `cifar10`, `json`, `csv`, `target`.
/// Data that is accepted is read for an epoch.
std::vector<Attack> data_attacks();

/// `bytes` with one to four changes: bytes flipped, cut out, repeated, inserted, or the end cut
/// off.
std::string with_changed_bytes(std::string bytes, Random& random);

}  // namespace fluid::fuzz
