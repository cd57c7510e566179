#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// A column of arrays in row-major order: `samples` arrays, one after the other in `file`.
struct ArrayColumn {
  Column type;
  int64_t samples = 0;
  std::shared_ptr<const ByteSource> file;
  int64_t offset = 0;     ///< byte offset of the first array in `file`
  std::string file_name;  ///< name of the file in messages
};

/// Returns the .npy array in the `size` bytes at `offset` of `file` as a column. Reads arrays in
/// Fortran order into memory.
ArrayColumn npy_column(std::string name, std::shared_ptr<const ByteSource> file, int64_t offset,
                       int64_t size, const std::string& file_name);

/// Returns the columns as a source named `name`. The option memory=1 reads the files into memory,
/// memory=0 reads each sample from its file. Without the option, files of less than 64 MiB are read
/// into memory. Throws UserError for columns of different lengths.
SampleSourcePtr make_array_source(std::vector<ArrayColumn> columns, const DataArgs& args,
                                  const std::string& name);

}  // namespace fluid
