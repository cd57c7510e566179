#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/session/outputs.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"
#include "ir/tensor.h"

namespace fluid {

/// A parsed argument NAME=@FILE: the name of an output, and the path of a file.
struct NamedFile {
  std::string name, path;
};
/// Parses NAME=@FILE, the value of the option `flag`. Throws UserError for other text.
NamedFile parse_named_file(const std::string& text, const std::string& flag);

/// Parses a tensor such as "2x2xi64=1,2,3,4": shape, dtype, and elements in row-major order. Rounds
/// floats to the dtype. Throws UserError for other text, and for an element out of the range of the
/// dtype. `where`: start of the error message.
Tensor parse_tensor(const std::string& text, const std::string& where);

/// The text of element `i` in row-major order. The text of a float is the shortest that parses to
/// the same value.
std::string element_text(const Tensor& tensor, int64_t i);

/// Returns the argmax of row `row`. A row consists of the elements at one index of dimension 0.
int64_t largest_in_row(const Tensor& tensor, int64_t row);
/// Whether each row of `tensor` holds one score per class. False if `classes` is empty.
bool are_scores(const Tensor& tensor, const std::vector<std::string>& classes);

/// Whether element `i` of `got` matches element `i` of `want`. Integers and bools must be equal.
/// Floats must be both NaN, or |got - want| <= tolerance * max(1, |want|).
bool elements_match(const Tensor& got, const Tensor& want, int64_t i, double tolerance);

/// Throws UserError if the extension of `path` is not one of `known`, in lower or upper case. A
/// path without an extension, such as a pipe, is valid. `what`: the subject of the message, such as
/// "outputs are".
void check_extension(const std::string& path, const std::vector<std::string>& known,
                     const std::string& what);

enum class FileFormat : uint8_t { npy, csv };

/// The file format for the extension of `path`. The format of a path without an extension, such as
/// a pipe, is npy. Throws UserError for another extension.
FileFormat format_of(const std::string& path);

/// Writes a tensor atomically, in the format for the extension of `path`. A CSV file has a header
/// line, then one line per index of the first dimension; each line begins with the index. A scalar
/// has one line.
void write_output(const std::string& path, const std::string& name, const Tensor& value);

/// A file of `fluidrun predict --output`. Collects one row per sample over all batches, then writes
/// the file.
class OutputFile {
 public:
  /// Parses the value of --output. FILE.npy or FILE.csv selects every output that has one row per
  /// sample. NAME=@FILE selects one output. Throws UserError for other text, and if the file is not
  /// writable.
  explicit OutputFile(const std::string& text);

  /// Selects the outputs to write. `row_outputs`: the computed outputs with one row per sample.
  /// Throws UserError if the output in NAME=@FILE is not among `row_outputs`, and for several
  /// outputs in a .npy file.
  void select_outputs(const Program& program, const std::vector<std::string>& row_outputs);
  /// Sets the class names of a classifier; empty: unknown. With class names, a .csv file has a
  /// column NAME.class for each output with one score per class. The column contains the class with
  /// the largest score.
  void set_class_names(std::vector<std::string> classes) { classes_ = std::move(classes); }
  /// Appends the rows of `outputs`. `data`: the reader whose last batch yielded `outputs`.
  void append(const OutputViews& outputs, const Reader& data);
  void write() const;
  const std::string& path() const { return path_; }

 private:
  void append_csv(const OutputViews& outputs, const Reader& data);

  std::string path_;
  FileFormat format_ = FileFormat::npy;
  /// Names of the outputs to write; empty: all outputs with one row per sample.
  std::vector<std::string> names_;
  std::vector<std::string> classes_;
  std::string bytes_;           ///< .npy: elements of the collected rows; .csv: the text
  std::vector<int64_t> shape_;  ///< .npy: shape of the tensor of all collected rows
  DType dtype_ = DType::f32;
};

}  // namespace fluid
