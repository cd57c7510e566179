#include "frontend/files/npy.h"

#include <gtest/gtest.h>

#include "ir/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/mutate.h"
#include "tests/support/temp_dir.h"

namespace fluid::npy_test {
namespace {

TEST(Npy, WritesNumPysBytes) {
  TempDir dir;
  write_npy(dir.file("a"), Tensor::of<float>({2}, std::vector<float>{0, 1}));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  EXPECT_EQ(read_file(dir.file("a")),
            npy_bytes(header + "\n", std::string("\0\0\0\0\0\0\x80\x3f", 8)));
}

TEST(Npy, EveryDtypeAndRankRoundTrips) {
  TempDir dir;
  for (DType d : {f64, f32, f16, i64, i32, u8, i8, boolean}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {2}, {1, 3, 2}, {0, 4}}) {
      Tensor t(d, shape);
      if (t.numel() > 0) t = Tensor::of<double>(shape, std::vector<double>(t.numel(), 1)).cast(d);
      write_npy(dir.file("a"), t);
      const Tensor back = read_npy(dir.file("a"));
      EXPECT_EQ(back.str(), t.str());
      for (int64_t i = 0; i < t.numel(); ++i) EXPECT_EQ(back.at(i), 1.0);
    }
  }
  expect_user_error([&] { write_npy(dir.file("a"), Tensor(bf16, {1})); },
                    "NumPy has no bf16; cast to f32 before saving");
}

TEST(Npy, ReadsFortranOrderAndAllVersions) {
  const std::string data("\0\3\1\4\2\5", 6);
  for (char major : {1, 2, 3}) {
    const Tensor t = parse_npy(
        npy_bytes("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", data, major),
        "f");
    EXPECT_EQ(t.str(), "u8[2, 3]");
    for (int i = 0; i < 6; ++i) EXPECT_EQ(t.at(i), i);
  }
}

TEST(Npy, MistakesAreNamed) {
  const auto expect_error = [](const std::string& bytes, const std::string& message) {
    expect_user_error([&] { parse_npy(bytes, "f"); }, "f: " + message);
  };
  const auto header = [](const std::string& descr, const std::string& order,
                         const std::string& shape) {
    return npy_bytes(
        "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", "abcd");
  };
  expect_error("PK\3\4 not numpy", "not a .npy file");
  expect_error("\x93NUMPY", "cut off in the header");
  expect_error(npy_bytes("", "", 4), "version 4 of .npy is not read");
  expect_error(
      header("'>f4'", "False", "(1,)"),
      "dtype '>f4' is not read; use little-endian f8, f4, f2, i8, i4, i2, u4, u2, u1 or b1");
  expect_error(header("'|O'", "False", "(1,)"), "dtype '|O' is not read");
  expect_error(header("[('a', '<f4')]", "False", "(1,)"), "structured arrays are not read");
  expect_error(header("'<f4'", "0", "(1,)"), "fortran_order is neither True nor False");
  expect_error(header("'<f4'", "False", "(-1,)"), "the shape is malformed");
  expect_error(header("'<f4'", "False", "(99999999999999999999,)"), "the shape is malformed");
  expect_error(header("'<f4'", "False", "(4294967296, 4294967296)"),
               "the shape is larger than a 64-bit size");
  expect_error(header("'<f4'", "False", "(2,)"), "holds 4 bytes of data, but f32[2] takes 8");
  expect_error(header("'|b1'", "False", "(4,)"), "holds a bool that is neither 0 nor 1");
  expect_error(npy_bytes("{'descr': '<f4'}", ""),
               "the header needs descr, fortran_order and shape");
  expect_error(npy_bytes("{'descr': '<f4', 'descr': '<f4'}", ""),
               "the header has an unexpected key \"descr\"");
  expect_error(npy_bytes("{'descr': '<f4", ""), "the header is malformed: a string does not end");
  expect_error(npy_bytes("('descr')", ""), "the header is malformed: no '{' where expected");
  expect_error(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 5", "abcd"),
               "the header has trailing characters");
  std::string ones;
  for (int i = 0; i < 33; ++i) ones += "1,";
  expect_error(header("'<f4'", "False", "(" + ones + ")"), "more than 32 dimensions");
}

TEST(Npy, DamagedFilesAreRejected) {
  TempDir dir;
  write_npy(dir.file("a"), Tensor::of<int64_t>({3}, std::vector<int64_t>{1, 2, 3}));
  survives_damage(read_file(dir.file("a")), [](const std::string& b) { parse_npy(b, "f"); });
}

}  // namespace
}  // namespace fluid::npy_test
