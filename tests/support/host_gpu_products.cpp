#include "tests/support/host_gpu_products.h"

#include <algorithm>
#include <span>
#include <vector>

#include "tests/support/host_gpu_numbers.h"

namespace fluid::testing {
namespace {

constexpr uint64_t kMatmulMark = 0x686f7374;  ///< in choices that are the host's
constexpr int64_t kMatmulParts = 4;

bool is_half_precision(FluidGpuDtype number) {
  return number == fluid_gpu_f16 || number == fluid_gpu_bf16;
}

/// The operands of one matrix product in f64, row-major: a is [m, k], b is [k, n].
class MatrixOperands {
 public:
  MatrixOperands(const FluidGpuMatmul& p, const FluidGpuOperands& f, int64_t matrix)
      : n_(p.n), k_(p.k), is_f64_(p.operands == fluid_gpu_f64) {
    const bool rounds = p.operands == fluid_gpu_f32 && p.tf32 != 0;
    const auto read = [&](const void* data, int64_t i) {
      const double value = load_as_double(data, p.operands, i);
      return rounds ? as_tf32(value) : value;
    };
    const auto gather = [&](const void* data, int64_t rows, int64_t columns, int64_t row_stride,
                            int64_t column_stride, std::vector<double>& to) {
      to.reserve(static_cast<size_t>(rows * columns));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          to.push_back(read(data, row * row_stride + column * column_stride));
        }
      }
    };
    const bool at = p.transpose_a != 0, bt = p.transpose_b != 0;
    const auto matrix_of = [&](const void* data, int64_t stride) {
      return static_cast<const char*>(data) + matrix * stride * size_of(host_dtype(p.operands));
    };
    gather(matrix_of(f.a, p.a_matrix_stride), p.m, p.k, at ? 1 : p.a_row_stride,
           at ? p.a_row_stride : 1, a_);
    gather(matrix_of(f.b, p.b_matrix_stride), p.k, p.n, bt ? 1 : p.b_row_stride,
           bt ? p.b_row_stride : 1, b_);
  }

  /// Row `row` of the product, summed over k in [begin, end). Each partial sum is rounded to f32,
  /// except for operands in f64.
  std::vector<double> product_row(int64_t row, int64_t begin, int64_t end) const {
    if (is_f64_) return sums<double>(row, begin, end);
    const std::vector<float> rounded = sums<float>(row, begin, end);
    return {rounded.begin(), rounded.end()};
  }

 private:
  template <class T>
  std::vector<T> sums(int64_t row, int64_t begin, int64_t end) const {
    std::vector<T> sums(static_cast<size_t>(n_));
    for (int64_t k = begin; k < end; ++k) {
      const double a = a_[static_cast<size_t>(row * k_ + k)];
      const double* const b = b_.data() + k * n_;
      for (size_t j = 0; j < sums.size(); ++j) sums[j] = static_cast<T>(sums[j] + a * b[j]);
    }
    return sums;
  }

  int64_t n_, k_;
  bool is_f64_;
  std::vector<double> a_, b_;
};

void finish(const FluidGpuMatmul& p, const FluidGpuOperands& f, int64_t matrix, int64_t row,
            int64_t column, double value) {
  const int64_t at = matrix * p.result_matrix_stride + row * p.result_row_stride + column;
  if (p.has_addend != 0) value += load_as_double(f.addend, p.result, at);
  if (p.bias != 0) value += load_as_double(f.bias, p.result, column);
  if (p.relu != 0) value = value > 0 ? value : 0;  // 0 for a NaN, too
  store_from_double(f.result, p.result, at, value);
}

/// Calls visit(matrix, row, sums) for each row of the products, summed over k in [begin, end).
template <class Visit>
void for_each_row(const FluidGpuMatmul& p, const FluidGpuOperands& f, int64_t begin, int64_t end,
                  const Visit& visit) {
  for (int64_t matrix = 0; matrix < p.count; ++matrix) {
    const MatrixOperands operands(p, f, matrix);
    for (int64_t row = 0; row < p.m; ++row) {
      visit(matrix, row, operands.product_row(row, begin, end));
    }
  }
}

int64_t results(const FluidGpuMatmul& p) { return p.count * p.m * p.n; }
int64_t parts_bytes(const FluidGpuMatmul& p) { return kMatmulParts * results(p) * 8; }
bool is_split(const FluidGpuAlgorithm& choice) { return choice.opaque[1] > 1; }

/// From its first element to behind its last.
int64_t extent(int64_t rows, int64_t columns, int64_t row, int64_t matrix, int64_t count) {
  return (count - 1) * matrix + (rows - 1) * row + columns;
}

