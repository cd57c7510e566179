// Windows of a text file.

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/readers/documents.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::text_test {
namespace {

class Text : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(file_, std::string_view("abcdefghijklmnopqrst")); }

  std::string spec(const std::string& options) const { return "text:" + file_ + "?" + options; }

  /// The windows of a column, each as a string.
  std::vector<std::string> windows(const std::string& options, const std::string& column) const {
    const SampleSourcePtr data = open_data(spec(options)).source;
    const auto length = static_cast<size_t>(data->columns()[0].numel());
    std::vector<std::string> list;
    for (int64_t i = 0; i < data->samples(); ++i) {
      std::string& window = list.emplace_back(length, ' ');
      std::byte* const bytes = reinterpret_cast<std::byte*>(window.data());
      std::byte* const to[] = {column == "text" ? bytes : nullptr,
                               column == "target" ? bytes : nullptr};
      data->read(i, {}, to);
    }
    return list;
  }

  TempDir dir_;
  std::string file_ = dir_.file("t.txt");
};

using Windows = std::vector<std::string>;

TEST_F(Text, TargetsFollowTheText) {
  EXPECT_EQ(windows("length=5", "text"), (Windows{"abcde", "fghij", "klmno"}));
  EXPECT_EQ(windows("length=5", "target"), (Windows{"bcdef", "ghijk", "lmnop"}));
}

TEST_F(Text, WindowsMayOverlap) {
  EXPECT_EQ(windows("length=8&stride=4", "text"), (Windows{"abcdefgh", "efghijkl", "ijklmnop"}));
}

TEST_F(Text, TheEndIsHeldOut) {
  EXPECT_EQ(windows("length=1&split=val", "text"), Windows{"s"});
  EXPECT_EQ(windows("length=1&split=test", "target"), Windows{"t"});
  EXPECT_EQ(windows("length=17", "target"), Windows{"bcdefghijklmnopqr"});
}

TEST_F(Text, RejectsWhatDoesNotFit) {
  expect_user_error([&] { open_data(spec("length=18")); },
                    "data 'text:" + file_ + "?length=18': '" + file_ +
                        "': the split has 18 bytes, but a window of length=18 needs one more than "
                        "its length");
  expect_user_error([&] { open_data("text:" + dir_.file("none")); }, "none");
}

TEST_F(Text, DocumentsAreFollowedByAnEnd) {
  std::filesystem::create_directory(dir_.file("d"));
  write_plain(dir_.file("d/b"), "cde");
  write_plain(dir_.file("d/a"), "ab");
  file_ = dir_.file("d");
  EXPECT_EQ(windows("length=2&end=33", "text"), (Windows{"ab", "!c"}));
  file_ = dir_.file("d.jsonl");
  write_plain(file_, "{\"id\": 1, \"t\": \"ab\"}\n\n{\"t\": \"cde\"}\n");
  EXPECT_EQ(windows("length=2&end=33&key=t", "text"), (Windows{"ab", "!c"}));
  EXPECT_EQ(windows("length=2&key=t", "target"), (Windows{{'b', '\0'}, "cd"}));
}

TEST_F(Text, IsTheSameReadFromDisk) {
  const std::string options = "length=2&stride=1";
  for (const char* column : {"text", "target"}) {
    EXPECT_EQ(windows(options + "&memory=0", column), windows(options, column));
  }
  EXPECT_EQ(windows("length=1&split=val&memory=0", "target"), Windows{"t"});
  EXPECT_EQ(open_data(spec("length=2&memory=0")).source->resident_bytes(), 0);
  EXPECT_GT(open_data(spec("length=2")).source->resident_bytes(), 0);
}

/// The parts of a file: each ends where a word ends, however small the parts are.
TEST_F(Text, IsReadInParts) {
  const std::string text = "ab cd\n\n ef\xc2\xa0\ngh.\n\tij\nkl";
  write_plain(file_, text);
  for (int64_t bytes = 1; bytes <= std::ssize(text); ++bytes) {
    std::vector<std::string> parts;
    std::string all;
    int64_t last = 0;
    for_each_document_part(
        file_, "",
        [&](const DocumentPart& part) {
          EXPECT_EQ(part.first_byte, std::ssize(all));
          EXPECT_TRUE(all.empty() || part.text.starts_with('\n') || part.text.starts_with(' '))
              << part.text;
          all += part.text;
          last += part.is_last ? 1 : 0;
          parts.emplace_back(part.text);
        },
        nullptr, bytes);
    EXPECT_EQ(all, text);
    EXPECT_EQ(last, 1);
    if (bytes == 1) {
      EXPECT_EQ(parts, (Windows{"ab", " cd", "\n\n ef\xc2\xa0\ngh.\n\tij", "\nkl"}));
    }
    int64_t lines = 0;
    write_plain(dir_.file("l"), "{\"t\": \"x\"}\n\n{\"t\": \"y\"}\n{\"t\": 1}");
    expect_user_error(
        [&] {
          for_each_document_part(
              dir_.file("l"), "t", [&](const auto&) { ++lines; }, nullptr, bytes);
        },
        "l:4: no string at key 't'");
    EXPECT_EQ(lines, 2);
  }
}

