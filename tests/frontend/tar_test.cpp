#include "frontend/files/tar.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/errors.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::tar_test {
namespace {

/// Packs the files of a directory by the system's tar, in the format `format`.
void pack(const TempDir& dir, const std::string& archive, const std::string& files,
          const std::string& format = "gnu") {
  const std::string command = "cd " + dir.path() + " && tar --sort=name --format=" + format +
                              " -cf " + archive + " " + files;
  ASSERT_EQ(std::system(command.c_str()), 0);
}

void change_byte(const std::string& path, int64_t at, char value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at).put(value);
}

TEST(Tar, ReadsTheFormatsOfTar) {
  TempDir dir;
  const std::string deep = "deep/" + std::string(90, 'd') + "/" + std::string(60, 'f') + ".txt";
  std::filesystem::create_directories(dir.file("deep/" + std::string(90, 'd')));
  write_plain(dir.file("a.txt"), "a");
  write_plain(dir.file(deep), std::string(1000, 'x'));
  write_plain(dir.file("z.txt"), "the end");
  for (const std::string format : {"gnu", "ustar", "pax"}) {
    SCOPED_TRACE(format);
    pack(dir, "t.tar", "a.txt deep z.txt", format);
    const FileBytes file(dir.file("t.tar"));
    TarReader reader(file, "t.tar");
    const std::optional<TarMember> first = reader.next(), second = reader.next(),
                                   third = reader.next();
    ASSERT_TRUE(first && second && third);
    EXPECT_EQ(first->name, "a.txt");
    EXPECT_EQ(second->name, deep);
    EXPECT_EQ(second->size, 1000);
    std::string text(7, ' ');
    file.read(third->offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
    EXPECT_EQ(text, "the end");
    EXPECT_FALSE(reader.next());
  }
}

TEST(Tar, DamageIsNamed) {
  TempDir dir;
  write_plain(dir.file("a.txt"), std::string(2000, 'x'));
  pack(dir, "t.tar", "a.txt");
  const auto read = [&](const std::string& path) {
    const FileBytes file(path);
    TarReader reader(file, "t.tar");
    while (reader.next()) continue;
  };
  std::filesystem::copy(dir.file("t.tar"), dir.file("cut.tar"));
  std::filesystem::resize_file(dir.file("cut.tar"), 1000);
  expect_user_error([&] { read(dir.file("cut.tar")); },
                    "'t.tar': the archive ends within a file at byte 0");
  change_byte(dir.file("t.tar"), 3, '!');
  expect_user_error([&] { read(dir.file("t.tar")); }, "'t.tar': damaged tar header at byte 0");
}

TEST(TarShards, HoldKeyedImagesAndLabels) {
  TempDir dir;
  std::filesystem::create_directories(dir.file("shards"));
  for (int shard = 0; shard < 2; ++shard) {
    for (int i = 0; i < 3; ++i) {
      const std::string key = dir.file("s" + std::to_string(3 * shard + i));
      write_plain(key + (i == 1 ? ".PNG" : ".seg.jpg"),
                  golden_image_file(i == 1 ? "alpha.png" : "420.jpg"));
      write_plain(key + ".cls", std::to_string(10 * shard + i) + "\n");
      write_plain(key + ".json", "{}");
    }
    pack(dir, "shards/" + std::to_string(shard) + ".tar",
         shard == 0 ? "s0.* s1.* s2.*" : "s3.* s4.* s5.*");
  }
  const SampleSourcePtr source = open_data("tar:" + dir.file("shards") + "|crop=20").source;
  EXPECT_EQ(source->samples(), 6);
  EXPECT_EQ(source->classes("label").size(), 13u);
  EXPECT_EQ(source->location(4), "'" + dir.file("shards/1.tar") + "/s4.PNG'");
  Reader reader(source, {.batch = 6, .workers = 2});
  const Batch& batch = *reader.next();
  EXPECT_EQ(batch.find("image")->str(), "u8[6, 3, 20, 20]");
  const std::vector<int64_t> expected = {0, 1, 2, 10, 11, 12};
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(batch.find("label")->integer(i), expected[static_cast<size_t>(i)]);
  }
  const SampleSourcePtr one = open_data("tar:" + dir.file("shards/1.tar")).source;
  EXPECT_EQ(one->samples(), 3);
  const auto same = [&](int64_t a, int64_t b) {
    return one->image(a, 0, {}).pixels ==
           open_data("tar:" + dir.file("shards")).source->image(b, 0, {}).pixels;
  };
  EXPECT_TRUE(same(1, 4));
  EXPECT_FALSE(same(0, 4));
}

