#include "frontend/readers/spool.h"

#include <algorithm>
#include <utility>

#include "frontend/files/temporary_file.h"
#include "frontend/readers/array_source.h"

namespace fluid {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;  // bytes of samples per write

/// Number of samples in a chunk.
int64_t chunk_of(const std::vector<Column>& columns) {
  int64_t sample = 1;
  for (const Column& column : columns) sample += column.bytes();
  return std::max<int64_t>(1, kChunkBytes / sample);
}

}  // namespace

SampleSourcePtr spool(SampleStream& stream, const StreamPass& pass, int64_t limit,
                      const DataArgs& args) {
  stream.open(pass);
  const std::vector<Column>& columns = stream.columns();
  std::vector<TemporaryFile> files(columns.size());
  const int64_t chunk = chunk_of(columns);
  std::vector<Tensor> buffers = sample_buffers(columns, chunk);
  int64_t samples = 0;
  for (bool more = true; more;) {
    int64_t rows = 0;
    while (more && rows < chunk) {
      more = samples < limit && stream.next(sample_addresses(buffers, rows));
      if (more) ++rows, ++samples;
    }
    for (size_t c = 0; c < files.size(); ++c) {
      files[c].append({static_cast<const std::byte*>(buffers[c].data()),
                       static_cast<size_t>(rows * columns[c].bytes())});
    }
  }
  std::vector<ArrayColumn> arrays;
  for (size_t c = 0; c < files.size(); ++c) {
    const std::string path = files[c].path();
    arrays.push_back(
        {.type = columns[c], .samples = samples, .file = files[c].release(), .file_name = path});
  }
  return make_array_source(std::move(arrays), args, stream.name());
}

}  // namespace fluid
