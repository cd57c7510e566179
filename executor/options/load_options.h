#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fluid {

/// The layout of a parameter file. `fluid`: names and shapes of the program. `pytorch`: names and
/// shapes of a PyTorch module (executor/checkpoint/pytorch_layout.h). `unspecified`: like `fluid`.
/// But if Fluid did not write the file, a square linear weight is rejected, because the weight may
/// be transposed.
enum class ParamsLayout : uint8_t { unspecified, fluid, pytorch };

/// How Executor::load() reads a parameter file.
struct LoadOptions {
  ParamsLayout layout = ParamsLayout::unspecified;
  /// Rules that rename tensors of the file: "PATTERN=NAME", as in "backbone.(*)=$1" (NamePattern).
  /// The rules are applied in order, each to the result of the previous one. An empty NAME drops
  /// the tensors.
  std::vector<std::string> maps = {};
  /// Loads the tensors whose names and shapes match the program. Other parameters keep their
  /// values.
  bool partial = false;
};

/// Result of Executor::load(). `missing`, `unused` and `mismatched` are empty unless
/// LoadOptions::partial is set.
struct LoadReport {
  std::vector<std::string> loaded;   ///< parameters and buffers that were loaded
  std::vector<std::string> missing;  ///< parameters and buffers that the file lacks
  std::vector<std::string> unused;   ///< names, in the file, of tensors that were not used
  std::vector<std::string> ignored;  ///< PyTorch's counters num_batches_tracked
  /// Parameters and buffers, except adapters, that a file of LoRA adapters lacks; they keep their
  /// values.
  std::vector<std::string> kept;
  /// A parameter whose shape or dtype in the file does not match the program's.
  struct Mismatch {
    std::string name, type;            ///< name and type in the program
    std::string file_name, file_type;  ///< name and type in the file
  };
  std::vector<Mismatch> mismatched;

  /// Lines such as "2 missing, left as they are: 'fc.b', 'fc.w'". Lists at most 8 names per line.
  std::string text() const;
};

}  // namespace fluid
