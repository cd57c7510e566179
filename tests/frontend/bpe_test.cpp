// Byte-level BPE, against Hugging Face tokenizers and tiktoken (tests/golden/bpe/bpe.py).

#include "frontend/tokenizers/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "frontend/readers/documents.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::bpe_test {
namespace {

const std::string kGoldens = FLUID_SOURCE_DIR "/tests/golden/bpe";

std::vector<int32_t> ids_of(const Bpe& bpe, const std::string& text) {
  std::vector<int32_t> ids;
  bpe.encode(text, "text", ids);
  return ids;
}

/// The samples of a source, one after the other.
std::vector<int64_t> values_of(const std::string& spec) {
  Reader reader(open_data(spec).source, {.batch = 1});
  std::vector<int64_t> values;
  for (const Batch& batch : reader) {
    const Tensor& text = *batch.find("text");
    for (int64_t i = 0; i < text.numel(); ++i) values.push_back(text.integer(i));
  }
  return values;
}

TEST(BpeTokens, AreThoseOfHuggingFaceAndTiktoken) {
  const Bpe bpe(kGoldens);
  const nlohmann::json goldens = nlohmann::json::parse(read_file(kGoldens + "/ids.json"));
  ASSERT_EQ(goldens.size(), 48u);
  for (const auto& golden : goldens) {
    const auto text = golden["text"].get<std::string>();
    EXPECT_EQ(ids_of(bpe, text), golden["ids"].get<std::vector<int32_t>>()) << text;
  }
}

/// The patterns of tiktoken, by their names in the goldens.
constexpr std::pair<const char*, PreTokens> kPatterns[] = {{"gpt2", PreTokens::gpt2},
                                                           {"cl100k", PreTokens::cl100k}};
const std::string kRanks = kGoldens + "/ranks.tiktoken";

TEST(BpeTokens, OfAFileOfTiktokenAreThose) {
  TempDir dir;
  const nlohmann::json goldens = nlohmann::json::parse(read_file(kGoldens + "/tiktoken.json"));
  ASSERT_EQ(goldens.size(), 56u);
  for (const auto& [name, pattern] : kPatterns) {
    const Bpe bpe(kRanks, pattern);
    for (const auto& golden : goldens) {
      const auto text = golden["text"].get<std::string>();
      const auto expected = golden[name].get<std::vector<int32_t>>();
      EXPECT_EQ(ids_of(bpe, text), expected) << name << ": " << text;
      write_plain(dir.file("t"), text);
      for (const int64_t bytes : {1, 5}) {  // a part ends where a pre-token does
        std::vector<int32_t> ids;
        for_each_document_part(
            dir.file("t"), "",
            [&](const DocumentPart& part) { bpe.encode(part.text, part.name, ids); }, nullptr,
            bytes);
        EXPECT_EQ(ids, expected) << name << ": " << text;
      }
    }
  }
}

TEST(BpeTokens, OfAFileOfTiktokenEndDocuments) {
  TempDir dir;
  const std::string path = dir.file("t.jsonl"), ids = dir.file("ids");
  write_plain(path, "{\"text\": \"3.14 end.\\n\\nnext\"}\n{\"text\": \"1234567 word\"}\n");
  const std::string spec = "text:" + path + "?key=text&length=1&bpe=" + kRanks;
  std::vector<std::vector<int64_t>> seen;
  for (const auto& [name, pattern] : kPatterns) {
    const Bpe bpe(kRanks, pattern);
    std::vector<int32_t> all;
    for (const char* text : {"3.14 end.\n\nnext", "1234567 word"}) {
      bpe.encode(text, text, all);
      all.push_back(100257);
    }
    const std::string options = std::string("&end=100257&pattern=") + name + "&tokens=" + ids;
    seen.push_back(values_of(spec + options));
    ASSERT_GT(seen.back().size(), 8u);
    EXPECT_TRUE(std::ranges::equal(seen.back(), std::span(all).first(seen.back().size())));
  }
  EXPECT_NE(seen[0], seen[1]) << "the file of tokens is that of another pattern";
  for (const std::string end : {"", "&end=<|endoftext|>", "&end=-1", "&end=3000000000"}) {
    expect_user_error([&] { open_data(spec + "&pattern=gpt2" + end); },
                      "'" + kRanks + "' does not hold: " + end.substr(end.empty() ? 0 : 1));
  }
  expect_user_error([&] { open_data(spec); },
                    "'" + kRanks + "' does not say how text is split: add pattern=gpt2 or ");
  expect_user_error([&] { open_data(spec + "&pattern=o200k"); },
                    "option pattern=o200k must be one of cl100k, gpt2");
  expect_user_error([&] { open_data("text:" + path + "?pattern=gpt2&bpe=" + kGoldens); },
                    "option pattern is of bpe=FILE.tiktoken");
  expect_user_error([&] { open_data("text:" + path + "?pattern=gpt2"); },
                    "option pattern is of a tokenizer");
}

TEST(BpeTokens, MistakesInAFileOfTiktokenAreNamed) {
  TempDir dir;
  const std::string path = dir.file("x.tiktoken"), good = read_file(kRanks);
  const auto expect = [&](const std::string& text, const std::string& message) {
    write_plain(path, text);
    expect_user_error([&] { Bpe(path, PreTokens::gpt2); }, message);
  };
  expect_user_error([&] { Bpe(path, PreTokens::gpt2); }, path);
  for (const char* line : {"QQ==", "QQ== x", "QQ== -1", "QQ== 1 2", "QQ 1", "=QQ= 1", "Q==Q 1",
                           "QQ?= 1", "QQ== 3000000000", " 1", "QQ== "}) {
    expect(good + line + "\n", path + ":712: not a token in base64, a space and a rank");
  }
  expect(good + "QQ== 5000\n", path + ":712: repeats a token or a rank");
  expect(good + "cXF6enE= 5\n", path + ":712: repeats a token or a rank");
  expect(good.substr(good.find('\n') + 1), "'" + path + "' has no token of byte 0");
}

TEST(BpeTokens, OfALongWordTakeLittleTime) {
  const Bpe bpe(kGoldens);
  std::string word;
  for (int i = 0; i < 500'000; ++i) word += "the";
  const std::vector<int32_t> ids = ids_of(bpe, word);
  ASSERT_EQ(ids.size(), 1'000'000u);  // "t", "he"
  EXPECT_EQ(std::ranges::count(ids, bpe.id("he")), 500'000);
}

TEST(BpeTokens, ArePackedIntoWindows) {
  TempDir dir;
  const std::string path = dir.file("t.jsonl");
  write_plain(path, "{\"text\": \"the compiler\"}\n{\"text\": \"It's\"}\n{\"text\": \"ab\"}\n");
  const Bpe bpe(kGoldens);
  std::vector<int32_t> all;
  for (const char* text : {"the compiler", "It's", "ab"}) {
    bpe.encode(text, text, all);
    all.push_back(bpe.id("<|endoftext|>"));
  }
  const std::string spec = "text:" + path + "?key=text&length=3&stride=2&bpe=" + kGoldens;
  Reader reader(open_data(spec).source, {.batch = 1});
  EXPECT_EQ(reader.source().columns()[1].str(), "target i64[3]");
  EXPECT_EQ(reader.source().location(1), "sample 1 of 'text:" + path + "?split=train'");
  int64_t first = 0;
  for (const Batch& batch : reader) {
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(batch.find("text")->integer(i), all[static_cast<size_t>(first + i)]);
      EXPECT_EQ(batch.find("target")->integer(i), all[static_cast<size_t>(first + i + 1)]);
    }
    first += 2;
  }
  EXPECT_GE(first, 4);
  expect_user_error([&] { open_data(spec + "&end=<eos>"); },
                    "'" + kGoldens + "/vocab.json' has no token '<eos>'");
  expect_user_error([&] { open_data(spec + "&split=val"); }, "the split has 2 tokens, but");
}

TEST(BpeTokens, AreKeptInAFile) {
  TempDir dir;
  const std::string text = dir.file("t.txt"), tokens = dir.file("tokens");
  const std::string spec = "text:" + text + "?length=2&stride=1&bpe=" + kGoldens;
  write_plain(text, "the compiler It's\nab the compiler");
  const std::vector<int64_t> expected = values_of(spec);
  EXPECT_EQ(values_of(spec + "&tokens=" + tokens), expected);
  const std::string kept = read_file(tokens);
  const auto written = std::filesystem::last_write_time(tokens);
  EXPECT_EQ(values_of(spec + "&tokens=" + tokens), expected);
  EXPECT_EQ(std::filesystem::last_write_time(tokens), written) << "is read, not written again";
  EXPECT_EQ(open_data(spec + "&tokens=" + tokens).source->resident_bytes(), 0);
  write_plain(text, "compiler the the ab It's");
  EXPECT_EQ(values_of(spec + "&tokens=" + tokens), values_of(spec));
  EXPECT_NE(read_file(tokens), kept);
  for (const std::string& damaged : {std::string("notes"), kept.substr(4), kept + "more"}) {
    write_plain(tokens, damaged);
    expect_user_error(
        [&] { open_data(spec + "&tokens=" + tokens); },
        "'" + tokens + "' is not a file of tokens, or is damaged; it is not replaced");
    EXPECT_EQ(read_file(tokens), damaged);
  }
  expect_user_error([&] { open_data("text:" + text + "x?bpe=" + kGoldens + "&tokens=" + tokens); },
                    "cannot read '" + text + "x': No such file or directory");
  expect_user_error([&] { open_data("text:" + text + "?tokens=" + tokens); },
                    "option tokens is of a tokenizer: add bpe=DIR");
}

TEST(BpeTokens, MistakesAreNamed) {
  TempDir dir;
  const std::string vocabulary = dir.file("vocab.json"), merges = dir.file("merges.txt");
  const auto open = [&] { Bpe{dir.path()}; };
  expect_user_error(open, vocabulary);
  write_plain(vocabulary, "[1]");
  expect_user_error(open, "'" + vocabulary + "' has no token 'Ā'");
  write_plain(vocabulary, "{\"a\": \"b\"}");
  expect_user_error(open, "'" + vocabulary + "' is not a JSON object of tokens and their ids");
  std::filesystem::copy_file(kGoldens + "/vocab.json", vocabulary,
                             std::filesystem::copy_options::overwrite_existing);
  expect_user_error(open, merges);
  write_plain(merges, "#version: 0.2\nh e\nthe\n");
  expect_user_error(open, merges + ":3: not two tokens and a space");
  write_plain(merges, "x q\n");
  expect_user_error(open, "'" + vocabulary + "' has no token 'xq'");
  const Bpe bpe(kGoldens);
  for (const char* bad : {"ab \xff", "ab \xc3", "ab \xed\xa0\x80", "ab \xc0\x80"}) {
    expect_user_error([&] { ids_of(bpe, bad); }, "text: byte 3 is not UTF-8");
  }
}

}  // namespace
}  // namespace fluid::bpe_test
