// The kind of data "folder": image files in a directory for each class.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "frontend/files/byte_source.h"
#include "frontend/images/decode.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/image_files.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderKind = "folder";

/// Returns the sorted names of the entries of `directory` that are directories, or image files.
/// Images of unsupported formats are among them, so that the user learns why they are not read.
std::vector<std::string> sorted_entries(const std::string& directory, bool directories) {
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  if (error) throw UserError("'" + directory + "' is not a directory that can be read");
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    const bool is_listed =
        directories ? entry.is_directory() : is_image_path(name) || is_unsupported_image_path(name);
    if (is_listed) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// Appends the paths of the image files below `directory`, relative to `root`, in sorted order.
void append_images(const std::string& root, const std::string& directory,
                   std::vector<std::string>& paths) {
  for (const std::string& name : sorted_entries(root + "/" + directory, false)) {
    paths.push_back(directory + "/" + name);
  }
  for (const std::string& name : sorted_entries(root + "/" + directory, true)) {
    append_images(root, directory + "/" + name, paths);
  }
}

class ImageFolder : public ImageFiles {
 public:
  explicit ImageFolder(const DataArgs& args) : root_(args.path()) {
    std::vector<std::string> names;
    std::vector<size_t> ends;  // end index of each class in paths_
    for (const std::string& name : sorted_entries(root_, true)) {
      const size_t before = paths_.size();
      append_images(root_, name, paths_);
      if (paths_.size() == before) continue;
      names.push_back(name);
      ends.push_back(paths_.size());
    }
    const ColumnTableContext context(args, kFolderKind);
    if (paths_.empty()) {
      throw UserError("'" + root_ +
                      "' has no directory with .jpg, .jpeg or .png files: each class needs "
                      "one");
    }
    ColumnTable table = context.initial_table({"unknown"});
    if (context.given() == nullptr) table.classes[kLabelColumn] = names;
    table.feeds[kLabelColumn] = kLabelColumn;
    const CategoryIds ids = context.category_ids(kLabelColumn, table);
    for (size_t i = 0; i < names.size(); ++i) {
      const int64_t id = ids.id_of(names[i], [&] { return "'" + root_ + "/" + names[i] + "'"; });
      labels_.resize(ends[i], static_cast<int32_t>(id));
    }
    classes_ = table.classes[kLabelColumn];
    table_ = std::make_shared<const ColumnTable>(std::move(table));
    context.report_table(table_);
    set_image_type();
  }

  int64_t samples() const override { return static_cast<int64_t>(paths_.size()); }
  std::string name() const override { return root_; }
  ColumnTablePtr table() const override { return table_; }
  std::string location(int64_t sample) const override { return "'" + path(sample) + "'"; }
  std::vector<std::string> classes(const std::string& column) const override {
    return column == kLabelColumn ? classes_ : std::vector<std::string>();
  }
  std::string find_location(const std::string& column, int64_t value) const override {
    const auto found = std::ranges::find(labels_, value);
    if (column != kLabelColumn || found == labels_.end()) return "";
    return location(found - labels_.begin());
  }
  int64_t resident_bytes() const override {
    int64_t bytes = samples() * static_cast<int64_t>(sizeof(int32_t) + sizeof(std::string));
    for (const std::string& path : paths_) bytes += static_cast<int64_t>(path.capacity());
    return bytes;
  }

 protected:
  int64_t label(int64_t sample) const override { return labels_.at(static_cast<size_t>(sample)); }
  Image decode(int64_t sample) const override {
    const FileBytes file(path(sample));
    std::string bytes(static_cast<size_t>(file.size()), '\0');
    file.read(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    return decode_image(bytes, path(sample));
  }

 private:
  std::string path(int64_t sample) const {
    return root_ + "/" + paths_.at(static_cast<size_t>(sample));
  }
  std::string root_;
  std::vector<std::string> paths_, classes_;
  std::vector<int32_t> labels_;
  ColumnTablePtr table_;
};

}  // namespace

DataKind folder_kind() {
  return {.name = kFolderKind,
          .usage = "folder:DIR",
          .doc =
              "image files (jpeg, png), DIR/CLASS/...: columns image u8[3, H, W], RGB, and label "
              "i64, the index of the class in sorted order; images of several sizes need a stage; "
              "table= and unknown=1 as for csv",
          .splits_rows = true,
          .has_table = true,
          .open_source = [](const DataArgs& args) -> SampleSourcePtr {
            return std::make_shared<ImageFolder>(args);
          }};
}

}  // namespace fluid
