#include "frontend/files/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/mutate.h"
#include "tests/support/temp_dir.h"

namespace fluid::safetensors_test {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

/// The file that safetensors 0.8.0 writes for w = [[1, 2], [3, -4.5]] f32, h = [1.5, -2] bf16, n =
/// 7 i64, m = [1, 0, 1] bool, e = zeros(0, 3) f32 and the metadata {"by": "ref"}, or these metadata
/// and `more`.
std::string reference_file(const std::string& more = "") {
  const std::string header = R"({"__metadata__":{"by":"ref")" + more +
                             R"(},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},)"
                             R"("w":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
                             R"("h":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]},)"
                             R"("m":{"dtype":"BOOL","shape":[3],"data_offsets":[28,31]}})";
  std::string padded = header;
  padded.resize((header.size() + 7) / 8 * 8, ' ');
  const char data[] =
      "\x07\0\0\0\0\0\0\0"
      "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x90\xc0"
      "\xc0\x3f\0\xc0"
      "\x01\0\x01";
  return safetensors_bytes(padded, std::string(data, sizeof data - 1));
}

Named reference_tensors() {
  Tensor half(bf16, {2});
  half.as<uint16_t>()[0] = 0x3fc0;
  half.as<uint16_t>()[1] = 0xc000;
  const bool bools[] = {true, false, true};
  return {{"w", Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, -4.5})},
          {"h", half},
          {"n", Tensor::of<int64_t>({}, std::vector<int64_t>{7})},
          {"m", Tensor::of<bool>({3}, bools)},
          {"e", Tensor(f32, {0, 3})}};
}

TEST(Safetensors, ReadsTheReferencePackagesFile) {
  const TensorFile file = parse_safetensors(reference_file(), "ref");
  EXPECT_EQ(file.tensors.size(), 5u);
  EXPECT_EQ(file.metadata.at("by"), "ref");
  for (const auto& [name, expected] : reference_tensors()) {
    const Tensor* t = file.find(name);
    ASSERT_NE(t, nullptr) << name;
    EXPECT_EQ(t->str(), expected.str());
    EXPECT_EQ(std::memcmp(t->data(), expected.data(), static_cast<size_t>(t->bytes())), 0);
  }
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, WritesTheReferencePackagesBytes) {
  TempDir dir;
  write_safetensors(dir.file("a"), reference_tensors(), {{"by", "ref"}});
  EXPECT_EQ(read_file(dir.file("a")), reference_file(R"(,"fluid.checksum":"5829782792942642664")"));
}

TEST(Safetensors, EveryChangedByteOfTheTensorsIsFound) {
  TempDir dir;
  write_safetensors(dir.file("a"), reference_tensors(), {{"by", "ref"}});
  const std::string bytes = read_file(dir.file("a"));
  const TensorFile file = parse_safetensors(bytes, "f");
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"by", "ref"}}));
  for (size_t at = bytes.size() - 31; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] ^= static_cast<char>(1 << bit);
      expect_user_error([&] { parse_safetensors(damaged, "f"); },
                        "f: damaged: its checksum differs");
    }
  }
}

TEST(Safetensors, EveryDtypeRoundTrips) {
  TempDir dir;
  Named all;
  for (DType d : {f64, f32, f16, bf16, i64, i32, u8, i8, boolean}) {
    all.emplace_back(std::string(name_of(d)),
                     Tensor::of<double>({3}, std::vector<double>{0, 1, 0}).cast(d));
  }
  write_safetensors(dir.file("a"), all);
  const TensorFile file = read_safetensors(dir.file("a"));
  for (const auto& [name, tensor] : all) {
    ASSERT_NE(file.find(name), nullptr);
    EXPECT_EQ(file.find(name)->dtype(), tensor.dtype());
    EXPECT_EQ(file.find(name)->at(1), 1.0);
  }
}

