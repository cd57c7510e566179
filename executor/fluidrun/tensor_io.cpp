#include "executor/fluidrun/tensor_io.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "executor/trainer/inference.h"
#include "frontend/files/csv.h"
#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {

namespace {

/// Splits `text` at each separator. Returns an empty list for an empty text.
std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
T parse_element(const std::string& text, DType dtype, const std::string& where) {
  T value = {};
  const std::errc error = read_number(text, value);
  if (error == std::errc::invalid_argument) {
    throw UserError(where + ": '" + text + "' is not " +
                    (std::is_integral_v<T> ? "an integer" : "a number"));
  }
  const Tensor stored = Tensor::of<T>({}, std::vector<T>{value}).cast(dtype);
  bool fits = error == std::errc();
  if constexpr (std::is_integral_v<T>) {
    fits = fits && stored.integer(0) == value;
  } else {
    fits = fits && std::isinf(stored.at(0)) == std::isinf(value);
  }
  if (!fits) {
    throw UserError(where + ": " + text + " does not fit " + std::string(name_of(dtype)));
  }
  return value;
}

template <class T>
Tensor tensor_of(const std::vector<int64_t>& shape, DType dtype,
                 const std::vector<std::string>& texts, const std::string& where) {
  std::vector<T> values;
  for (const std::string& text : texts) values.push_back(parse_element<T>(text, dtype, where));
  const Tensor want = Tensor::view(dtype, shape, nullptr);
  if (want.numel() != static_cast<int64_t>(values.size())) {
    throw UserError(fmt::format("{}: {} takes {} values, not {}", where, want.str(), want.numel(),
                                values.size()));
  }
  return Tensor::of<T>(shape, values).cast(dtype);
}

}  // namespace

NamedFile parse_named_file(const std::string& text, const std::string& flag) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || text[at + 1] != '@') {
    throw UserError(flag + " " + text + ": write NAME=@FILE.npy");
  }
  return {text.substr(0, at), text.substr(at + 2)};
}

Tensor parse_tensor(const std::string& text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError(where + ": write NAME=4xf32=1,2,3,4 or NAME=@FILE.npy");
  }
  std::vector<std::string> parts = split_at(text.substr(0, equals), 'x');
  const std::optional<DType> dtype = parse_dtype(parts.back());
  if (!dtype) throw UserError(where + ": no dtype '" + parts.back() + "'");
  parts.pop_back();
  std::vector<int64_t> shape;
  for (const std::string& part : parts) shape.push_back(parse_element<int64_t>(part, i64, where));
  const std::vector<std::string> values = split_at(text.substr(equals + 1), ',');
  return is_float(*dtype) ? tensor_of<double>(shape, *dtype, values, where)
                          : tensor_of<int64_t>(shape, *dtype, values, where);
}

std::string element_text(const Tensor& tensor, int64_t i) {
  if (!is_float(tensor.dtype())) return std::to_string(tensor.integer(i));
  return tensor.dtype() == f64 ? fmt::format("{}", tensor.at(i))
                               : fmt::format("{}", static_cast<float>(tensor.at(i)));
}

int64_t largest_in_row(const Tensor& tensor, int64_t row) {
  const int64_t width = tensor.numel() / tensor.shape().at(0);
  int64_t best = 0;
  for (int64_t i = 1; i < width; ++i) {
    if (tensor.at(row * width + i) > tensor.at(row * width + best)) best = i;
  }
  return best;
}

bool are_scores(const Tensor& tensor, const std::vector<std::string>& classes) {
  return !classes.empty() && tensor.shape().size() == 2 && tensor.shape()[1] == std::ssize(classes);
}

