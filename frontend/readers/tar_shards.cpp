// The kind of data "tar": images in tar archives, in the layout of WebDataset.

#include <algorithm>
#include <filesystem>

#include "frontend/files/open_files.h"
#include "frontend/files/tar.h"
#include "frontend/images/decode.h"
#include "frontend/readers/image_files.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

/// Maximum size in bytes of a .cls file, which holds an integer.
constexpr int64_t kMaxClassBytes = 32;

/// Returns the shards at `path`: a file, or the *.tar files of a directory in sorted order.
std::vector<std::string> shards_at(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> shards;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".tar") shards.push_back(entry.path().string());
  }
  if (shards.empty()) throw UserError("'" + path + "' has no .tar file");
  std::ranges::sort(shards);
  return shards;
}

/// Returns the path of a member up to the first dot of its file name.
std::string key_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.substr(0, path.find('.', slash == std::string::npos ? 0 : slash + 1));
}

class TarShards : public ImageFiles {
 public:
  TarShards(const std::string& path, BadRecords bad_records)
      : name_(path), bad_records_(bad_records) {
    for (const std::string& shard : shards_at(path)) {
      skip_if_bad([&] { add_shard(shard); });
    }
    if (samples_.empty()) {
      throw UserError(skipped_.count > 0
                          ? "no sample of '" + path + "' can be read: " + skipped_.errors.front()
                          : "'" + path + "' holds no sample: KEY.jpg and KEY.cls");
    }
    for (int64_t label = 0; label <= most_label_; ++label)
      classes_.push_back(std::to_string(label));
    set_image_type();
  }

  int64_t samples() const override { return static_cast<int64_t>(samples_.size()); }
  std::string name() const override { return name_; }
  std::string location(int64_t sample) const override {
    const Sample& at = samples_.at(static_cast<size_t>(sample));
    const std::string& shard = shards_[static_cast<size_t>(at.shard)];
    const std::optional<TarMember> member =
        TarReader(*files_.open(shard), shard, at.offset - kTarBlock).next();
    return "'" + shard + "/" + (member ? member->name : "") + "'";
  }
  std::vector<std::string> classes(const std::string& column) const override {
    return column == kLabelColumn ? classes_ : std::vector<std::string>();
  }
  SkippedRecords skipped() const override { return skipped_; }
  int64_t resident_bytes() const override {
    return samples() * static_cast<int64_t>(sizeof(Sample));
  }

 protected:
  int64_t label(int64_t sample) const override {
    return samples_.at(static_cast<size_t>(sample)).label;
  }
  Image decode(int64_t sample) const override {
    const Sample& at = samples_.at(static_cast<size_t>(sample));
    const std::string& shard = shards_[static_cast<size_t>(at.shard)];
    std::string bytes(static_cast<size_t>(at.size), '\0');
    files_.open(shard)->read(at.offset, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    try {
      return decode_image(bytes, shard);
    } catch (const UserError&) {  // reads the header of the image again, to name it
      const std::string quoted = location(sample);
      return decode_image(bytes, quoted.substr(1, quoted.size() - 2));
    }
  }

 private:
  struct Sample {
    int64_t offset = 0, size = 0;  // byte offset of the image in the shard, and its size
    int32_t shard = 0, label = -1;
  };

  /// Calls `add`. If `add` throws UserError, adds the error to skipped_. With BadRecords::stop,
  /// rethrows the error instead.
  template <class F>
  void skip_if_bad(F add) {
    try {
      add();
    } catch (const UserError& error) {
      if (bad_records_ == BadRecords::stop) throw;
      skipped_.add(error.what());
    }
  }

  /// Adds the samples of a shard. The files of a sample are consecutive and have the same key,
  /// key_of(). If the archive is damaged, adds the samples before the damage and throws UserError.
  void add_shard(const std::string& path) {
    shards_.push_back(path);
    const std::shared_ptr<const FileBytes> file = files_.open(path);
    TarReader reader(*file, path);
    std::string key;
    Sample sample;
    std::optional<TarMember> label;
    const auto finish_sample = [&] {
      skip_if_bad([&] { add_sample(key, sample, label); });
      sample = {};
      label.reset();
    };
    try {
      while (const std::optional<TarMember> member = reader.next()) {
        const std::string member_key = key_of(member->name);
        if (member_key != key) finish_sample();
        key = member_key;
        if (is_image_path(member->name)) {
          sample.offset = member->offset;
          sample.size = member->size;
        } else if (member->name.ends_with(".cls")) {
          label = member;
        }
      }
    } catch (const UserError&) {
      if (sample.size > 0 && label) finish_sample();
      throw;
    }
    finish_sample();
  }

  void add_sample(const std::string& key, Sample sample, const std::optional<TarMember>& label) {
    if (sample.size == 0 && !label) return;
    if (sample.size == 0 || !label) {
      const char* missing = sample.size == 0 ? "an image (.jpg, .png)" : "a label (.cls)";
      throw UserError("'" + shards_.back() + "': sample '" + key + "' lacks " + missing);
    }
    sample.shard = static_cast<int32_t>(shards_.size() - 1);
    sample.label = read_class(*label);
    samples_.push_back(sample);
    most_label_ = std::max<int64_t>(most_label_, sample.label);
  }

  int32_t read_class(const TarMember& member) const {
    std::string text(static_cast<size_t>(std::min(member.size, kMaxClassBytes)), '\0');
    files_.open(shards_.back())
        ->read(member.offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
    text.resize(text.find_last_not_of(" \r\n") + 1);
    const std::optional<int32_t> label = parse_number<int32_t>(text);
    if (label && *label >= 0 && *label < kMaxClasses) return *label;
    throw UserError("'" + shards_.back() + "': '" + member.name + "' holds no class number");
  }

  static constexpr int32_t kMaxClasses = 1 << 20;

  std::string name_;
  BadRecords bad_records_;
  SkippedRecords skipped_;
  std::vector<std::string> shards_;  ///< paths
  mutable OpenFiles files_;
  std::vector<Sample> samples_;
  std::vector<std::string> classes_;
  int64_t most_label_ = -1;
};

}  // namespace

DataKind tar_kind() {
  return {.name = "tar",
          .usage = "tar:PATH",
          .doc =
              "a tar archive, or a directory of *.tar files, in the layout of WebDataset: KEY.jpg "
              "or .png and KEY.cls, an integer; columns image and label like those of folder",
          .splits_rows = true,
          .open_source = [](const DataArgs& args) -> SampleSourcePtr {
            return std::make_shared<TarShards>(args.path(), args.bad_records());
          }};
}

}  // namespace fluid
