#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// What happens to a feed on its way in, in training, eval and predict: raw values become
/// (x * scale - mean) / std.
struct DataOptions {
  double scale = 1;
  std::vector<double> mean = {};  ///< one number, or one a channel (dimension 1); none: 0
  std::vector<double> std = {};   ///< as `mean`; none: 1
};

/// A program being recorded, or read from a file. Values recorded into it live as long as it does.
class Program {
 public:
  explicit Program(std::string name);
  explicit Program(std::unique_ptr<ir::Program> recorded);
  /// Reads a `.fluid` or `.fir` file, told apart by content.
  static Program load(const std::string& path);

  /// A feed. Throws UserError when the name is taken.
  Value data(const std::string& name, const Shape& shape, DType dtype,
             const Loc& loc = Loc::here());
  Value data(const std::string& name, const Shape& shape, DType dtype, const DataOptions& options,
             const Loc& loc = Loc::here());
  /// Marks a value to be fetched under `name`.
  void output(const std::string& name, Value value, const Loc& loc = Loc::here());

  /// Writes the program: text when the path ends in ".fir", else FlatBuffers. Atomic.
  void save(const std::string& path) const;
  std::string text() const;

  ir::Program& ir() { return *program_; }
  const ir::Program& ir() const { return *program_; }

 private:
  std::unique_ptr<ir::Program> program_;
};

/// Layers recorded while it lives get names below `name`: "encoder.conv0.w".
class Scope {
 public:
  Scope(Program& program, const std::string& name);

 private:
  ir::RecordAs recording_;
};

}  // namespace fluid
