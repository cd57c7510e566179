#include "frontend/files/tar.h"

#include <algorithm>
#include <string_view>

#include "ir/error.h"

namespace fluid {
namespace {

/// Maximum size of a long name or a pax header, in bytes.
constexpr int64_t kMaxName = int64_t{1} << 16;

/// Parses a numeric header field: octal digits, or base 256 if the top bit of the first byte is
/// set. Returns -1 if the field is invalid.
int64_t header_number(std::string_view field) {
  if ((static_cast<uint8_t>(field[0]) & 0x80) != 0) {
    uint64_t value = static_cast<uint8_t>(field[0]) & 0x7f;
    for (const char c : field.substr(1)) {
      if (value >> 54 != 0) return -1;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return static_cast<int64_t>(value);
  }
  int64_t value = 0;
  bool has_digits = false;
  for (const char c : field) {
    if (c == ' ' && !has_digits) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return -1;
    value = value * 8 + (c - '0');
    has_digits = true;
  }
  return has_digits ? value : -1;
}

std::string_view until_nul(std::string_view field) { return field.substr(0, field.find('\0')); }

/// Returns whether the checksum of a header is correct. The checksum is the sum of the header's
/// bytes, with spaces in place of the checksum.
bool is_intact(std::string_view header) {
  constexpr size_t kAt = 148, kSize = 8;
  int64_t sum = ' ' * static_cast<int64_t>(kSize);
  for (size_t i = 0; i < header.size(); ++i) {
    if (i < kAt || i >= kAt + kSize) sum += static_cast<uint8_t>(header[i]);
  }
  return sum == header_number(header.substr(kAt, kSize));
}

/// Returns the value of "path" in the records "LENGTH KEY=VALUE\n" of a pax header; "" if absent.
std::string pax_path(std::string_view records) {
  constexpr std::string_view kKey = " path=";
  const size_t at = records.find(kKey);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = records.substr(at + kKey.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace

void TarReader::fail(const std::string& why) const {
  throw UserError("'" + archive_name_ + "': " + why + " at byte " + std::to_string(at_));
}

std::string TarReader::read_text(int64_t offset, int64_t size) const {
  if (size > archive_.size() - offset) fail("the archive ends within a file");
  std::string text(static_cast<size_t>(size), '\0');
  archive_.read(offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}

std::optional<TarMember> TarReader::next() {
  std::string long_name;
  while (at_ + kTarBlock <= archive_.size()) {
    const std::string header = read_text(at_, kTarBlock);
    const std::string_view fields = header;
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return std::nullopt;
    if (!is_intact(fields)) fail("damaged tar header");
    const int64_t size = header_number(fields.substr(124, 12));
    if (size < 0) fail("damaged tar header");
    const int64_t data = at_ + kTarBlock;
    if (size > archive_.size() - data) fail("the archive ends within a file");
    const char type = fields[156];
    if (type == 'L' || type == 'x') {
      if (size > kMaxName) fail("damaged tar header");
      const std::string text = read_text(data, size);
      const std::string name = type == 'L' ? std::string(until_nul(text)) : pax_path(text);
      if (!name.empty()) long_name = name;
    }
    at_ = data + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (type != '0' && type != '\0') continue;
    TarMember member{.name = long_name, .offset = data, .size = size};
    if (!member.name.empty()) return member;
    const std::string_view prefix = until_nul(fields.substr(345, 155));
    if (fields.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty()) {
      member.name = std::string(prefix) + "/";
    }
    member.name += until_nul(fields.substr(0, 100));
    return member;
  }
  return std::nullopt;
}

}  // namespace fluid
