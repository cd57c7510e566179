// Ops on the rows that a step reads, against loops over their definitions.

#include "tests/ops/samples/lines.h"

namespace fluid::testing::sparse_samples {
namespace {

OpTest coalesce_rows_test() {
  OpTest t;
  t.op = "coalesce_rows";
  const auto sample = [&](Tensor index, int64_t updates, int64_t width, int64_t rows,
                          std::vector<int> batch, bool weighted = false) {
    const Extents shape = index.shape();
    Sample s{
        {std::move(index), random_tensor({updates, width})}, {{"rows", rows}}, std::move(batch)};
    if (weighted) s.inputs.push_back(random_tensor(shape, -2, 2, 1));
    t.samples.push_back(std::move(s));
  };
  sample(whole_tensor({37}, -1, 12), 37, 3, 11, {});     // some out of range
  sample(whole_tensor({21}, 0, 1000), 7, 5, 1000, {});   // few rows are equal
  sample(whole_tensor({24}, 0, 3), 6, 17, 3, {}, true);  // most are
  sample(whole_tensor({17}, 0, 5), 17, 4, 5, {0, 0, 0}, true);
  sample(whole_tensor({5}, 2, 3), 5, 1, 3, {});  // all are
  sample(whole_tensor({1}, 0, 1), 1, 2, 1, {});
  sample(whole_tensor({0}, 0, 1), 0, 3, 5, {});
  sample(whole_tensor({0}, 0, 1), 3, 3, 5, {}, true);
  t.reference = [](const Sample& s) {
    const Tensor &index = s.inputs[0], &updates = s.inputs[1];
    const int64_t n = index.numel(), width = updates.shape()[1];
    const auto rows = s.attrs.get<int64_t>("rows");
    Tensor found(i64, {n}), sums(f64, {n, width});
    for (int64_t p = 0; p < n; ++p) {
      const auto row = static_cast<int64_t>(index.at(p));
      bool is_first = row >= 0 && row < rows;
      for (int64_t q = 0; q < p; ++q) is_first = is_first && index.at(q) != index.at(p);
      found.as<int64_t>()[static_cast<size_t>(p)] = is_first ? row : -1;
      for (int64_t q = p; is_first && q < n; ++q) {
        if (index.at(q) != index.at(p)) continue;
        const double weight = s.inputs.size() > 2 ? s.inputs[2].at(q) : 1;
        for (int64_t i = 0; i < width; ++i) {
          sums.as<double>()[static_cast<size_t>(p * width + i)] +=
              weight * updates.at(q / (n / updates.shape()[0]) * width + i);
        }
      }
    }
    return std::vector{found, sums};
  };
  t.slack = 4;
  const Type index = {i64, {6}, {}}, updates = {f32, {3, 2}, {}};
  const Attrs rows = {{"rows", int64_t{5}}};
  t.bad = {{{{i32, {6}, {}}, updates},
            rows,
            "coalesce_rows: expects an index i64[n] and updates [m, D], got i32[6] and f32[3, 2]"},
           {{index, {f32, {4, 2}, {}}},
            rows,
            "coalesce_rows: the number of indices of i64[6] is not a multiple of the updates of "
            "f32[4, 2]"},
           {{index, updates, {f32, {3}, {}}},
            rows,
            "coalesce_rows: the weights do not fit to index i64[6]"},
           {{index, updates},
            {{"rows", int64_t{0}}},
            "coalesce_rows: attribute 'rows' must be positive"}};
  return t;
}

OpTest index_copy_test() {
  OpTest t;
  t.op = "index_copy";
  const auto sample = [&](Extents x, const std::vector<int64_t>& index, std::vector<int> batch) {
    const auto n = std::ssize(index);
    t.samples.push_back(
        {{random_tensor(x), Tensor::of<int64_t>({n}, index), random_tensor({n, x[1]}, -1, 1, 1)},
         {},
         std::move(batch)});
  };
  sample({5, 3}, {4, -1, 0, 5}, {});
  sample({37, 17}, {36, 7, 2}, {-1, 0, 0});
  sample({3, 1}, {1, 2, 0}, {});
  sample({3, 2}, {}, {});
  sample({0, 2}, {0}, {});
  t.reference = [](const Sample& s) {
    Tensor y = s.inputs[0].copy();
    const int64_t rows = y.shape()[0], width = y.shape()[1];
    for (int64_t n = 0; n < s.inputs[1].numel(); ++n) {
      const auto row = static_cast<int64_t>(s.inputs[1].at(n));
      for (int64_t i = 0; row >= 0 && row < rows && i < width; ++i) {
        y.as<double>()[static_cast<size_t>(row * width + i)] = s.inputs[2].at(n * width + i);
      }
    }
    return std::vector{y};
  };
  const Type x = {f32, {5, 3}, {}}, index = {i64, {2}, {}}, source = {f32, {2, 3}, {}};
  t.bad = {
      {{{f32, {5}, {}}, index, source},
       {},
       "index_copy: x must be a matrix without the batch dimension, not f32[5]"},
      {{x, {i32, {2}, {}}, source}, {}, "index_copy: the index must be i64[n], not i32[2]"},
      {{x, index, {f32, {2, 2}, {}}}, {}, "index_copy: expects rows f32[2, 3], got f32[2, 2]"}};
  return t;
}

OpTest gather_rows_test() {
  OpTest t;
  t.op = "gather_rows";
  const auto sample = [&](Extents table, Tensor rows, std::vector<int> batch) {
    t.samples.push_back({{random_tensor(std::move(table)), std::move(rows)}, {}, std::move(batch)});
  };
  sample({5, 3}, whole_tensor({11}, -1, 6), {});
  sample({37, 17}, whole_tensor({7}, -1, 37), {-1, 0});
  sample({1, 1}, whole_tensor({3}, -1, 1), {});
  sample({3, 2}, whole_tensor({0}, 0, 1), {});
  t.reference = [](const Sample& s) {
    const Tensor &table = s.inputs[0], &rows = s.inputs[1];
    const int64_t count = table.shape()[0], width = table.shape()[1];
    Tensor y(f64, {rows.numel(), width});
    for (int64_t n = 0; n < rows.numel(); ++n) {
      const auto row = static_cast<int64_t>(rows.at(n));
      for (int64_t i = 0; row >= 0 && row < count && i < width; ++i) {
        y.as<double>()[static_cast<size_t>(n * width + i)] = table.at(row * width + i);
      }
    }
    return std::vector{y};
  };
  const Type table = {f32, {5, 3}, {}}, rows = {i64, {2}, {}};
  t.bad = {{{{f32, {kBatch, 3}, {}}, rows},
            {},
            "gather_rows: the table must be a matrix without the batch dimension, not f32[?, 3]"},
           {{table, {i64, {2, 1}, {}}},
            {},
            "gather_rows: the row numbers must be i64[n], not i64[2, 1]"}};
  return t;
}

OpTest place_rows_test() {
  OpTest t;
  t.op = "place_rows";
  const auto sample = [&](Extents x, int64_t start, int64_t rows, std::vector<int> batch) {
    t.samples.push_back({{random_tensor(x), Tensor::of<int64_t>({}, std::vector{start})},
                         {{"rows", rows}},
                         std::move(batch)});
  };
  sample({5, 3}, 2, 11, {});
  sample({7}, 0, 7, {});
  sample({3, 17}, 9, 10, {});  // two rows are out of range
  sample({4, 2}, -1, 5, {0, -1});
  sample({1, 1}, 3, 4, {0, -1});
  sample({0, 2}, 1, 3, {});
  sample({2, 3, 2}, 1, 0, {});
  t.reference = [](const Sample& s) {
    std::vector<int64_t> shape = s.inputs[0].shape();
    const int64_t n = shape[0], rows = s.attrs.get<int64_t>("rows");
    const auto start = static_cast<int64_t>(s.inputs[1].at(0));
    shape[0] = rows;
    Tensor y(f64, shape);
    const int64_t width = rows == 0 ? 0 : y.numel() / rows;
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t i = 0; start + row >= 0 && start + row < rows && i < width; ++i) {
        y.as<double>()[static_cast<size_t>((start + row) * width + i)] =
            s.inputs[0].at(row * width + i);
      }
    }
    return std::vector{y};
  };
  const Type x = {f32, {5, 3}, {}}, start = {i64, {}, {}};
  const Attrs rows = {{"rows", int64_t{9}}};
  t.bad = {
      {{{f32, {}, {}}, start},
       rows,
       "place_rows: x must be a numeric tensor of rank >= 1, not f32[]"},
      {{x, {i32, {}, {}}}, rows, "place_rows: start must be i64[], not i32[]"},
      {{x, start}, {{"rows", int64_t{-1}}}, "place_rows: attribute 'rows' must not be negative"},
      {{{f32, {5, kBatch}, {}}, start},
       rows,
       "place_rows: only dimension 0 of x may be the batch: f32[5, ?]"}};
  return t;
}

const AddOpTest kGatherRows(gather_rows_test());
const AddOpTest kPlaceRows(place_rows_test());
const AddOpTest kCoalesceRows(coalesce_rows_test());
const AddOpTest kIndexCopy(index_copy_test());

}  // namespace
}  // namespace fluid::testing::sparse_samples
