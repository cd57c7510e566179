#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/session/outputs.h"
#include "frontend/program.h"
#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

/// NAME=@FILE.npy: a column or output, and its file.
struct NamedFile {
  std::string name, path;
};
/// Parses NAME=@FILE. Throws UserError with the name of the option, `flag`.
NamedFile named_file(const std::string& text, const std::string& flag);

/// Parses "2x2xi64=1,2,3,4": extents, dtype, values in row-major order. Only floats are rounded.
/// Throws UserError, which starts with `where`, for a value that is not in the dtype's range.
Tensor tensor_from_text(const std::string& text, const std::string& where);

/// Element `i`: an integer exactly, a float as the shortest text that reads back to the same value.
std::string element_text(const Tensor& tensor, int64_t i);

/// Whether `got` equals `want`: integers and bools exactly; floats when |got - want| <= tolerance *
/// max(1, |want|), or when both are nan.
bool same_element(const Tensor& got, const Tensor& want, int64_t i, double tolerance);

enum class FileFormat : uint8_t { npy, csv };

/// The format given by the path's extension; npy for a path without one, such as a pipe. Throws
/// UserError for an extension other than .npy and .csv.
FileFormat format_of(const std::string& path);

/// Writes a tensor atomically, in the format given by the path's extension. A CSV file has a header
/// line, then one line per index of the first dimension. Each line begins with the index. A scalar
/// has one line.
void write_output(const std::string& path, const std::string& name, const Tensor& value);

/// The file of `predict --output`: a row for each sample of the data, gathered over the batches.
class OutputFile {
 public:
  /// `text` is FILE.npy or FILE.csv, for all outputs with a row a sample, or NAME=@FILE for one.
  /// Throws UserError for another form, or for a path that cannot be written.
  explicit OutputFile(const std::string& text);

  /// Chooses the file's outputs among `rows`, the computed outputs with one row per sample. Throws
  /// UserError for an output that is not in `rows`, and for several outputs in one .npy.
  void choose(const Program& program, const std::vector<std::string>& rows);
  /// Adds the rows of a batch, whose first sample is sample `first` of `data`.
  void add(const OutputViews& outputs, const Dataset& data, int64_t first);
  void write() const;
  const std::string& path() const { return path_; }

 private:
  void add_csv(const OutputViews& outputs, const Dataset& data, int64_t first);

  std::string path_;
  FileFormat format_ = FileFormat::npy;
  std::vector<std::string> names_;  ///< of the outputs; none before choose(): all
  std::string bytes_;               ///< of the rows, or the CSV text
  std::vector<int64_t> shape_;      ///< of the rows, for .npy
  DType dtype_ = DType::f32;
};

}  // namespace fluid
