#pragma once

#include <span>
#include <vector>

namespace fluid {

/// A buffer of a library task whose algorithms are tried.
struct TrialBuffer {
  std::span<std::byte> memory;
  bool needed = false;  ///< its content must be preserved, as a variable's
};

/// Moves buffers whose content is needed into `spare`, apart from all other buffers, as far as
/// there is room. `needed` is then false. Content of `spare` is lost.
void move_needed(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare);

}  // namespace fluid