bool elements_match(const Tensor& got, const Tensor& want, int64_t i, double tolerance) {
  if (!is_float(got.dtype()) && !is_float(want.dtype())) return got.integer(i) == want.integer(i);
  const double a = got.at(i), b = want.at(i);
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

namespace {

/// Number of elements in a row. A row is the part of a tensor at one index of the first dimension.
/// A scalar has one row.
int64_t row_elements(const Tensor& value) {
  const int64_t rows = value.shape().empty() ? 1 : value.shape()[0];
  return rows == 0 ? 0 : value.numel() / rows;
}

/// Appends the column names of an output to the CSV header: ",prob.0,prob.1", or ",prob" if a row
/// has one element.
void append_names(std::string& csv, const std::string& name, int64_t width) {
  for (int64_t i = 0; i < width; ++i) {
    csv += "," + quote_csv_field(width == 1 ? name : fmt::format("{}.{}", name, i));
  }
}

void append_row(std::string& csv, const Tensor& value, int64_t row) {
  const int64_t width = row_elements(value);
  for (int64_t i = 0; i < width; ++i) csv += "," + element_text(value, row * width + i);
}

const ir::Output* find_output(const Program& program, const std::string& name) {
  const auto& outputs = program.ir().main().outputs;
  const auto found = std::ranges::find(outputs, name, &ir::Output::name);
  return found == outputs.end() ? nullptr : &*found;
}

/// Throws UserError unless `name` is among `row_outputs`, the computed outputs with one row per
/// sample.
void check_row_output(const std::string& name, const Program& program,
                      const std::vector<std::string>& row_outputs) {
  if (std::ranges::find(row_outputs, name) != row_outputs.end()) return;
  const ir::Output* output = find_output(program, name);
  if (output == nullptr) {
    throw UserError("no output '" + name + "'" + did_you_mean(name, row_outputs));
  }
  const std::vector<std::string> all = per_sample_outputs(program);
  if (std::ranges::find(all, name) != all.end()) {
    throw UserError("output '" + name + "' needs a feed that the data does not have");
  }
  throw UserError("output '" + name + "' is " + output->value.type().str() +
                  ", not one row per sample");
}

/// The extension of a path in lower case, with its dot; "" if there is none.
std::string extension_of(const std::string& path) {
  return ir::lowercase(std::filesystem::path(path).extension().string());
}

}  // namespace

void check_extension(const std::string& path, const std::vector<std::string>& known,
                     const std::string& what) {
  const std::string extension = extension_of(path);
  if (extension.size() <= 1 || std::ranges::find(known, extension) != known.end()) return;
  throw UserError(fmt::format("cannot write '{}': {} written as {}, not as {}", path, what,
                              fmt::join(known, " or "), extension));
}

FileFormat format_of(const std::string& path) {
  check_extension(path, {".npy", ".csv"}, "outputs are");
  return extension_of(path) == ".csv" ? FileFormat::csv : FileFormat::npy;
}

void write_output(const std::string& path, const std::string& name, const Tensor& value) {
  if (format_of(path) == FileFormat::npy) return write_npy(path, value);
  std::string csv = "index";
  append_names(csv, name, row_elements(value));
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
    const NamedFile file = parse_named_file(text, "--output");
    path_ = file.path;
    names_ = {file.name};
  } else if (std::filesystem::path(text).extension().empty()) {
    throw UserError("--output " + text +
                    ": write FILE.npy, FILE.csv, NAME=@FILE.npy or NAME=@FILE.csv");
  }
  format_ = format_of(path_);
  check_writable(path_);
}

void OutputFile::select_outputs(const Program& program,
                                const std::vector<std::string>& row_outputs) {
  for (const std::string& name : names_) check_row_output(name, program, row_outputs);
  if (names_.empty()) names_ = row_outputs;
  if (format_ == FileFormat::csv || names_.size() == 1) return;
  std::string list;
  for (const std::string& name : names_) list += (list.empty() ? "'" : ", '") + name + "'";
  throw UserError("--output " + path_ + " holds one output, and there are " + list +
                  ": write NAME=@" + path_ + ", or a .csv");
}

void OutputFile::append(const OutputViews& outputs, const Reader& data) {
  if (format_ == FileFormat::csv) return append_csv(outputs, data);
  const Tensor& value = outputs[names_.front()];
  const int64_t before = shape_.empty() ? 0 : shape_[0];
  shape_ = value.shape();
  shape_[0] += before;
  dtype_ = value.dtype();
  bytes_.append(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
}

void OutputFile::append_csv(const OutputViews& outputs, const Reader& data) {
  if (bytes_.empty()) {
    bytes_ = "index";
    for (const std::string& name : names_) {
      append_names(bytes_, name, row_elements(outputs[name]));
      if (are_scores(outputs[name], classes_)) bytes_ += "," + quote_csv_field(name + ".class");
    }
    bytes_ += '\n';
  }
  int64_t row = 0;
  for (const int64_t sample : data.sample_indices()) {
    bytes_ += std::to_string(data.source().source_index(sample));
    for (const std::string& name : names_) {
      const Tensor& value = outputs[name];
      append_row(bytes_, value, row);
      if (!are_scores(value, classes_)) continue;
      bytes_ += "," + quote_csv_field(classes_[static_cast<size_t>(largest_in_row(value, row))]);
    }
    bytes_ += '\n';
    ++row;
  }
}

void OutputFile::write() const {
  if (format_ == FileFormat::csv) return write_file_atomically(path_, bytes_);
  write_npy(path_, Tensor::view(dtype_, shape_, const_cast<char*>(bytes_.data())));
}

}  // namespace fluid
