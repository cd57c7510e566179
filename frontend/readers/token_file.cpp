#include "frontend/readers/token_file.h"

#include <filesystem>
#include <sstream>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr uint64_t kTokensMagic = 0x32736e656b6f7466;  // "ftokens2"

struct Footer {
  int64_t count = 0, skipped = 0, error_bytes = 0;
  uint64_t key = 0;
  uint64_t magic = kTokensMagic;
};
constexpr auto kFooterBytes = static_cast<int64_t>(sizeof(Footer));

}  // namespace

void TokenFileWriter::append(std::span<const int32_t> ids) {
  file_.write(std::as_bytes(ids));
  count_ += std::ssize(ids);
}

void TokenFileWriter::commit(const SkippedRecords& skipped) {
  std::string errors;
  for (const std::string& error : skipped.errors) errors += error + "\n";
  file_.write(std::as_bytes(std::span(errors)));
  const Footer footer{
      .count = count_, .skipped = skipped.count, .error_bytes = std::ssize(errors), .key = key_};
  file_.write(std::as_bytes(std::span(&footer, 1)));
  file_.commit();
}

std::optional<Tokens> open_token_file(const std::string& path, uint64_t key) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto file = std::make_shared<FileBytes>(path);
  Footer footer{.magic = 0};
  const int64_t bytes = file->size() - kFooterBytes;  // of ids and errors
  if (bytes >= 0) file->read(bytes, std::as_writable_bytes(std::span(&footer, 1)));
  const auto id_bytes = static_cast<int64_t>(sizeof(int32_t));
  const bool is_whole = footer.magic == kTokensMagic && footer.count >= 0 &&
                        footer.error_bytes >= 0 && footer.error_bytes <= bytes &&
                        (bytes - footer.error_bytes) / id_bytes == footer.count &&
                        (bytes - footer.error_bytes) % id_bytes == 0;
  if (!is_whole) {
    throw UserError("'" + path + "' is not a file of tokens, or is damaged; it is not replaced");
  }
  if (footer.key != key) return std::nullopt;
  std::string errors(static_cast<size_t>(footer.error_bytes), '\0');
  file->read(bytes - footer.error_bytes, std::as_writable_bytes(std::span(errors)));
  SkippedRecords skipped{.count = footer.skipped};
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) skipped.errors.push_back(line);
  return Tokens{Symbols<int32_t>(std::move(file), footer.count), std::move(skipped)};
}

}  // namespace fluid
