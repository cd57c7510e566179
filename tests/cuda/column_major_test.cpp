#include "executor/cuda/column_major.h"

#include <gtest/gtest.h>

#include <vector>

namespace fluid::cuda::column_major_test {
namespace {

/// A product whose rows and matrices have gaps between them.
FluidGpuMatmul product_of(bool transpose_a, bool transpose_b, int64_t count) {
  FluidGpuMatmul p = {.operands = fluid_gpu_f32,
                      .result = fluid_gpu_f32,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .m = 3,
                      .n = 4,
                      .k = 5,
                      .a_row = transpose_a ? 6 : 7,
                      .b_row = transpose_b ? 8 : 9,
                      .result_row = 10,
                      .count = count};
  p.a_matrix = (transpose_a ? p.k : p.m) * p.a_row + 1;
  p.b_matrix = (transpose_b ? p.n : p.k) * p.b_row + 2;
  p.result_matrix = p.m * p.result_row + 3;
  return p;
}

using Numbers = std::vector<float>;

/// What the table says a product is.
float by_rows(const FluidGpuMatmul& p, const Numbers& a, const Numbers& b, int64_t matrix,
              int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    const int64_t at_a = p.transpose_a ? k * p.a_row + row : row * p.a_row + k;
    const int64_t at_b = p.transpose_b ? column * p.b_row + k : k * p.b_row + column;
    sum += a[static_cast<size_t>(matrix * p.a_matrix + at_a)] *
           b[static_cast<size_t>(matrix * p.b_matrix + at_b)];
  }
  return sum;
}

size_t place(const ColumnMajor& m, int64_t matrix, int64_t row, int64_t column) {
  EXPECT_LT(row, m.rows);
  EXPECT_LT(column, m.columns);
  return static_cast<size_t>(matrix * m.step + column * m.leading + row);
}

/// What cuBLASLt says one is, where it finds all results.
Numbers by_columns(const ColumnMajorProduct& p, const Numbers& a, const Numbers& b, int64_t count,
                   size_t elements) {
  Numbers result(elements, -1);
  const int64_t inner = p.transpose_second ? p.second.columns : p.second.rows;
  for (int64_t matrix = 0; matrix < count; ++matrix) {
    for (int64_t row = 0; row < p.result.rows; ++row) {
      for (int64_t column = 0; column < p.result.columns; ++column) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          const size_t first =
              p.transpose_first ? place(p.first, matrix, k, row) : place(p.first, matrix, row, k);
          const size_t second = p.transpose_second ? place(p.second, matrix, column, k)
                                                   : place(p.second, matrix, k, column);
          sum += b[first] * a[second];
        }
        result[place(p.result, matrix, row, column)] = sum;
      }
    }
  }
  return result;
}

Numbers numbers(int64_t count) {
  Numbers x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + 3) % 11) - 5;
  return x;
}

TEST(ColumnMajor, IsTheSameProduct) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t count : {1, 2}) {
        const FluidGpuMatmul p = product_of(transpose_a, transpose_b, count);
        ASSERT_EQ(fault_of(p), "");
        const Numbers a = numbers(count * p.a_matrix), b = numbers(count * p.b_matrix);
        Numbers expected(static_cast<size_t>(count * p.result_matrix), -1);
        for (int64_t matrix = 0; matrix < count; ++matrix) {
          for (int64_t row = 0; row < p.m; ++row) {
            for (int64_t column = 0; column < p.n; ++column) {
              const int64_t at = matrix * p.result_matrix + row * p.result_row + column;
              expected[static_cast<size_t>(at)] = by_rows(p, a, b, matrix, row, column);
            }
          }
        }
        EXPECT_EQ(by_columns(column_major(p), a, b, count, expected.size()), expected)
            << transpose_a << transpose_b << count;
      }
    }
  }
}

TEST(ColumnMajor, TakesBAsTheFirstMatrix) {
  const ColumnMajorProduct found = column_major(product_of(true, false, 2));
  const ColumnMajorProduct expected = {
      .first = {.rows = 4, .columns = 5, .leading = 9, .step = 47},
      .second = {.rows = 3, .columns = 5, .leading = 6, .step = 31},
      .result = {.rows = 4, .columns = 3, .leading = 10, .step = 33},
      .transpose_second = true};
  EXPECT_EQ(found, expected);
}

TEST(ColumnMajor, ProductsThatThereCannotBeHaveAFault) {
  const auto fault = [](auto change) {
    FluidGpuMatmul p = product_of(false, false, 2);
    change(p);
    return fault_of(p);
  };
  using P = FluidGpuMatmul;
  EXPECT_EQ(fault([](P& p) { p.bias = p.relu = 1; }), "");
  EXPECT_EQ(fault([](P& p) { p.adds = 1; }), "");
  EXPECT_EQ(fault([](P& p) { p.operands = fluid_gpu_bf16; }), "");
  EXPECT_EQ(fault([](P& p) { p.operands = static_cast<FluidGpuDtype>(4); }),
            "its dtype is invalid");
  EXPECT_EQ(fault([](P& p) { p.result = fluid_gpu_f16; }),
            "the dtype of its result is neither that of its operands nor f32 for half-precision "
            "operands");
  EXPECT_EQ(fault([](P& p) { p.k = 0; }), "a matrix has no elements");
  EXPECT_EQ(fault([](P& p) { p.count = 0; }), "its number of matrices is out of range");
  EXPECT_EQ(fault([](P& p) { p.count = 65536; }), "its number of matrices is out of range");
  EXPECT_EQ(fault([](P& p) { p.adds = p.bias = 1; }), "it has an addend and a bias or a relu");
  EXPECT_EQ(fault([](P& p) {
              p.operands = p.result = fluid_gpu_f64;
              p.relu = 1;
            }),
            "it has a bias or a relu in f64");
  for (const auto part : {&P::a_row, &P::b_row, &P::result_row}) {
    EXPECT_EQ(fault([&](P& p) { p.*part = 2; }), "rows or matrices overlap");
  }
  for (const auto part : {&P::a_matrix, &P::b_matrix, &P::result_matrix}) {
    EXPECT_EQ(fault([&](P& p) { p.*part = 12; }), "rows or matrices overlap");
  }
}

}  // namespace
}  // namespace fluid::cuda::column_major_test
