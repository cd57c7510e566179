#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/parameter.h"
#include "frontend/program_registry.h"
#include "ir/graph.h"

namespace fluid {

/// Preprocessing of a feed, in training and inference: (x * scale - mean) / std.
struct DataOptions {
  double scale = 1;
  std::vector<double> mean = {};  ///< one number, or one per channel (dimension 1); empty: 0
  std::vector<double> std = {};   ///< one number, or one per channel (dimension 1); empty: 1
};

/// A neural network program, recorded by layer functions or read from a file. The Values of a
/// program are valid during the lifetime of the Program.
class Program {
 public:
  explicit Program(std::string name);
  explicit Program(std::unique_ptr<ir::Program> recorded);
  /// Reads a program file, in FlatBuffers (`.fluid`) or text (`.fir`) format. Detects the format
  /// from the contents.
  static Program load(const std::string& path);

  /// Adds a feed: an input whose data each batch provides. Throws UserError when the name is taken.
  Value data(const std::string& name, const Shape& shape, DType dtype,
             const Loc& loc = Loc::here());
  Value data(const std::string& name, const Shape& shape, DType dtype, const DataOptions& options,
             const Loc& loc = Loc::here());
  /// Adds a parameter. The name of the current scope is prepended to `name`. Throws UserError when
  /// the name is taken.
  Value parameter(const std::string& name, const Shape& shape, const Init& init,
                  const ParameterOptions& options = {}, const Loc& loc = Loc::here());
  /// Adds `value` to the outputs of the program, under the given name.
  void output(const std::string& name, Value value, const Loc& loc = Loc::here());

  /// Writes the program to a file, atomically. The format is text if `path` ends in ".fir", else
  /// FlatBuffers.
  void save(const std::string& path) const;
  std::string text() const;  ///< returns the program in the text format of `.fir` files

  ir::Program& ir() { return *program_; }
  const ir::Program& ir() const { return *program_; }

 private:
  RegisteredProgram program_;
};

/// RAII scope. During its lifetime, `name` is prepended to the names of new layers and parameters,
/// as in "encoder.conv0.w", and fluid::parameter() adds parameters to `program`.
class Scope {
 public:
  Scope(Program& program, const std::string& name);

 private:
  ir::ScopedRecording recording_;
  CurrentProgramGuard program_guard_;
};

}  // namespace fluid
