#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/living_programs.h"
#include "frontend/parameter.h"
#include "ir/graph.h"

namespace fluid {

/// Preprocessing of a feed in training, eval and predict: raw values become (x * scale - mean) /
/// std.
struct DataOptions {
  double scale = 1;
  std::vector<double> mean = {};  ///< empty (0), one number, or one per channel (dimension 1)
  std::vector<double> std = {};   ///< empty (1), one number, or one per channel
};

/// A program that is being recorded or was read from a file. Its Values are valid while it lives.
class Program {
 public:
  explicit Program(std::string name);
  explicit Program(std::unique_ptr<ir::Program> recorded);
  /// Reads a `.fluid` or `.fir` file; the content decides which.
  static Program load(const std::string& path);

  /// Adds a feed. Throws UserError when the name is taken.
  Value data(const std::string& name, const Shape& shape, DType dtype,
             const Loc& loc = Loc::here());
  Value data(const std::string& name, const Shape& shape, DType dtype, const DataOptions& options,
             const Loc& loc = Loc::here());
  /// Adds a parameter. The current scope prefixes its name. Throws UserError when the name is
  /// taken.
  Value parameter(const std::string& name, const Shape& shape, const Init& init,
                  const ParameterOptions& options = {}, const Loc& loc = Loc::here());
  /// Marks a value as the output `name`, which can be fetched.
  void output(const std::string& name, Value value, const Loc& loc = Loc::here());

  /// Writes the program atomically: as text when the path ends in ".fir", else as FlatBuffers.
  void save(const std::string& path) const;
  std::string text() const;

  ir::Program& ir() { return *program_; }
  const ir::Program& ir() const { return *program_; }

 private:
  LivingProgram program_;
};

/// While a Scope lives, layers are recorded with names below `name`: "encoder.conv0.w", and
/// fluid::parameter() adds to its program.
class Scope {
 public:
  Scope(Program& program, const std::string& name);

 private:
  ir::RecordAs recording_;
  RecordedProgram recorded_;
};

}  // namespace fluid
