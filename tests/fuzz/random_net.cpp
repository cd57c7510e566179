#include "tests/fuzz/random_net.h"

#include <algorithm>
#include <cmath>

#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::fuzz {
namespace {

template <size_t N, class T>
T one_of(Random& random, const T (&choices)[N]) {
  return choices[below(random, N)];
}

int64_t random_integer(Random& random) {
  static constexpr int64_t kExtremes[] = {-1, 7, 1 << 20, INT64_MAX, INT64_MIN, int64_t{1} << 62};
  static constexpr int64_t kPlain[] = {0, 0, 1, 1, 2, 3};
  return below(random, 6) == 0 ? one_of(random, kExtremes) : one_of(random, kPlain);
}

double random_real(Random& random) {
  static constexpr double kReals[] = {0.0, -0.0, 0.5, 1.0, -3.0, 1e300, 1e-300, INFINITY, NAN};
  return one_of(random, kReals);
}

/// Makes one attribute of its kind; lists get up to four entries.
struct Varied {
  Random& random;

  Attr operator()(bool) const { return below(random, 2) == 0; }
  Attr operator()(int64_t) const { return random_integer(random); }
  Attr operator()(double) const { return random_real(random); }
  Attr operator()(const std::string& like) const {
    static const char* const kWords[] = {"", "same", "max", "no such word"};
    return below(random, 2) == 0 ? like : std::string(one_of(random, kWords));
  }
  Attr operator()(const Type&) const { return random_type(random); }
  Attr operator()(const GraphRef& like) const { return like; }
  Attr operator()(const std::vector<int64_t>&) const {
    std::vector<int64_t> list;
    for (size_t n = below(random, 5); n > 0; --n) list.push_back(random_integer(random));
    return list;
  }
  Attr operator()(const std::vector<double>&) const {
    std::vector<double> list;
    for (size_t n = below(random, 4); n > 0; --n) list.push_back(random_real(random));
    return list;
  }
  Attr operator()(const std::vector<std::string>&) const {
    return std::vector<std::string>(below(random, 3), "x");
  }
};

void add_source(Random& random, ir::Graph& graph, Values& values) {
  static const char* const kSources[] = {"data", "param", "state"};
  const std::string symbol = "v" + std::to_string(graph.ops.size());
  const char* source = one_of(random, kSources);
  Type type = random_type(random);
  const bool variable = source != kSources[0];  // whose shape cannot depend on the batch
  for (Dim& d : type.shape) d.batch = d.batch && !variable;
  values.push_back(record_source(graph, source, symbol, type, {}, {}));
}

void try_op(Random& random, ir::Graph& graph, Values& values) {
  const auto table = op_table();
  const OpDef& def = table[below(random, table.size())];
  if (std::holds_alternative<Source>(*def.lower) || std::holds_alternative<Store>(*def.lower) ||
      std::holds_alternative<FusedOp>(*def.lower) || std::holds_alternative<Scan>(*def.lower) ||
      std::holds_alternative<CollectiveOp>(*def.lower)) {
    return;
  }
  Values operands;
  for (size_t i = 0; i < def.inputs->size(); ++i) {
    // Equal operands often have shapes that fit together.
    const bool same = i > 0 && below(random, 2) == 0;
    operands.push_back(same ? operands.back() : values[below(random, values.size())]);
  }
  Attrs attrs;
  for (const AttrDef& a : *def.attrs) {
    if (a.required || below(random, 4) == 0) attrs.set(a.name, random_attr(random, a.fallback));
  }
  try {
    const Values results = record(graph, *def.name, operands, attrs, {"net.cpp", 1});
    values.insert(values.end(), results.begin(), results.end());
  } catch (const UserError&) {
    // Most random operands do not fit. They must be rejected with a UserError.
  }
}

Value add_param(ir::Graph& graph, const Type& type) {
  return record_source(graph, "param", "w" + std::to_string(graph.ops.size()), type, {}, {});
}

/// The last value of so many dimensions, else a new feed.
Value image_or_rows(Random& random, ir::Graph& graph, const Values& values, size_t rank) {
  static constexpr int64_t kChannels[] = {1, 3, 8, 16, 20, 32, 64};
  static constexpr int64_t kExtents[] = {1, 4, 7, 8, 17, 28};
  for (size_t i = values.size(); i-- > 0 && below(random, 2) == 0;) {
    if (values[i].shape().size() == rank && is_float(values[i].dtype())) return values[i];
  }
  static constexpr DType kDTypes[] = {f32, f32, f32, f32, bf16, f64};
  const Dim n = below(random, 2) == 0 ? Dim(rank == 4 ? 4 : 64) : Dim::of_batch(1);
  Type type{one_of(random, kDTypes), {n, one_of(random, kChannels)}, {}};
  while (type.shape.size() < rank) type.shape.push_back(one_of(random, kExtents));
  return record_source(graph, "data", "x" + std::to_string(graph.ops.size()), type, {}, {});
}

Value random_conv(Random& random, ir::Graph& graph, const Values& values) {
  static constexpr int64_t kFilters[] = {1, 4, 16, 20, 32, 64};
  static constexpr int64_t kTaps[] = {1, 3, 3, 5};
  const Value x = image_or_rows(random, graph, values, 4);
  const int64_t channels = x.shape()[1].size, taps = one_of(random, kTaps);
  const int64_t groups = below(random, 6) == 0 ? std::max<int64_t>(channels, 1) : 1;
  const int64_t filters = one_of(random, kFilters) * groups;
  const Value w = add_param(graph, {x.dtype(), {filters, channels / groups, taps, taps}, {}});
  const Value y = conv2d(x, w,
                         {.stride = {one_of(random, {1, 1, 1, 2, 3})},
                          .padding = {one_of(random, {0, 1, 2, 7})},
                          .dilation = {one_of(random, {1, 1, 1, 2})},
                          .groups = groups});
  if (below(random, 3) == 0) {
    return max_pool2d(y, {.kernel = {one_of(random, {1, 2, 3})}, .stride = {2}});
  }
  return below(random, 2) == 0 ? y : y + add_param(graph, {x.dtype(), {filters, 1, 1}, {}});
}

Value random_product(Random& random, ir::Graph& graph, const Values& values) {
  static constexpr int64_t kUnits[] = {1, 10, 64, 100, 256};
  const Value x = image_or_rows(random, graph, values, 2 + below(random, 2));
  const int64_t units = one_of(random, kUnits);
  const bool transposed = below(random, 3) == 0;
  Shape shape = {x.shape().back(), units};
  if (transposed) std::swap(shape[0], shape[1]);
  const Value y = matmul(x, add_param(graph, {x.dtype(), shape, {}}), {.transpose_b = transposed});
  return below(random, 2) == 0 ? y : y + add_param(graph, {x.dtype(), {units}, {}});
}

/// Adds an op that libraries have kernels for, with or without a relu. Its operands have matching
/// types.
void add_library_op(Random& random, ir::Graph& graph, Values& values) {
  try {
    const Value y = below(random, 2) == 0 ? random_conv(random, graph, values)
                                          : random_product(random, graph, values);
    values.push_back(below(random, 2) == 0 ? y : relu(y));
  } catch (const UserError&) {
    // A window may be larger than its image.
  }
}

}  // namespace

