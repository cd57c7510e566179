#include "frontend/readers/text_scan.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "frontend/files/gz.h"
#include "frontend/files/temporary_file.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A file holds kMagic, the checksum of all following bytes, the size of the header, the header
// (JSON), and the sections: RecordIndex::blocks, TextScan::left_out, TextScan::split_of_sample.
// The digit of kMagic is the version of this format and of TextScan::learned.
constexpr uint64_t kMagic = 0x326e616373756c66;  // "fluscan2"
constexpr size_t kSections = 3;
constexpr int64_t kMaxCacheBytes = int64_t{1} << 30;
constexpr int64_t kMaxLoadedSection = int64_t{16} << 20;  ///< larger ones are read from the file
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kMinAgeNs = 2'000'000'000;
constexpr const char* kPrefix = "data-";
constexpr const char* kSuffix = ".scan";

struct FileStart {
  uint64_t magic = kMagic, checksum = 0;
  int64_t header_bytes = 0;
};
constexpr auto kStartBytes = static_cast<int64_t>(sizeof(FileStart));
constexpr auto kCheckedFrom = static_cast<int64_t>(offsetof(FileStart, header_bytes));

/// A part of a file.
class FileRange : public ByteSource {
 public:
  FileRange(std::shared_ptr<const ByteSource> file, int64_t offset, int64_t size)
      : file_(std::move(file)), offset_(offset), size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t offset, std::span<std::byte> to) const override {
    file_->read(offset_ + offset, to);
  }

 private:
  std::shared_ptr<const ByteSource> file_;
  int64_t offset_, size_;
};

std::string hash_digits_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  std::array<char, 33> digits = {};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits.data();
}

void for_each_piece(const ByteSource& bytes,
                    const std::function<void(std::span<const std::byte>)>& use) {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPieceBytes, bytes.size())));
  for (int64_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto part =
        std::span(piece).first(static_cast<size_t>(std::min(kPieceBytes, bytes.size() - at)));
    bytes.read(at, part);
    use(part);
  }
}

/// Returns a section of `file`, in memory if it is small.
std::shared_ptr<const ByteSource> section(const std::shared_ptr<const ByteSource>& file,
                                          int64_t offset, int64_t size) {
  if (size <= kMaxLoadedSection) return load_bytes(*file, offset, size);
  return std::make_shared<FileRange>(file, offset, size);
}

