#include "frontend/files/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "frontend/files/mapped_file.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr int64_t kMaxRank = 32;

constexpr std::array<std::pair<DType, std::string_view>, 8> kDescrs = {{{DType::f64, "<f8"},
                                                                        {DType::f32, "<f4"},
                                                                        {DType::f16, "<f2"},
                                                                        {DType::i64, "<i8"},
                                                                        {DType::i32, "<i4"},
                                                                        {DType::u8, "|u1"},
                                                                        {DType::i8, "|i1"},
                                                                        {DType::boolean, "|b1"}}};

struct WidenedType {
  std::string_view descr;
  NpyInteger stored;
  DType dtype;
};
constexpr std::array<WidenedType, 3> kWidened = {{{"<i2", NpyInteger::i16, DType::i32},
                                                  {"<u2", NpyInteger::u16, DType::i32},
                                                  {"<u4", NpyInteger::u32, DType::i64}}};

template <class Stored, class Value>
void widen(std::span<const std::byte> from, std::byte* to) {
  for (size_t at = 0; at < from.size(); at += sizeof(Stored)) {
    Stored stored;
    std::memcpy(&stored, from.data() + at, sizeof stored);
    const auto value = static_cast<Value>(stored);
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  }
}

/// Entries of the header. An entry is nullopt until it has been parsed.
struct HeaderFields {
  std::optional<DType> dtype;
  NpyInteger stored = NpyInteger::none;
  std::optional<bool> fortran;
  std::optional<std::vector<int64_t>> shape;
};

