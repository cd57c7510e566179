#include <cstring>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kLength = 256;
constexpr double kHeldOut = 0.1;  // fraction of the text that is held out, at its end

/// Returns the held-out end of the text if `held_out`, else the rest of the text.
std::string_view part_of(std::string_view text, bool held_out) {
  const auto train = static_cast<size_t>(static_cast<double>(text.size()) * (1 - kHeldOut));
  return held_out ? text.substr(train) : text.substr(0, train);
}

/// Splits `text` into `count` windows of `length` bytes whose starts are `stride` bytes apart. The
/// target of a byte is the next byte.
Dataset windows(std::string_view text, int64_t count, int64_t length, int64_t stride) {
  Dataset data;
  const auto column = [&](const char* name, int64_t offset) {
    Tensor bytes(DType::u8, {count, length});
    const std::span<uint8_t> to = bytes.as<uint8_t>();
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to.data() + i * length, text.data() + i * stride + offset,
                  static_cast<size_t>(length));
    }
    data.columns.emplace_back(name, std::move(bytes));
  };
  column("text", 0);
  column("target", 1);
  return data;
}

Dataset load_text(const DataArgs& args) {
  const bool held_out = args.get_choice("split", "train", {"train", "val", "test"}) != "train";
  const int64_t length = args.get_integer("length", kLength, 1);
  const int64_t stride = args.get_integer("stride", length, 1);
  const std::string text = read_maybe_gz(args.path());
  const std::string_view part = part_of(text, held_out);
  if (static_cast<int64_t>(part.size()) <= length) {
    args.fail("'" + args.path() + "': the split has " + std::to_string(part.size()) +
              " bytes, but a window of length=" + std::to_string(length) + " needs one more than " +
              "its length");
  }
  const int64_t count = (static_cast<int64_t>(part.size()) - 1 - length) / stride + 1;
  if (count > kMaxDataBytes / length) {
    args.fail("'" + args.path() + "': " + std::to_string(count) + " windows of " +
              std::to_string(length) + " bytes are too large; use a larger stride=");
  }
  return windows(part, count, length, stride);
}

}  // namespace

DataKind text_kind() {
  return {.name = "text",
          .usage = "text:FILE",
          .doc =
              "windows of a text file, as bytes: columns text u8[length] and target u8[length], "
              "the bytes that follow those of text; split=val and split=test are the last tenth of "
              "the file; length=N bytes (256), stride=N bytes from window to window (length)",
          .options = {"length", "split", "stride"},
          .open = in_memory(load_text)};
}

}  // namespace fluid