Type random_type(Random& random) {
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 8, 8, 17};
  static constexpr DType kDTypes[] = {f32, f32, f32, f64, f16, bf16, i64, i32, u8, i8, boolean};
  Type type;
  type.dtype = one_of(random, kDTypes);
  const size_t rank = below(random, 5);
  for (size_t i = 0; i < rank; ++i) type.shape.push_back(one_of(random, kSizes));
  if (rank > 0 && below(random, 2) == 0) type.shape[0] = Dim::of_batch(1 + below(random, 2));
  return type;
}

Attr random_attr(Random& random, const Attr& like) { return std::visit(Varied{random}, like); }

std::unique_ptr<ir::Program> random_net(Random& random, int ops) {
  auto program = std::make_unique<ir::Program>("fuzz");
  ir::Graph& graph = program->main();
  Values values;
  for (int i = 0; i < 3; ++i) add_source(random, graph, values);
  for (int i = 0; i < 50 * ops && static_cast<int>(graph.ops.size()) < ops; ++i) {
    if (below(random, 20) == 0) {
      add_source(random, graph, values);
    } else {
      try_op(random, graph, values);
    }
  }
  if (below(random, 2) == 0) {  // last, so that the output, and a loss, depend on them
    for (size_t n = 1 + below(random, 3); n > 0; --n) add_library_op(random, graph, values);
  }
  graph.outputs.push_back({"out", values.back()});
  graph.outputs.push_back({"other", values[below(random, values.size())]});
  return program;
}

}  // namespace fluid::fuzz