/// Parses the header, which is a Python dict literal:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source_name)
      : text_(text), source_name_(source_name) {}

  HeaderFields parse() {
    HeaderFields header;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !header.dtype) {
        header.dtype = dtype(header.stored);
      } else if (key == "fortran_order" && !header.fortran) {
        header.fortran = boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = shape();
      } else {
        fail("the header has an unexpected key " + ir::quote(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("the header has trailing characters");
    if (!header.dtype || !header.fortran || !header.shape) {
      fail("the header needs descr, fortran_order and shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw UserError(source_name_ + ": " + text);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("the header is malformed: no '" + std::string(1, c) + "' where expected");
  }
  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() && text_[at_] == '"' ? '"' : '\'';
    expect(quote);
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("the header is malformed: a string does not end");
    const std::string_view content = text_.substr(at_, end - at_);
    at_ = end + 1;
    return content;
  }
  DType dtype(NpyInteger& stored) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') fail("structured arrays are not read");
    const std::string_view descr = quoted();
    for (const auto& [dtype, name] : kDescrs) {
      if (descr == name) return dtype;
    }
    for (const WidenedType& type : kWidened) {
      if (descr != type.descr) continue;
      stored = type.stored;
      return type.dtype;
    }
    fail("dtype '" + ir::escape_control_characters(descr) +
         "' is not read; use little-endian f8, f4, f2, i8, i4, i2, u4, u2, u1 or b1");
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    }
    fail("fortran_order is neither True nor False");
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t extent = -1;
      const char* end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc() || extent < 0) fail("the shape is malformed");
      at_ = static_cast<size_t>(stop - text_.data());
      dims.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (static_cast<int64_t>(dims.size()) > kMaxRank) fail("more than 32 dimensions");
    int64_t bytes = sizeof(double);
    for (int64_t extent : dims) {
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) {
        fail("the shape is larger than a 64-bit size");
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& source_name_;
  size_t at_ = 0;
};

/// Copies the elements of a column-major (Fortran order) array, of `width` bytes each, to `out` in
/// row-major order.
void copy_fortran(const char* source, const std::vector<int64_t>& shape, int64_t width,
                  std::byte* out) {
  std::vector<int64_t> stride(shape.size()), index(shape.size());
  int64_t step = width;
  for (size_t d = 0; d < shape.size(); ++d) {
    stride[d] = step;
    step *= shape[d];
  }
  const int64_t numel = step / width;
  for (int64_t i = 0, from = 0; i < numel; ++i) {
    std::memcpy(out + i * width, source + from, static_cast<size_t>(width));
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

int64_t NpyHeader::element_bytes() const {
  if (stored == NpyInteger::none) return size_of(dtype);
  return stored == NpyInteger::u32 ? sizeof(uint32_t) : sizeof(uint16_t);
}

int64_t NpyHeader::data_bytes() const {
  return Tensor::view(dtype, shape, nullptr).numel() * element_bytes();
}

void widen_npy(NpyInteger stored, std::span<const std::byte> from, std::byte* to) {
  switch (stored) {
    case NpyInteger::none:
      if (!from.empty()) std::memcpy(to, from.data(), from.size());
      break;
    case NpyInteger::i16:
      widen<int16_t, int32_t>(from, to);
      break;
    case NpyInteger::u16:
      widen<uint16_t, int32_t>(from, to);
      break;
    case NpyInteger::u32:
      widen<uint32_t, int64_t>(from, to);
      break;
  }
}

NpyHeader parse_npy_header(std::string_view start, const std::string& source_name) {
  const auto fail = [&](const std::string& text) { throw UserError(source_name + ": " + text); };
  if (!start.starts_with(kMagic)) fail("not a .npy file");
  if (start.size() < kMagic.size() + 4) fail("cut off in the header");
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(start[kMagic.size() + i]); };
  const int major = byte(0);
  if (major < 1 || major > 3) fail("version " + std::to_string(major) + " of .npy is not read");
  const size_t begin = kMagic.size() + (major == 1 ? 4 : 6);
  if (start.size() < begin) fail("cut off in the header");
  size_t length = byte(2) | static_cast<size_t>(byte(3)) << 8;
  if (major > 1) length |= static_cast<size_t>(byte(4)) << 16 | static_cast<size_t>(byte(5)) << 24;
  if (length > start.size() - begin) fail("cut off in the header");
  const HeaderFields fields = HeaderParser(start.substr(begin, length), source_name).parse();
  return {.dtype = *fields.dtype,
          .stored = fields.stored,
          .shape = *fields.shape,
          .fortran_order = *fields.fortran,
          .data_offset = static_cast<int64_t>(begin + length)};
}

NpyHeader parse_npy_header(std::string_view start, int64_t size, const std::string& source_name) {
  NpyHeader header = parse_npy_header(start, source_name);
  const int64_t bytes = size - header.data_offset;
  if (header.data_bytes() != bytes) {
    throw UserError(source_name + ": holds " + std::to_string(bytes) + " bytes of data, but " +
                    Tensor::view(header.dtype, header.shape, nullptr).str() + " takes " +
                    std::to_string(header.data_bytes()));
  }
  return header;
}

Tensor parse_npy(std::string_view bytes, const std::string& source_name) {
  const NpyHeader header = parse_npy_header(bytes, static_cast<int64_t>(bytes.size()), source_name);
  const std::string_view data = bytes.substr(static_cast<size_t>(header.data_offset));
  if (header.dtype == DType::boolean &&
      std::any_of(data.begin(), data.end(), [](char c) { return c != 0 && c != 1; })) {
    throw UserError(source_name + ": holds a bool that is neither 0 nor 1");
  }
  Tensor tensor(header.dtype, header.shape);
  auto* to = static_cast<std::byte*>(tensor.data());
  std::span<const std::byte> elements = std::as_bytes(std::span(data));
  std::vector<std::byte> row_major;
  if (header.fortran_order) {
    row_major.resize(data.size());
    copy_fortran(data.data(), header.shape, header.element_bytes(), row_major.data());
    elements = row_major;
  }
  widen_npy(header.stored, elements, to);
  return tensor;
}

Tensor read_npy(const std::string& path) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), path);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string_view descr;
  for (const auto& [dtype, name] : kDescrs) {
    if (dtype == tensor.dtype()) descr = name;
  }
  if (descr.empty()) throw UserError(path + ": NumPy has no bf16; cast to f32 before saving");
  std::string text = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : tensor.shape()) text += std::to_string(extent) + ",";
  if (tensor.shape().size() > 1) text.pop_back();
  text += "), }";
  const size_t prefix = kMagic.size() + 4;
  text.resize((prefix + text.size() + kAlignment) / kAlignment * kAlignment - prefix - 1, ' ');
  text += '\n';
  const char version[] = {1, 0, static_cast<char>(text.size() & 0xff),
                          static_cast<char>(text.size() >> 8)};
  AtomicFile file(path);
  file.write(kMagic);
  file.write(std::string_view(version, sizeof version));
  file.write(text);
  file.write({static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  file.commit();
}

}  // namespace fluid