TEST_F(Text, OfLinesLeavesOutBadOnes) {
  const std::string lines = dir_.file("l.jsonl"), all = "text:" + lines + "?length=1&split=train&";
  write_plain(lines, "{\"t\": \"abcdefgh\"}\nno\n{\"u\": 1}\n{\"t\": \"ijklmnop\"}\n");
  for (const std::string kind : {"key=t", "key=t&characters&end=."}) {
    expect_user_error([&] { open_data(all + kind); }, "l.jsonl:2: not a JSON object");
    const SampleSourcePtr data =
        open_data(all + kind, "train", {.bad_records = BadRecords::skip}).source;
    EXPECT_EQ(data->samples(), 15) << "9 tenths of 18 symbols";
    ASSERT_EQ(data->skipped().count, 2);
    EXPECT_TRUE(states(data->skipped().errors.back(), "l.jsonl:3: no string at key 't'"));
  }
  const std::string tokens =
      all + "key=t&bpe=" FLUID_SOURCE_DIR "/tests/golden/bpe&tokens=" + dir_.file("l.tok");
  for (int time = 0; time < 2; ++time) {  // the second one reads the tokens
    const SampleSourcePtr data =
        open_data(tokens, "train", {.bad_records = BadRecords::skip}).source;
    EXPECT_EQ(data->skipped().count, 2);
    EXPECT_TRUE(states(data->skipped().errors.back(), "l.jsonl:3: no string at key 't'"));
    expect_user_error([&] { open_data(tokens); }, "l.jsonl:2: not a JSON object");
  }
}

/// The ids of the first window of `length` characters.
std::vector<int64_t> ids_of(const SampleSource& data) {
  std::vector<int64_t> ids(static_cast<size_t>(data.columns()[0].numel()));
  std::byte* const to[] = {reinterpret_cast<std::byte*>(ids.data()), nullptr};
  data.read(0, {}, to);
  return ids;
}

/// The ids are those of Python: sorted(set(text)).index(c) for each c of text.
TEST_F(Text, CharactersHaveIdsByTheVocabularyOfTheTrainingText) {
  write_plain(file_, "na\u00efve \u6f22\u5b57 \U0001f600!\nz\u00e9bra n\u00e9");
  const SampleSourcePtr data = open_data(spec("characters&length=17")).source;
  EXPECT_EQ(data->columns()[0].str(), "text i64[17]");
  EXPECT_EQ(ids_of(*data),
            (std::vector<int64_t>{6, 3, 11, 8, 5, 1, 13, 12, 1, 14, 2, 0, 9, 10, 4, 7, 3}));
  const std::vector<std::string> vocabulary = {
      "\n", " ", "!",      "a",      "b",      "e",      "n",         "r",
      "v",  "z", "\u00e9", "\u00ef", "\u5b57", "\u6f22", "\U0001f600"};
  EXPECT_EQ(data->classes("text"), vocabulary);
  EXPECT_EQ(data->table()->classes_of_feed("target"), vocabulary);

  const std::string path = dir_.file("new.txt"), news = "text:" + path + "?length=2&stride=1";
  const OpenOptions trained = {.training_table = data->table()};
  write_plain(path, "b\u6f22ra");
  EXPECT_EQ(ids_of(*open_data(news, "train", trained).source), (std::vector<int64_t>{4, 13}));
  write_plain(path, "b\u00e9\u20acra");
  expect_user_error(
      [&] { open_data(news, "train", trained); },
      path + ": byte 3: the character '\u20ac' (U+20AC); unknown=1 gives it the id 15");
  EXPECT_EQ(ids_of(*open_data("text:" + path + "?length=3&unknown=1", "train", trained).source),
            (std::vector<int64_t>{4, 10, 15}));
  write_plain(path, "b\u00e9\xe2\x82");
  expect_user_error([&] { open_data(news, "train", trained); }, path + ": byte 3 is not UTF-8");
  expect_user_error([&] { open_data(news + "&bpe=d", "train", trained); },
                    "options characters and bpe exclude each other: the training text was read as");
  EXPECT_EQ(open_data(news + "&table=none", "train", trained).source->columns()[0].dtype, u8);
  expect_user_error([&] { open_data(news + "&unknown=1"); },
                    "option unknown is of a vocabulary of characters");
}

TEST_F(Text, CharactersOfDocumentsAreFollowedByAnEnd) {
  file_ = dir_.file("d.jsonl");
  write_plain(file_, "{\"t\": \"b\u00e9\"}\n{\"t\": \"ab\"}\n");
  EXPECT_EQ(ids_of(*open_data(spec("characters&key=t&length=4")).source),
            (std::vector<int64_t>{2, 3, 0, 1}));
  EXPECT_EQ(ids_of(*open_data(spec("characters&key=t&length=4&end=c")).source),
            (std::vector<int64_t>{1, 3, 2, 0}));
  expect_user_error([&] { open_data(spec("characters&key=t&end=no")); },
                    "option end=no must be one character");
}

TEST_F(Text, DocumentMistakesAreNamed) {
  expect_user_error([&] { open_data(spec("key=t")); }, file_ + ":1: not a JSON object");
  write_plain(file_, "{\"t\": \"ab\"}\n{\"t\": 3}\n");
  expect_user_error([&] { open_data(spec("key=t")); }, file_ + ":2: no string at key 't'");
  write_plain(file_, "{\"t\": \"ab\"}\n");
  expect_user_error([&] { open_data(spec("key=t&end=256")); },
                    "option end=256 must be a byte, 0 to 255; with bpe=DIR, a token");
  expect_user_error([&] { open_data(spec("end=33")); },
                    "option end= ends documents, and '" + file_ + "' is one text");
  std::filesystem::create_directory(dir_.file("none"));
  expect_user_error([&] { open_data("text:" + dir_.file("none")); },
                    "'" + dir_.file("none") + "' holds no file");
}

}  // namespace
}  // namespace fluid::text_test
