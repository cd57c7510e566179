// Ops that gather and combine slices at indices, against loops over their definitions.

#include <algorithm>

#include "tests/ops/samples/lines.h"

namespace fluid::testing::scatter_samples {
namespace {

void combine(double& element, double update, const std::string& reduce) {
  element = reduce == "add"   ? element + update
            : reduce == "mul" ? element * update
            : reduce == "max" ? std::max(element, update)
            : reduce == "min" ? std::min(element, update)
                              : update;
}

/// The shapes of gather_nd and scatter_nd as products of extents.
struct Slices {
  int64_t batch = 1, positions = 1, depth = 0, rows = 1, inner = 1;
  Extents shape, indexed;
  Slices(const Sample& s) {
    const Extents &x = s.inputs[0].shape(), &index = s.inputs[1].shape();
    const auto dims = static_cast<size_t>(s.attrs.get_or<int64_t>("batch_dims", 0));
    depth = index.back();
    shape.assign(index.begin(), index.end() - 1);
    for (size_t d = 0; d < x.size(); ++d) {
      const bool is_indexed = d >= dims && d < dims + static_cast<size_t>(depth);
      (d < dims ? batch : is_indexed ? rows : inner) *= x[d];
      if (is_indexed) indexed.push_back(x[d]);
      if (d >= dims && !is_indexed) shape.push_back(x[d]);
    }
    for (size_t d = dims; d + 1 < index.size(); ++d) positions *= index[d];
  }
  /// Calls `visit` with offsets of corresponding elements of x and of the slices.
  void for_each(const Tensor& index, const std::function<void(int64_t x, int64_t slice)>& visit) {
    for (int64_t p = 0; p < batch * positions; ++p) {
      int64_t row = 0;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t extent = indexed[static_cast<size_t>(d)];
        const auto given = static_cast<int64_t>(index.at(p * depth + d));
        row = row * extent + std::clamp<int64_t>(given, 0, extent - 1);
      }
      for (int64_t i = 0; i < inner; ++i) {
        visit((p / positions * rows + row) * inner + i, p * inner + i);
      }
    }
  }
};

OpTest gather_nd_test() {
  OpTest t;
  t.op = "gather_nd";
  const auto sample = [&](Extents x, Tensor index, int64_t batch_dims, std::vector<int> batch) {
    t.samples.push_back({{random_tensor(std::move(x)), std::move(index)},
                         {{"batch_dims", batch_dims}},
                         std::move(batch)});
  };
  sample({3, 3, 2}, whole_tensor({5, 2}, 0, 3), 0, {});
  sample({5}, whole_tensor({1}, 0, 5, i32), 0, {});
  sample({3, 2, 5}, whole_tensor({3, 2, 1}, 0, 2, u8), 1, {0, 0});
  sample({3, 2}, whole_tensor({7, 1}, 0, 3), 0, {-1, 0});
  sample({2, 3, 3}, whole_tensor({2, 3, 1}, 0, 3), 2, {});
  sample({3, 2}, whole_tensor({2, 0}, 0, 1), 0, {});
  sample({3, 2}, whole_tensor({0, 2}, 0, 1), 0, {});
  t.reference = [](const Sample& s) {
    Slices slices(s);
    Tensor y(f64, slices.shape);
    slices.for_each(s.inputs[1],
                    [&](int64_t x, int64_t slice) { at(y, slice) = s.inputs[0].at(x); });
    return std::vector{y};
  };
  const Type x = {f32, {3, 2}, {}};
  t.bad = {{{x, {f32, {2}, {}}},
            {},
            "gather_nd: the index must be an integer tensor [..., K], not f32[2]"},
           {{x, {i64, {4, 3}, {}}},
            {},
            "gather_nd: index i64[4, 3] does not fit to f32[3, 2] with 0 batch dimensions"},
           {{{f32, {kBatch, 2}, {}}, {i64, {4, 1}, {}}},
            {},
            "gather_nd: the batch dimension of f32[?, 2] cannot be indexed"},
           {{{f32, {2, kBatch}, {}}, {i64, {kBatch, 1}, {}}},
            {},
            "gather_nd: f32[2, ?] and index i64[?, 1] both have the batch dimension"},
           {{{f32, {0, 2}, {}}, {i64, {4, 1}, {}}},
            {},
            "gather_nd: an indexed dimension of f32[0, 2] is empty"}};
  return t;
}

OpTest gather_nd_outside_test() {
  OpTest t = gather_nd_test();
  t.samples = {{{random_tensor({3, 5}), whole_tensor({7, 2}, -2, 7)}, {}, {}}};
  t.gradient = false;  // an index out of range is rejected
  t.bad = {};
  return t;
}

OpTest scatter_nd_test() {
  OpTest t;
  t.op = "scatter_nd";
  for (const char* reduce : {"none", "add", "mul", "max", "min"}) {
    const auto sample = [&](Extents x, Tensor index, int64_t batch_dims, std::vector<int> batch) {
      Sample s{{random_tensor(std::move(x)), std::move(index)},
               {{"batch_dims", batch_dims}, {"reduce", std::string(reduce)}},
               std::move(batch)};
      s.inputs.push_back(random_tensor(Slices(s).shape, -2, 2, 3));
      t.samples.push_back(s);
    };
    // Distinct indices, where only the last of equal ones counts.
    sample({5, 2}, Tensor::of<int64_t>({3, 1}, std::vector<int64_t>{4, 0, 2}), 0, {});
    sample({2, 3}, Tensor::of<int32_t>({2, 2}, std::vector<int32_t>{1, 2, 0, 1}), 0, {});
    sample({0, 2}, whole_tensor({0, 1}, 0, 1), 0, {});
    if (std::string(reduce) == "none") continue;
    sample({3, 2, 5}, whole_tensor({3, 3, 1}, 0, 2, u8), 1, {0, 0, 0});
  }
  t.samples.push_back({{random_tensor({70}), whole_tensor({13, 1}, 0, 70), random_tensor({13})},
                       {{"reduce", std::string("add")}},
                       {}});
  t.samples.push_back({{random_tensor({3, 2}), whole_tensor({0, 1}, 0, 1), random_tensor({0, 2})},
                       {{"reduce", std::string("add")}},
                       {}});
  t.reference = [](const Sample& s) {
    Tensor y = s.inputs[0].copy();
    Slices(s).for_each(s.inputs[1], [&](int64_t x, int64_t slice) {
      combine(at(y, x), s.inputs[2].at(slice), s.attrs.get<std::string>("reduce"));
    });
    return std::vector{y};
  };
  t.slack = 4;
  const Type x = {f32, {3, 2}, {}};
  t.bad = {{{{boolean, {3}, {}}, {i64, {1, 1}, {}}, {boolean, {1}, {}}},
            {},
            "scatter_nd: operand 0 must be a numeric tensor, not bool[3]"},
           {{x, {i64, {4, 1}, {}}, x}, {}, "scatter_nd: expects updates f32[4, 2], got f32[3, 2]"},
           {{x, {i64, {3, 1}, {}}, x},
            {{"reduce", std::string("mean")}},
            R"(scatter_nd: reduce must be "none", "add", "mul", "max" or "min", not "mean")"}};
  return t;
}

OpTest scatter_nd_outside_test() {
  OpTest t = scatter_nd_test();
  t.samples = {{{random_tensor({3, 5}), whole_tensor({7, 2}, -2, 7), random_tensor({7})},
                {{"reduce", std::string("add")}},
                {}}};
  t.gradient = false;
  t.bad = {};
  return t;
}

OpTest index_add_test() {
  OpTest t;
  t.op = "index_add";
  const auto sample = [&](Extents x, Tensor index, int64_t axis, double alpha,
                          std::vector<int> batch) {
    Extents shape = x;
    shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(x) : axis)] = index.numel();
    t.samples.push_back({{random_tensor(std::move(x)), std::move(index), random_tensor(shape)},
                         {{"axis", axis}, {"alpha", alpha}},
                         std::move(batch)});
  };
  sample({5, 3}, whole_tensor({7}, 0, 5), 0, 1, {});
  sample({3, 5}, whole_tensor({4}, 0, 5, i32), -1, -2, {0, -1, 0});
  sample({2, 3, 7}, whole_tensor({2}, 0, 3, u8), 1, 3, {});
  sample({5, 2}, whole_tensor({7}, 0, 5), 0, 1, {-1, 0, 0});
  sample({5, 3}, whole_tensor({0}, 0, 5), 0, 1, {});
  sample({0, 3}, whole_tensor({0}, 0, 5), 0, 1, {});
  t.reference = [](const Sample& s) {
    const auto axis = s.attrs.get<int64_t>("axis");
    const Lines to(s.inputs[0].shape(), axis), from(s.inputs[2].shape(), axis);
    Tensor y = s.inputs[0].copy();
    from.for_each([&](int64_t o, int64_t i) {
      for (int64_t n = 0; n < from.extent; ++n) {
        const auto row = static_cast<int64_t>(s.inputs[1].at(n));
        at(y, to.place(o, row, i)) +=
            s.attrs.get<double>("alpha") * s.inputs[2].at(from.place(o, n, i));
      }
    });
    return std::vector{y};
  };
  t.slack = 4;
  const Type x = {f32, {3, 2}, {}}, batched = {f32, {2, kBatch}, {}};
  t.bad = {
      {{x, {f32, {2}, {}}, x}, {}, "index_add: the index must be an integer vector, not f32[2]"},
      {{x, {i64, {2}, {}}, x},
       {},
       "index_add: expects updates f32[2, 2], one slice per index, got f32[3, 2]"},
      {{batched, {i64, {kBatch}, {}}, batched},
       {},
       "index_add: f32[2, ?] and index i64[?] both have the batch dimension"},
      {{{i64, {3}, {}}, {i64, {3}, {}}, {i64, {3}, {}}},
       {{"alpha", 0.5}},
       "index_add: attribute 'alpha' is not representable in i64: 0.5"},
      {{x, {i64, {3}, {}}, x},
       {{"alpha", NAN}},
       "index_add: attribute 'alpha' must be finite, not nan"}};
  return t;
}