TEST(Safetensors, HeaderMistakesAreNamed) {
  const std::string entry = R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const auto expect_error = [](const std::string& header, const std::string& message) {
    expect_user_error([&] { parse_safetensors(safetensors_bytes(header, "ab"), "f"); },
                      "f: " + message);
  };
  expect_error("", "the header does not start with '{'");
  expect_error(" {}", "the header does not start with '{'");
  expect_error("{", "the header is not JSON at byte");
  expect_error("{} x", "the header is not JSON at byte");
  expect_error(R"({"a":)" + entry + R"(,"a":)" + entry + "}", "the key 'a' is there twice");
  expect_error(R"({"a":{"dtype":"U8","dtype":"U8"}})", "tensor 'a' has the key 'dtype' twice");
  expect_error(R"({"a":{"layout":1}})", "tensor 'a' has an unknown key 'layout'");
  expect_error(R"({"a":{"dtype":"U8","shape":[2]}})",
               "tensor 'a' needs dtype, shape and data_offsets");
  expect_error(R"({"a":{"dtype":"F8_E4M3"}})",
               "tensor 'a' has dtype 'F8_E4M3', which Fluid does not read");
  expect_error(R"({"a":{"data_offsets":[0,1,2]}})", "tensor 'a' needs two data_offsets");
  expect_error(R"({"a":{"shape":[-1]}})",
               "tensor 'a' has a negative number where the format allows none");
  expect_error(R"({"a":{"shape":[1.5]}})", "tensor 'a' has the number 1.5 where");
  expect_error(R"({"a":{"shape":[18446744073709551615]}})",
               "tensor 'a' has a number over 2^63 in shape");
  expect_error(R"({"a":{"shape":[99999999999999999999]}})",
               "tensor 'a' has the number 99999999999999999999 where");
  expect_error(R"({"a":{"shape":[[2]]}})", "tensor 'a' has a list where");
  expect_error(R"({"a":{"shape":[{}]}})", "tensor 'a' has an object where");
  expect_error(R"({"a":{"shape":"2"}})", "tensor 'a' has a string where");
  expect_error(R"({"a":{"shape":null}})", "tensor 'a' has null where");
  expect_error(R"({"a":{"dtype":true}})", "tensor 'a' has a bool where");
  expect_error(R"({"a":{"dtype":8}})", "tensor 'a' has a number where");
  expect_error(R"({"a":[]})", "tensor 'a' has a list where");
  expect_error(R"({"__metadata__":{"k":1}})", "__metadata__ has a number where");
  expect_error(R"({"__metadata__":{"k":"v","k":"w"}})", "__metadata__ has the key 'k' twice");
}

TEST(Safetensors, LayoutMistakesAreNamed) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  const auto expect_error = [](const std::string& header, const std::string& message) {
    expect_user_error([&] { parse_safetensors(safetensors_bytes(header, "abcd"), "f"); },
                      "f: " + message);
  };
  EXPECT_EQ(
      parse_safetensors(safetensors_bytes(two("[2,4]", "[0,2]"), "abcd"), "f").tensors[0].first,
      "b");
  expect_error(two("[0,2]", "[1,3]"), "tensor 'b' overlaps the one before");
  expect_error(two("[0,2]", "[3,5]"), "tensor 'b' leaves a hole before it");
  expect_error(two("[0,2]", "[2,6]"), "tensor 'b' reaches past the end of the file");
  expect_error(two("[0,3]", "[3,4]"), "tensor 'a' has 3 bytes, which its shape does not take");
  expect_error(two("[2,0]", "[2,4]"), "tensor 'a' ends before it begins");
  expect_error(two("[0,2]", "[2,1]"), "tensor 'b' ends before it begins");
  expect_error(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
               "2 bytes belong to no tensor");
  expect_error(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
               "tensor 'a' has 4 bytes, which its shape does not take");
  expect_error(R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})",
               "tensor 'a' holds a bool that is neither 0 nor 1");
}

TEST(Safetensors, DamagedFilesAreRejected) {
  expect_user_error([] { parse_safetensors("1234567", "f"); },
                    "f: too short for a safetensors file");
  expect_user_error([] { parse_safetensors(std::string("\xff\0\0\0\0\0\0\0{", 9), "f"); },
                    "f: the header is cut off");
  expect_user_error([] { parse_safetensors(std::string(9, '\x7f'), "f"); },
                    "f: not a safetensors file (header over 100 MB)");
  survives_damage(reference_file(), [](const std::string& b) { parse_safetensors(b, "f"); });
}

TEST(Safetensors, WritingMistakesAreNamed) {
  TempDir dir;
  const std::string path = dir.file("a");
  const Tensor t(f32, {1});
  expect_user_error(
      [&] {
        write_safetensors(path, {{"w", t}, {"w", t}});
      },
      "two tensors cannot both be named 'w'");
  expect_user_error([&] { write_safetensors(path, {{"__metadata__", t}}); }, "be named");
  expect_user_error(
      [&] {
        write_safetensors(path, {{"\xff", t}});
      },
      "a tensor's name or a metadata entry is not UTF-8");
  expect_user_error(
      [&] {
        write_safetensors(path, {}, {{"m", std::string(100'000'000, 'a')}});
      },
      "metadata, such as categories, take 100000064 bytes; the format allows 100000000");
  expect_user_error([&] { read_safetensors(path); }, "No such file or directory");
  expect_user_error([&] { read_safetensors(dir.path()); }, "not a regular file");
}

TEST(ByteSource, NoticesAFileThatIsCutOffWhileItIsRead) {
  const TempDir dir;
  const std::string path = dir.file("cut");
  write_file_atomically(path, std::string(100, 'x'));
  const FileBytes bytes(path);
  std::filesystem::resize_file(path, 40);
  std::vector<std::byte> room(50);
  bytes.read(0, std::span(room).first(40));
  expect_user_error([&] { bytes.read(0, room); }, "it became shorter while it was read");
}

}  // namespace
}  // namespace fluid::safetensors_test
