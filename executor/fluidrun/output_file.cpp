#include "executor/fluidrun/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "executor/fluidrun/elements.h"
#include "executor/trainer/inference.h"
#include "frontend/files/csv.h"
#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Elements of a row; a scalar is a row.
int64_t width_of(const Tensor& value) {
  const int64_t rows = value.shape().empty() ? 1 : value.shape()[0];
  return rows == 0 ? 0 : value.numel() / rows;
}

/// ",prob.0,prob.1", or ",line" for rows of one element.
void append_names(std::string& csv, const std::string& name, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    csv += "," + csv_field(width == 1 ? name : fmt::format("{}.{}", name, i));
  }
}

void append_row(std::string& csv, const Tensor& value, int64_t row) {
  const int64_t width = width_of(value);
  for (int64_t i = 0; i < width; ++i) csv += "," + element_text(value, row * width + i);
}

const ir::Output* find_output(const Program& program, const std::string& name) {
  const auto& outputs = program.ir().main().outputs;
  const auto found = std::ranges::find(outputs, name, &ir::Output::name);
  return found == outputs.end() ? nullptr : &*found;
}

/// Throws UserError unless `name` is among `rows`.
void check_row_output(const std::string& name, const Program& program,
                      const std::vector<std::string>& rows) {
  if (std::ranges::find(rows, name) != rows.end()) return;
  const ir::Output* output = find_output(program, name);
  if (output == nullptr) {
    throw UserError("no output '" + name + "'" + did_you_mean(name, rows));
  }
  const std::vector<std::string> all = row_outputs(program);
  if (std::ranges::find(all, name) != all.end()) {
    throw UserError("output '" + name + "' needs a feed that the data does not have");
  }
  throw UserError("output '" + name + "' is " + output->value.type().str() +
                  ", not one row a sample");
}

}  // namespace

FileFormat format_of(const std::string& path) {
  const std::string ending = ir::lowercase(std::filesystem::path(path).extension().string());
  if (ending == ".csv") return FileFormat::csv;
  if (ending.empty() || ending == "." || ending == ".npy") return FileFormat::npy;
  throw UserError("cannot write '" + path + "': outputs are written as .npy or .csv, not as " +
                  ending);
}

void write_output(const std::string& path, const std::string& name, const Tensor& value) {
  if (format_of(path) == FileFormat::npy) return write_npy(path, value);
  std::string csv = "index";
  append_names(csv, name, width_of(value));
  csv += '\n';
  const int64_t rows = value.shape().empty() ? 1 : value.shape()[0];
  for (int64_t row = 0; row < rows; ++row) {
    csv += std::to_string(row);
    append_row(csv, value, row);
    csv += '\n';
  }
  write_file_atomically(path, csv);
}

OutputFile::OutputFile(const std::string& text) : path_(text) {
  if (text.find("=@") != std::string::npos) {
    const NamedFile file = named_file(text, "--output");
    path_ = file.path;
    names_ = {file.name};
  } else if (std::filesystem::path(text).extension().empty()) {
    throw UserError("--output " + text +
                    ": write FILE.npy, FILE.csv, NAME=@FILE.npy or NAME=@FILE.csv");
  }
  format_ = format_of(path_);
  check_writable(path_);
}

void OutputFile::choose(const Program& program, const std::vector<std::string>& rows) {
  for (const std::string& name : names_) check_row_output(name, program, rows);
  if (names_.empty()) names_ = rows;
  if (format_ == FileFormat::csv || names_.size() == 1) return;
  std::string list;
  for (const std::string& name : names_) list += (list.empty() ? "'" : ", '") + name + "'";
  throw UserError("--output " + path_ + " holds one output, and there are " + list +
                  ": write NAME=@" + path_ + ", or a .csv");
}

void OutputFile::add(const Outputs& outputs, const Dataset& data, int64_t first) {
  if (format_ == FileFormat::csv) return add_csv(outputs, data, first);
  const Tensor& value = outputs[names_.front()];
  const int64_t before = shape_.empty() ? 0 : shape_[0];
  shape_ = value.shape();
  shape_[0] += before;
  dtype_ = value.dtype();
  bytes_.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
}

void OutputFile::add_csv(const Outputs& outputs, const Dataset& data, int64_t first) {
  const int64_t samples = outputs[names_.front()].shape()[0];
  if (bytes_.empty()) {
    bytes_ = "index";
    for (const std::string& name : names_) append_names(bytes_, name, width_of(outputs[name]));
    bytes_ += '\n';
  }
  for (int64_t i = 0; i < samples; ++i) {
    bytes_ += std::to_string(data.row(first + i));
    for (const std::string& name : names_) append_row(bytes_, outputs[name], i);
    bytes_ += '\n';
  }
}

void OutputFile::write() const {
  if (format_ == FileFormat::csv) return write_file_atomically(path_, bytes_);
  write_npy(path_, Tensor::view(dtype_, shape_, const_cast<char*>(bytes_.data())));
}

}  // namespace fluid