OpTest segment_sum_test() {
  OpTest t;
  t.op = "segment_sum";
  const auto sample = [&](Extents x, Tensor ids, int64_t segments, std::vector<int> batch) {
    t.samples.push_back({{random_tensor(std::move(x)), std::move(ids)},
                         {{"segments", segments}},
                         std::move(batch)});
  };
  sample({7, 3}, whole_tensor({7}, 0, 4), 4, {});
  sample({7}, whole_tensor({7}, -1, 4, i32), 3, {});
  sample({5, 2, 3}, whole_tensor({5, 2}, 0, 3, u8), 3, {0, 0});
  sample({3, 2}, whole_tensor({}, 0, 2), 2, {});
  sample({3, 2}, whole_tensor({3}, 0, 2), 0, {});
  sample({0, 2}, whole_tensor({0}, 0, 2), 2, {});
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &ids = s.inputs[1];
    const auto segments = s.attrs.get<int64_t>("segments");
    Extents shape(x.shape().begin() + std::ssize(ids.shape()), x.shape().end());
    const int64_t inner = numel_of(shape);
    shape.insert(shape.begin(), segments);
    Tensor y(f64, shape);
    for (int64_t n = 0; n < ids.numel(); ++n) {
      const auto id = static_cast<int64_t>(ids.at(n));
      for (int64_t i = 0; id >= 0 && id < segments && i < inner; ++i) {
        at(y, id * inner + i) += x.at(n * inner + i);
      }
    }
    return std::vector{y};
  };
  t.slack = 4;
  t.bad = {{{{f32, {3, 2}, {}}, {i64, {2}, {}}},
            {{"segments", int64_t{2}}},
            "segment_sum: the segment ids must be an integer tensor whose shape starts that of "
            "f32[3, 2], not i64[2]"},
           {{{f32, {3, 2}, {}}, {i64, {3}, {}}},
            {{"segments", int64_t{-2}}},
            "segment_sum: attribute 'segments' must not be negative"},
           {{{i64, {3, 2}, {}}, {i64, {3}, {}}},
            {{"segments", int64_t{2}}},
            "segment_sum: operand 0 must be a float tensor, not i64[3, 2]"}};
  return t;
}

const AddOpTest kGatherNd(gather_nd_test());
const AddOpTest kGatherNdOutside(gather_nd_outside_test());
const AddOpTest kScatterNd(scatter_nd_test());
const AddOpTest kScatterNdOutside(scatter_nd_outside_test());
const AddOpTest kIndexAdd(index_add_test());
const AddOpTest kSegmentSum(segment_sum_test());

}  // namespace
}  // namespace fluid::testing::scatter_samples
