#include "executor/fluidrun/elements.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "ir/number.h"

namespace fluid {
namespace {

/// The pieces between commas (or x), none for an empty text.
std::vector<std::string> pieces(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
T number(const std::string& text, DType dtype, const std::string& where) {
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
  for (const std::string& text : texts) values.push_back(number<T>(text, dtype, where));
  const Tensor want = Tensor::view(dtype, shape, nullptr);
  if (want.numel() != static_cast<int64_t>(values.size())) {
    throw UserError(fmt::format("{}: {} takes {} values, not {}", where, want.str(), want.numel(),
                                values.size()));
  }
  return Tensor::of<T>(shape, values).cast(dtype);
}

}  // namespace

NamedFile named_file(const std::string& text, const std::string& flag) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || text[at + 1] != '@') {
    throw UserError(flag + " " + text + ": write NAME=@FILE.npy");
  }
  return {text.substr(0, at), text.substr(at + 2)};
}

Tensor tensor_from_text(const std::string& text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError(where + ": write NAME=4xf32=1,2,3,4 or NAME=@FILE.npy");
  }
  std::vector<std::string> parts = pieces(text.substr(0, equals), 'x');
  const std::optional<DType> dtype = dtype_named(parts.back());
  if (!dtype) throw UserError(where + ": no dtype '" + parts.back() + "'");
  parts.pop_back();
  std::vector<int64_t> shape;
  for (const std::string& part : parts) shape.push_back(number<int64_t>(part, i64, where));
  const std::vector<std::string> values = pieces(text.substr(equals + 1), ',');
  return is_float(*dtype) ? tensor_of<double>(shape, *dtype, values, where)
                          : tensor_of<int64_t>(shape, *dtype, values, where);
}

std::string element_text(const Tensor& tensor, int64_t i) {
  if (!is_float(tensor.dtype())) return std::to_string(tensor.integer(i));
  return tensor.dtype() == f64 ? fmt::format("{}", tensor.at(i))
                               : fmt::format("{}", static_cast<float>(tensor.at(i)));
}

bool same_element(const Tensor& got, const Tensor& want, int64_t i, double tolerance) {
  if (!is_float(got.dtype()) && !is_float(want.dtype())) return got.integer(i) == want.integer(i);
  const double a = got.at(i), b = want.at(i);
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

}  // namespace fluid
