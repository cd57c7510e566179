#include "frontend/files/zip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr uint32_t kEndOfDirectory = 0x06054b50, kEndOfDirectory64 = 0x06064b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr int64_t kEndBytes = 22, kLocator64Bytes = 20, kEnd64Bytes = 56, kEntryBytes = 46;
constexpr int64_t kLocalBytes = 30, kMaxComment = 65535;
/// Value of a 32-bit field whose actual value is in the ZIP64 extra field.
constexpr uint64_t kZip64Placeholder = 0xffffffff;
constexpr uint16_t kZip64Field = 1;

constexpr int64_t kPartBytes = int64_t{256} << 10;

[[noreturn]] void fail_damaged(const std::string& archive_name) {
  throw UserError("'" + archive_name + "': damaged ZIP archive");
}

/// Reads little-endian integers from a byte range of an archive.
class ZipBytes {
 public:
  ZipBytes(const ByteSource& archive, int64_t offset, int64_t size, const std::string& name)
      : name_(name) {
    if (offset < 0 || size < 0 || offset > archive.size() || size > archive.size() - offset) fail();
    bytes_.resize(static_cast<size_t>(size));
    archive.read(offset, {reinterpret_cast<std::byte*>(bytes_.data()), bytes_.size()});
  }
  template <int kBytes>
  uint64_t at(int64_t offset) const {
    const std::string field = text(offset, kBytes);
    uint64_t value = 0;
    for (int i = kBytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(field[i]);
    return value;
  }
  int64_t size_at(int64_t offset, int width = 4) const {
    const uint64_t value = width == 4 ? at<4>(offset) : at<8>(offset);
    if (value > uint64_t{1} << 62) fail();
    return static_cast<int64_t>(value);
  }
  std::string text(int64_t offset, int64_t size) const {
    if (offset < 0 || offset + size > static_cast<int64_t>(bytes_.size())) fail();
    return bytes_.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
  }
  const std::string& bytes() const { return bytes_; }
  [[noreturn]] void fail() const { fail_damaged(name_); }

 private:
  const std::string& name_;
  std::string bytes_;
};

/// Byte range of the central directory in the archive.
struct Directory {
  int64_t offset = 0, size = 0;
};

Directory find_directory(const ByteSource& archive, const std::string& name) {
  const int64_t tail_bytes = std::min(archive.size(), kEndBytes + kMaxComment);
  const ZipBytes tail(archive, archive.size() - tail_bytes, tail_bytes, name);
  const size_t end = tail.bytes().rfind(std::string("PK\5\6", 4));
  if (end == std::string::npos) throw UserError("'" + name + "' is not a ZIP archive");
  const auto at = static_cast<int64_t>(end);
  if (tail.at<4>(at) != kEndOfDirectory) tail.fail();
  if (tail.at<4>(at + 16) != kZip64Placeholder && tail.at<2>(at + 10) != 0xffff) {
    return {tail.size_at(at + 16), tail.size_at(at + 12)};
  }
  const int64_t locator = archive.size() - tail_bytes + at - kLocator64Bytes;
  const ZipBytes end64(archive, ZipBytes(archive, locator, kLocator64Bytes, name).size_at(8, 8),
                       kEnd64Bytes, name);
  if (end64.at<4>(0) != kEndOfDirectory64) end64.fail();
  return {end64.size_at(48, 8), end64.size_at(40, 8)};
}

/// Searches the extra fields [begin, end) of `directory` for a ZIP64 field. If there is one,
/// replaces each placeholder in `member` with its 64-bit value.
void read_zip64_field(const ZipBytes& directory, int64_t begin, int64_t end, ZipMember& member) {
  for (int64_t at = begin; at + 4 <= end;) {
    const auto size = static_cast<int64_t>(directory.at<2>(at + 2));
    int64_t value = at + 4;
    if (directory.at<2>(at) == kZip64Field) {
      for (int64_t* field : {&member.size, &member.stored_size, &member.header_offset}) {
        if (*field != static_cast<int64_t>(kZip64Placeholder)) continue;
        *field = directory.size_at(value, 8);
        value += 8;
      }
    }
    at += 4 + size;
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const ByteSource& archive,
                                          const std::string& archive_name) {
  const auto [offset, size] = find_directory(archive, archive_name);
  const ZipBytes directory(archive, offset, size, archive_name);
  std::vector<ZipMember> members;
  for (int64_t at = 0; at < size;) {
    if (directory.at<4>(at) != kDirectoryEntry) directory.fail();
    const auto method = directory.at<2>(at + 10);
    const auto name_bytes = static_cast<int64_t>(directory.at<2>(at + 28));
    const auto extra_bytes = static_cast<int64_t>(directory.at<2>(at + 30));
    const auto comment_bytes = static_cast<int64_t>(directory.at<2>(at + 32));
    ZipMember member{.name = directory.text(at + kEntryBytes, name_bytes),
                     .deflated = method == Z_DEFLATED,
                     .header_offset = directory.size_at(at + 42),
                     .stored_size = directory.size_at(at + 20),
                     .size = directory.size_at(at + 24),
                     .crc = static_cast<uint32_t>(directory.at<4>(at + 16))};
    const int64_t extra = at + kEntryBytes + name_bytes;
    read_zip64_field(directory, extra, extra + extra_bytes, member);
    const bool encrypted = (directory.at<2>(at + 8) & 1) != 0;
    if (encrypted || (method != 0 && !member.deflated)) {
      throw UserError("'" + archive_name + "': member '" + member.name +
                      "' is encrypted or compressed by another method than deflate");
    }
    members.push_back(std::move(member));
    at = extra + extra_bytes + comment_bytes;
  }
  return members;
}

int64_t zip_data_offset(const ByteSource& archive, const ZipMember& member,
                        const std::string& archive_name) {
  const ZipBytes header(archive, member.header_offset, kLocalBytes, archive_name);
  if (header.at<4>(0) != kLocalHeader) header.fail();
  const int64_t offset = member.header_offset + kLocalBytes +
                         static_cast<int64_t>(header.at<2>(26) + header.at<2>(28));
  if (member.stored_size > archive.size() - offset) header.fail();
  return offset;
}

void check_stored_zip_member(const ByteSource& archive, const ZipMember& member,
                             const std::string& archive_name) {
  const int64_t begin = zip_data_offset(archive, member, archive_name);
  std::vector<std::byte> part(kPartBytes);
  uLong crc = 0;
  for (int64_t read = 0; read < member.size;) {
    const auto count = static_cast<size_t>(std::min(kPartBytes, member.size - read));
    archive.read(begin + read, std::span(part).first(count));
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), count);
    read += static_cast<int64_t>(count);
  }
  if (crc == member.crc) return;
  throw UserError("'" + archive_name + "': member '" + member.name +
                  "' is damaged: its CRC-32 differs");
}

void inflate_zip_member(const ByteSource& archive, const ZipMember& member,
                        const std::string& archive_name,
                        const std::function<void(std::span<const std::byte>)>& callback) {
  const int64_t begin = zip_data_offset(archive, member, archive_name);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::vector<std::byte> in(kPartBytes), out(kPartBytes);
  int64_t read = 0, inflated = 0;
  uLong crc = 0;
  int status = Z_OK;
  while (status == Z_OK && inflated <= member.size) {
    if (stream.avail_in == 0) {
      const auto count =
          static_cast<size_t>(std::min<int64_t>(kPartBytes, member.stored_size - read));
      archive.read(begin + read, std::span(in).first(count));
      read += static_cast<int64_t>(count);
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const std::span part = std::span(out).first(out.size() - stream.avail_out);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
    inflated += std::ssize(part);
    if (!part.empty()) callback(part);
  }
  const bool intact = status == Z_STREAM_END && inflated == member.size && crc == member.crc;
  if (!intact) fail_damaged(archive_name);
}

}  // namespace fluid
