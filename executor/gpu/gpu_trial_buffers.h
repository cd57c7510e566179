#pragma once

#include <span>
#include <vector>

namespace fluid {

/// A buffer of a library's task whose ways are tried.
struct TrialBuffer {
  std::span<std::byte> memory;
  bool needed = false;  ///< for what it holds, as that of a variable
};

/// Gives those that are needed other places in `spare`, of which nothing is needed, apart from all
/// buffers, where there is room: these are needed no more.
void move_needed(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare);

}  // namespace fluid
