#include "frontend/readers/token_file.h"

#include <filesystem>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr uint64_t kTokensMagic = 0x31736e656b6f7466;  // "ftokens1"

struct Footer {
  int64_t count = 0;
  uint64_t key = 0;
  uint64_t magic = kTokensMagic;
};
constexpr auto kFooterBytes = static_cast<int64_t>(sizeof(Footer));

}  // namespace

void TokenFileWriter::append(std::span<const int32_t> ids) {
  file_.write(std::as_bytes(ids));
  count_ += std::ssize(ids);
}

void TokenFileWriter::commit() {
  const Footer footer{.count = count_, .key = key_};
  file_.write(std::as_bytes(std::span(&footer, 1)));
  file_.commit();
}

std::optional<Symbols<int32_t>> open_token_file(const std::string& path, uint64_t key) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto file = std::make_shared<FileBytes>(path);
  Footer footer{.magic = 0};
  if (file->size() >= kFooterBytes) {
    file->read(file->size() - kFooterBytes, std::as_writable_bytes(std::span(&footer, 1)));
  }
  const auto id_bytes = static_cast<int64_t>(sizeof(int32_t));
  if (footer.magic != kTokensMagic || footer.count < 0 ||
      (file->size() - kFooterBytes) / id_bytes != footer.count ||
      (file->size() - kFooterBytes) % id_bytes != 0) {
    throw UserError("'" + path + "' is not a file of tokens, or is damaged; it is not replaced");
  }
  if (footer.key != key) return std::nullopt;
  return Symbols<int32_t>(std::move(file), footer.count);
}

}  // namespace fluid
