// The kinds of data "npy" and "npz": NumPy arrays.

#include "frontend/files/temporary_file.h"
#include "frontend/files/zip.h"
#include "frontend/readers/array_source.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

SampleSourcePtr open_npy(const DataArgs& args) {
  std::vector<ArrayColumn> columns;
  std::string_view left = args.path();
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) args.fail("write npy:COLUMN=FILE,COLUMN=FILE");
    const std::string path(item.substr(equals + 1));
    const auto file = std::make_shared<FileBytes>(path);
    columns.push_back(npy_column(std::string(item.substr(0, equals)), file, 0, file->size(), path,
                                 args.memory_limit()));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
  }
  return make_array_source(std::move(columns), args, "npy:" + args.path());
}

/// Decompresses a member of an archive: into memory if it has at most `memory_limit` bytes, else
/// into a temporary file.
std::shared_ptr<const ByteSource> inflate(const ByteSource& archive, const ZipMember& member,
                                          const std::string& archive_name, int64_t memory_limit) {
  SpillBuffer bytes(memory_limit);
  inflate_zip_member(archive, member, archive_name,
                     [&](std::span<const std::byte> part) { bytes.append(part); });
  return bytes.release();
}

SampleSourcePtr open_npz(const DataArgs& args) {
  const auto archive = std::make_shared<FileBytes>(args.path());
  const std::vector<ZipMember> members = read_zip_directory(*archive, args.path());
  int64_t size = 0;
  for (const ZipMember& member : members) size += member.size;
  const int64_t memory_limit = args.get_flag("memory", size < kMaxLoadedBytes) ? size : 0;
  std::vector<ArrayColumn> columns;
  for (const ZipMember& member : members) {
    if (!member.name.ends_with(".npy")) continue;
    const std::string column = member.name.substr(0, member.name.size() - 4);
    const std::string where = args.path() + "/" + member.name;
    if (!member.deflated) {
      columns.push_back(npy_column(column, archive, zip_data_offset(*archive, member, args.path()),
                                   member.size, where, memory_limit));
      columns.back().check = [archive, member, name = args.path()] {
        check_stored_zip_member(*archive, member, name);
      };
      continue;
    }
    columns.push_back(npy_column(column, inflate(*archive, member, args.path(), memory_limit), 0,
                                 member.size, where, memory_limit));
  }
  if (columns.empty()) throw UserError("'" + args.path() + "' holds no .npy file");
  return make_array_source(std::move(columns), args, "npz:" + args.path());
}

}  // namespace

DataKind npy_kind() {
  return {.name = "npy",
          .usage = "npy:COLUMN=FILE,COLUMN=FILE",
          .doc =
              "one .npy file a column, dimension 0 counts the samples; memory=0|1: read into "
              "memory (default: files below 64 MiB), else each sample from disk",
          .splits_rows = true,
          .options = {"memory"},
          .open_source = open_npy};
}

DataKind npz_kind() {
  return {.name = "npz",
          .usage = "npz:FILE",
          .doc =
              "the arrays of numpy.savez, one a column, like npy; those of savez_compressed are "
              "inflated to memory or to temporary files",
          .splits_rows = true,
          .options = {"memory"},
          .open_source = open_npz};
}

}  // namespace fluid