TEST(TarShards, BadSamplesAreNamed) {
  TempDir dir;
  const auto expect_error = [&](const std::string& files, const std::string& message) {
    pack(dir, "t.tar", files);
    const std::string path = dir.file("t.tar");
    expect_user_error([&] { open_data("tar:" + path); }, "'" + path + message);
  };
  write_plain(dir.file("a.jpg"), golden_image_file("420.jpg"));
  write_plain(dir.file("a.cls"), "cat");
  write_plain(dir.file("b.cls"), "7");
  write_plain(dir.file("c.jpg"), golden_image_file("420.jpg").substr(0, 300));
  write_plain(dir.file("c.cls"), "0");
  expect_error("a.cls a.jpg", "': 'a.cls' holds no class number");
  expect_error("a.jpg", "': sample 'a' lacks a label (.cls)");
  expect_error("b.cls", "': sample 'b' lacks an image (.jpg, .png)");
  expect_error("c.jpg c.cls", "/c.jpg': damaged JPEG image");
  write_plain(dir.file("note.txt"), "");
  expect_error("note.txt", "' holds no sample: KEY.jpg and KEY.cls");
  std::filesystem::create_directories(dir.file("none"));
  expect_user_error([&] { open_data("tar:" + dir.file("none")); },
                    "'" + dir.file("none") + "' has no .tar file");
}

TEST(TarShards, BadSamplesAreLeftOutOnRequest) {
  TempDir dir;
  const std::string image = golden_image_file("420.jpg");
  for (const std::string key : {"a", "b", "c", "d", "e", "f"}) {
    write_plain(dir.file(key + ".jpg"), image);
    write_plain(dir.file(key + ".cls"), key == "c" ? "cat" : "1");
  }
  std::filesystem::create_directories(dir.file("shards"));
  pack(dir, "shards/0.tar", "a.jpg b.jpg b.cls c.cls c.jpg");
  pack(dir, "shards/1.tar", "d.cls d.jpg e.cls e.jpg");
  pack(dir, "shards/2.tar", "f.cls f.jpg");
  // Cuts the second shard within e.jpg, which follows three files with their headers.
  const auto padded = [](size_t bytes) {
    return kTarBlock + (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
  };
  const size_t kept = 2 * padded(1) + padded(image.size()) + kTarBlock + 100;
  std::filesystem::resize_file(dir.file("shards/1.tar"), kept);
  const std::string spec = "tar:" + dir.file("shards");
  const SampleSourcePtr source = open_data(spec, "train", {.bad_records = BadRecords::skip}).source;
  EXPECT_EQ(source->samples(), 3);
  for (const auto& [sample, name] :
       std::map<int64_t, std::string>{{0, "0.tar/b"}, {1, "1.tar/d"}, {2, "2.tar/f"}}) {
    EXPECT_EQ(source->location(sample), "'" + dir.file("shards/" + name + ".jpg'"));
  }
  const SkippedRecords skipped = source->skipped();
  EXPECT_EQ(skipped.count, 3);
  const std::string first = "'" + dir.file("shards/0.tar") + "': ",
                    second = "'" + dir.file("shards/1.tar") + "': ";
  EXPECT_EQ(skipped.errors,
            (std::vector<std::string>{first + "sample 'a' lacks a label (.cls)",
                                      first + "'c.cls' holds no class number",
                                      second + "the archive ends within a file at byte " +
                                          std::to_string(kept - kTarBlock - 100)}));
  pack(dir, "none.tar", "a.jpg");
  expect_user_error(
      [&] { open_data("tar:" + dir.file("none.tar"), "train", {.bad_records = BadRecords::skip}); },
      "no sample of '" + dir.file("none.tar") + "' can be read: sample 'a' lacks a label (.cls)");
}

}  // namespace
}  // namespace fluid::tar_test
