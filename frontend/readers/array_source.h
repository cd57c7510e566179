#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"
#include "frontend/files/npy.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// A column of arrays in row-major order: `samples` arrays, one after the other in `file`.
struct ArrayColumn {
  Column type;
  int64_t samples = 0;
  std::shared_ptr<const ByteSource> file;
  int64_t offset = 0;                    ///< byte offset of the first array in `file`
  std::string file_name;                 ///< name of the file in messages
  NpyInteger stored = NpyInteger::none;  ///< type in the file, if it is widened to type.dtype
  /// Throws UserError if a checksum of the array is wrong; null: it has none.
  std::function<void()> check = nullptr;

  int64_t sample_bytes() const;  ///< size in bytes of a sample in `file`
};

/// Returns the .npy array in the `size` bytes at `offset` of `file` as a column. Copies an array in
/// Fortran order, row-major: to memory if it has at most `memory_limit` bytes, else to a temporary
/// file.
ArrayColumn npy_column(std::string name, std::shared_ptr<const ByteSource> file, int64_t offset,
                       int64_t size, const std::string& file_name, int64_t memory_limit);

/// Returns the columns as a source named `name`. The option memory=1 reads the files into memory,
/// memory=0 reads each sample from its file. Without the option, files of less than 64 MiB are read
/// into memory, and checked by ArrayColumn::check. Throws UserError for columns of different
/// lengths.
SampleSourcePtr make_array_source(std::vector<ArrayColumn> columns, const DataArgs& args,
                                  const std::string& name);

}  // namespace fluid
