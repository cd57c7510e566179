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
                      .a_row_stride = transpose_a ? 6 : 7,
                      .b_row_stride = transpose_b ? 8 : 9,
                      .result_row_stride = 10,
                      .count = count};
  p.a_matrix_stride = (transpose_a ? p.k : p.m) * p.a_row_stride + 1;
  p.b_matrix_stride = (transpose_b ? p.n : p.k) * p.b_row_stride + 2;
  p.result_matrix_stride = p.m * p.result_row_stride + 3;
  return p;
}

using Numbers = std::vector<float>;

/// Computes an element of the product as the row-major FluidGpuMatmul defines it.
float by_rows(const FluidGpuMatmul& p, const Numbers& a, const Numbers& b, int64_t matrix,
              int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    const int64_t at_a = p.transpose_a ? k * p.a_row_stride + row : row * p.a_row_stride + k;
    const int64_t at_b = p.transpose_b ? column * p.b_row_stride + k : k * p.b_row_stride + column;
    sum += a[static_cast<size_t>(matrix * p.a_matrix_stride + at_a)] *
           b[static_cast<size_t>(matrix * p.b_matrix_stride + at_b)];
  }
  return sum;
}

size_t place(const ColumnMajorLayout& m, int64_t matrix, int64_t row, int64_t column) {
  EXPECT_LT(row, m.rows);
  EXPECT_LT(column, m.columns);
  return static_cast<size_t>(matrix * m.batch_stride + column * m.leading_dimension + row);
}

/// Computes the product as cuBLASLt defines it, in column-major order.
Numbers by_columns(const ColumnMajorMatmul& p, const Numbers& a, const Numbers& b, int64_t count,
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

TEST(ColumnMajorLayout, IsTheSameProduct) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t count : {1, 2}) {
        const FluidGpuMatmul p = product_of(transpose_a, transpose_b, count);
        ASSERT_EQ(validation_error(p), "");
        const Numbers a = numbers(count * p.a_matrix_stride),
                      b = numbers(count * p.b_matrix_stride);
        Numbers expected(static_cast<size_t>(count * p.result_matrix_stride), -1);
        for (int64_t matrix = 0; matrix < count; ++matrix) {
          for (int64_t row = 0; row < p.m; ++row) {
            for (int64_t column = 0; column < p.n; ++column) {
              const int64_t at =
                  matrix * p.result_matrix_stride + row * p.result_row_stride + column;
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

TEST(ColumnMajorLayout, TakesBAsTheFirstMatrix) {
  const ColumnMajorMatmul found = column_major(product_of(true, false, 2));
  const ColumnMajorMatmul expected = {
      .first = {.rows = 4, .columns = 5, .leading_dimension = 9, .batch_stride = 47},
      .second = {.rows = 3, .columns = 5, .leading_dimension = 6, .batch_stride = 31},
      .result = {.rows = 4, .columns = 3, .leading_dimension = 10, .batch_stride = 33},
      .transpose_second = true};
  EXPECT_EQ(found, expected);
}

TEST(ColumnMajorLayout, ProductsThatThereCannotBeHaveAFault) {
  const auto fault = [](auto change) {
    FluidGpuMatmul p = product_of(false, false, 2);
    change(p);
    return validation_error(p);
  };
  using P = FluidGpuMatmul;
  EXPECT_EQ(fault([](P& p) { p.bias = p.relu = 1; }), "");
  EXPECT_EQ(fault([](P& p) { p.has_addend = 1; }), "");
  EXPECT_EQ(fault([](P& p) { p.operands = fluid_gpu_bf16; }), "");
  EXPECT_EQ(fault([](P& p) { p.operands = static_cast<FluidGpuDtype>(4); }),
            "its dtype is invalid");
  EXPECT_EQ(fault([](P& p) { p.result = fluid_gpu_f16; }),
            "the dtype of its result is neither that of its operands nor f32 for half-precision "
            "operands");
  EXPECT_EQ(fault([](P& p) { p.k = 0; }), "a matrix has no elements");
  EXPECT_EQ(fault([](P& p) { p.count = 0; }), "its number of matrices is out of range");
  EXPECT_EQ(fault([](P& p) { p.count = 65536; }), "its number of matrices is out of range");
  EXPECT_EQ(fault([](P& p) { p.has_addend = p.bias = 1; }),
            "it has an addend and a bias or a relu");
  EXPECT_EQ(fault([](P& p) {
              p.operands = p.result = fluid_gpu_f64;
              p.relu = 1;
            }),
            "it has a bias or a relu in f64");
  for (const auto part : {&P::a_row_stride, &P::b_row_stride, &P::result_row_stride}) {
    EXPECT_EQ(fault([&](P& p) { p.*part = 2; }), "rows or matrices overlap");
  }
  for (const auto part : {&P::a_matrix_stride, &P::b_matrix_stride, &P::result_matrix_stride}) {
    EXPECT_EQ(fault([&](P& p) { p.*part = 12; }), "rows or matrices overlap");
  }
}

}  // namespace
}  // namespace fluid::cuda::column_major_test