struct ProductExtents {
  int64_t a, b, result;
  explicit ProductExtents(const FluidGpuMatmul& p)
      : a(p.transpose_a != 0 ? extent(p.k, p.m, p.a_row_stride, p.a_matrix_stride, p.count)
                             : extent(p.m, p.k, p.a_row_stride, p.a_matrix_stride, p.count)),
        b(p.transpose_b != 0 ? extent(p.n, p.k, p.b_row_stride, p.b_matrix_stride, p.count)
                             : extent(p.k, p.n, p.b_row_stride, p.b_matrix_stride, p.count)),
        result(extent(p.m, p.n, p.result_row_stride, p.result_matrix_stride, p.count)) {}
};

}  // namespace

std::string host_fault(const FluidGpuMatmul& p) {
  const bool widens = is_half_precision(p.operands) && p.result == fluid_gpu_f32;
  if (p.result != p.operands && !widens) return "a product's result is of another kind";
  if (p.m < 1 || p.n < 1 || p.k < 1) return "a product of nothing";
  if (p.count < 1 || p.count > FLUID_GPU_MAX_MATMUL_BATCH) return "no products, or too many";
  const bool epilogue = p.bias != 0 || p.relu != 0;
  if (epilogue && (p.has_addend != 0 || p.operands == fluid_gpu_f64)) {
    return "a bias or a relu where there can be none";
  }
  const bool short_rows = p.a_row_stride < (p.transpose_a != 0 ? p.m : p.k) ||
                          p.b_row_stride < (p.transpose_b != 0 ? p.k : p.n) ||
                          p.result_row_stride < p.n;
  return short_rows ? "a row lies over the one before" : "";
}

std::vector<FluidGpuAlgorithm> host_choices(const FluidGpuMatmul& product, int64_t workspace) {
  std::vector<FluidGpuAlgorithm> choices;
  if (parts_bytes(product) <= workspace) {
    choices.push_back({.opaque = {kMatmulMark, kMatmulParts}, .workspace = parts_bytes(product)});
  }
  choices.push_back({.opaque = {kMatmulMark, 1}, .workspace = 0});
  return choices;
}

bool is_host_choice(const FluidGpuMatmul& product, const FluidGpuAlgorithm& choice) {
  const int64_t needed = is_split(choice) ? parts_bytes(product) : 0;
  return choice.opaque[0] == kMatmulMark && choice.workspace == needed;
}

std::vector<HostTouched> touched_by(const FluidGpuMatmul& p, const FluidGpuAlgorithm& choice,
                                    const FluidGpuOperands& f) {
  const ProductExtents extents(p);
  const int64_t in = size_of(host_dtype(p.operands)), out = size_of(host_dtype(p.result));
  std::vector<HostTouched> touched = {
      {f.a, in * extents.a}, {f.b, in * extents.b}, {f.result, out * extents.result}};
  if (p.has_addend != 0) touched.push_back({f.addend, out * extents.result});
  if (p.bias != 0) touched.push_back({f.bias, out * p.n});
  if (is_split(choice)) touched.push_back({f.workspace, choice.workspace});
  return touched;
}

std::vector<std::function<void()>> host_work(const FluidGpuMatmul& p,
                                             const FluidGpuAlgorithm& choice,
                                             const FluidGpuOperands& f) {
  if (!is_split(choice)) {
    return {[=] {
      for_each_row(p, f, 0, p.k, [&](int64_t matrix, int64_t row, std::span<const double> sums) {
        for (int64_t column = 0; column < p.n; ++column) {
          finish(p, f, matrix, row, column, sums[static_cast<size_t>(column)]);
        }
      });
    }};
  }
  auto* const parts = static_cast<double*>(f.workspace);  // [part][matrix][row][column]
  const auto add_parts = [=] {
    for (int64_t part = 0; part < kMatmulParts; ++part) {
      const int64_t begin = part * p.k / kMatmulParts, end = (part + 1) * p.k / kMatmulParts;
      for_each_row(p, f, begin, end,
                   [&](int64_t matrix, int64_t row, std::span<const double> sums) {
                     const int64_t at = part * results(p) + (matrix * p.m + row) * p.n;
                     std::copy(sums.begin(), sums.end(), parts + at);
                   });
    }
  };
  const auto add_up = [=] {
    for (int64_t i = 0; i < results(p); ++i) {
      double whole = 0;
      for (int64_t part = 0; part < kMatmulParts; ++part) whole += parts[part * results(p) + i];
      finish(p, f, i / (p.m * p.n), i / p.n % p.m, i % p.n, whole);
    }
  };
  return {add_parts, add_up};
}

}  // namespace fluid::testing
