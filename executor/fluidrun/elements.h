#pragma once

#include <cstdint>
#include <string>

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

}  // namespace fluid