std::string_view chars_of(std::span<const int64_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Returns what the scan of the file of `args` depends on.
std::string key_of(const DataArgs& args, const ColumnTable* given) {
  const bool skips = args.bad_records() != BadRecords::stop;
  std::string key = args.spec() + (skips ? "\nskip\n" : "\nstop\n");
  if (given == nullptr) return key;
  ColumnTable table = *given;
  table.feeds.clear();  // those of the program that was trained
  return key + table.to_json();
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void TextScan::check_that_rows_are_left(const DataArgs& args, int64_t samples) const {
  if (samples == 0 || std::ssize(left_out) < samples) return;
  if (skipped.count < samples) args.fail("missing=drop leaves out every row");
  args.fail("all " + std::to_string(samples) + " records are bad: " + skipped.errors.front());
}

TextScanCache::TextScanCache(const DataArgs& args)
    : directory_(args.cache_dir()), opened_ns_(now_ns()) {
  std::error_code error;
  data_path_ = fs::canonical(args.path(), error).string();
  // Opening the data file reports an error. The bytes of a pipe cannot be read again.
  if (error || !fs::is_regular_file(data_path_, error)) directory_.clear();
  if (!directory_.empty()) stamp_ = stamp();
}

std::string TextScanCache::path_of(const std::string& key) const {
  return directory_ + "/" + kPrefix +
         hash_digits_of(std::to_string(kMagic) + "\n" + data_path_ + "\n" + key) + kSuffix;
}

TextScanCache::Stamp TextScanCache::stamp() const {
  struct stat info = {};
  if (stat(data_path_.c_str(), &info) != 0) return {};
  return {.size = info.st_size,
          .modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
          .inode = static_cast<int64_t>(info.st_ino)};
}

std::string TextScanCache::header_of(const TextScan& scan) const {
  const Json header = {
      {"data", {stamp_.size, stamp_.modified_ns, stamp_.inode}},
      {"records", scan.index.records},
      {"is_latin1", scan.index.is_latin1},
      {"table", scan.table},
      {"learned", scan.learned},
      {"skipped", scan.skipped.count},
      {"errors", scan.skipped.errors},
      {"splits", scan.splits},
      {"sections",
       {scan.index.blocks->size(), std::ssize(scan.left_out) * int64_t{sizeof(int64_t)},
        scan.split_of_sample != nullptr ? scan.split_of_sample->size() : 0}}};
  return header.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<TextScan> TextScanCache::find(const std::string& key) const {
  const std::string path = path_of(key);
  std::error_code error;
  if (directory_.empty() || !fs::exists(path, error) || stamp() != stamp_) return std::nullopt;
  try {
    const auto file = std::make_shared<FileBytes>(path);
    FileStart start;
    if (file->size() < kStartBytes) return std::nullopt;
    file->read(0, std::as_writable_bytes(std::span(&start, 1)));
    const bool is_whole = start.magic == kMagic && start.checksum == file->hash(kCheckedFrom);
    if (!is_whole) return std::nullopt;
    std::string text(static_cast<size_t>(start.header_bytes), '\0');
    file->read(kStartBytes, std::as_writable_bytes(std::span(text)));
    const Json header = Json::parse(text);
    const auto data = header.at("data").get<std::array<int64_t, 3>>();
    if (Stamp{data[0], data[1], data[2]} != stamp_) return std::nullopt;
    const auto sizes = header.at("sections").get<std::array<int64_t, kSections>>();
    int64_t offset = kStartBytes + start.header_bytes;
    TextScan scan{.index = {.records = header.at("records"),
                            .is_latin1 = header.at("is_latin1"),
                            .blocks = section(file, offset, sizes[0])},
                  .table = header.at("table"),
                  .learned = header.at("learned"),
                  .skipped = {.count = header.at("skipped"), .errors = header.at("errors")},
                  .splits = header.at("splits")};
    offset += sizes[0];
    scan.left_out.resize(static_cast<size_t>(sizes[1]) / sizeof(int64_t));
    file->read(offset, std::as_writable_bytes(std::span(scan.left_out)));
    offset += sizes[1];
    if (sizes[2] > 0) scan.split_of_sample = section(file, offset, sizes[2]);
    std::error_code ignored;  // the time of last use serves evict() alone
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return scan;
  } catch (const std::exception&) {  // unreadable, or the header has other keys or types
    return std::nullopt;
  }
}

void TextScanCache::store(const std::string& key, const TextScan& scan) const {
  if (directory_.empty() || stamp_ != stamp()) return;
  if (opened_ns_ - stamp_.modified_ns < kMinAgeNs) return;
  const std::string header = header_of(scan);
  const MemoryBytes header_bytes(header), left_out(chars_of(scan.left_out));
  std::vector<const ByteSource*> parts = {&header_bytes, scan.index.blocks.get(), &left_out};
  if (scan.split_of_sample != nullptr) parts.push_back(scan.split_of_sample.get());
  int64_t bytes = kStartBytes;
  for (const ByteSource* part : parts) bytes += part->size();
  if (bytes > kMaxCacheBytes) return;
  FileStart start{.header_bytes = std::ssize(header)};
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &start.header_bytes, sizeof start.header_bytes);
  for (const ByteSource* part : parts) {
    for_each_piece(*part, [&](std::span<const std::byte> piece) {
      XXH3_64bits_update(&state, piece.data(), piece.size());
    });
  }
  start.checksum = XXH3_64bits_digest(&state);
  std::error_code found_by_open;
  fs::create_directories(directory_, found_by_open);
  const std::string path = path_of(key);
  try {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(&start, 1)));
    for (const ByteSource* part : parts) {
      for_each_piece(*part, [&](std::span<const std::byte> piece) { file.write(piece); });
    }
    file.commit();
  } catch (const UserError&) {  // the next run scans again
    return;
  }
  evict(path);
}

void TextScanCache::evict(const std::string& newest) const {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  int64_t total = 0;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    total += bytes;
    entries.push_back(*it);
  }
  const auto used = [](const fs::directory_entry& entry) {
    std::error_code gone;
    return entry.last_write_time(gone);
  };
  std::ranges::sort(entries, {}, used);
  for (const fs::directory_entry& entry : entries) {
    if (total <= kMaxCacheBytes) break;
    std::error_code gone;
    total -= static_cast<int64_t>(entry.file_size(gone));
    if (entry.path() != newest) fs::remove(entry.path(), gone);
  }
}

ScannedFile scan_text_file(const DataArgs& args, const ColumnTable* given,
                           const RecordSyntax& syntax, const LearnFromRecords& learn) {
  const TextScanCache cache(args);
  const std::string key = key_of(args, given);
  const std::shared_ptr<const ByteSource> text =
      open_gz_or_plain(args.path(), std::min(kMaxLoadedBytes, args.memory_limit()));
  ScannedFile opened{.is_in_memory = text->size() <= args.memory_limit()};
  const auto open = [&](const RecordIndex& index) {
    opened.file = std::make_shared<const RecordFile>(text, index, syntax, args.path());
  };
  std::optional<TextScan> known = opened.is_in_memory ? std::nullopt : cache.find(key);
  if (known) {
    opened.scan = std::move(*known);
    open(opened.scan.index);
    return opened;
  }
  opened.scan.index = index_records(text, syntax, args.path());
  open(opened.scan.index);
  learn(opened);
  if (opened.is_in_memory) return opened;
  cache.store(key, opened.scan);
  if (given != nullptr) return opened;
  const ColumnTable learned = ColumnTable::from_json(opened.scan.table, args.path());
  cache.store(key_of(args, &learned), opened.scan);
  return opened;
}

}  // namespace fluid
