#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/session/outputs.h"
#include "frontend/program.h"
#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

/// NAME=@FILE.npy of an option: a column or output, and the file it lies in.
struct NamedFile {
  std::string name, path;
};
/// Throws UserError, which names the option `flag`, for a text of another form.
NamedFile named_file(const std::string& text, const std::string& flag);

/// The tensor that "2x2xi64=1,2,3,4" means: extents, dtype, values in row-major order. `where`
/// starts the message of the UserError for a value that is no number of the dtype, or does not fit
/// it: nothing is rounded but floats to their dtype.
Tensor tensor_from_text(const std::string& text, const std::string& where);

/// Element `i`: an integer exactly, a float as the shortest text that reads back to the same value.
std::string element_text(const Tensor& tensor, int64_t i);

/// Whether `got` is `want`: integers and bools exactly, else |got - want| <= tolerance x
/// max(1, |want|), nan being nan.
bool same_element(const Tensor& got, const Tensor& want, int64_t i, double tolerance);

enum class FileFormat : uint8_t { npy, csv };

/// The format that a path's ending asks for: npy for ".npy" and for a path without an ending, as a
/// pipe's. Throws UserError for another ending.
FileFormat format_of(const std::string& path);

/// Writes a tensor in the format of the path, atomically. A CSV file has a line of names, then a
/// line for each index of the first dimension, which it begins with; a scalar takes one.
void write_output(const std::string& path, const std::string& name, const Tensor& value);

/// The file of `predict --output`: a row for each sample of the data, gathered over the batches.
class OutputFile {
 public:
  /// `text` is FILE.npy or FILE.csv, for all outputs with a row a sample, or NAME=@FILE for one.
  /// Throws UserError for another form, or for a path that cannot be written.
  explicit OutputFile(const std::string& text);

  /// Chooses among the outputs `rows`, which there will be, those that the file is to hold. Throws
  /// UserError when one is asked for that is not among them, and for several in one .npy.
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
