#include "tests/ir/random_program.h"

#include <bit>
#include <limits>
#include <random>

namespace fluid {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : engine_(seed) {}

  std::unique_ptr<ir::Program> program(int ops) {
    auto program = std::make_unique<ir::Program>(any(3) ? "net" : text());
    const int bodies = any(4);
    for (int i = 0; i < bodies; ++i) {
      program->add_graph(any(3) ? "g" + std::to_string(i) : text() + std::to_string(i));
    }
    // A graph refers to later ones only, so no reference runs in a circle.
    for (size_t g = 0; g < program->graphs.size(); ++g) fill(*program->graphs[g], g, ops);
    return program;
  }

 private:
  int any(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }

  template <size_t N, class T>
  T one_of(const T (&choices)[N]) {
    return choices[any(static_cast<int>(N))];
  }

  std::string text() {
    static constexpr char kOdd[] = {'"', '\\', '\n', '\t', '\r', '\0', '\x7f', '\x01', '%',
                                    '@', ' ',  '{',  'a',  'Z',  '9',  '.',    '/',    '\xc3'};
    std::string s;
    for (int n = any(9); n > 0; --n) s += one_of(kOdd);
    return s;
  }

  int64_t integer() {
    static constexpr int64_t kOdd[] = {0, 1, -1, INT64_MAX, INT64_MIN};
    return any(2) ? one_of(kOdd) : static_cast<int64_t>(engine_());
  }

  double real() {
    using Limits = std::numeric_limits<double>;
    static constexpr double kOdd[] = {0.0,
                                      -0.0,
                                      1.0,
                                      1e22,
                                      1e-5,
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN(),
                                      Limits::denorm_min(),
                                      Limits::max()};
    return any(2) ? one_of(kOdd) : std::bit_cast<double>(engine_());
  }

  Type type() {
    Type t;
    t.dtype = static_cast<DType>(any(8));
    const int rank = any(6);
    const int batch_axis = any(8);
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t size = any(5) ? any(40) : 0;
      t.shape.push_back(axis == batch_axis ? Dim::of_batch(size) : Dim(size));
      if (any(8) == 0) t.shape.back().length_power = static_cast<uint8_t>(any(kMaxLengthPower + 1));
    }
    if (rank > 0 && any(4) == 0) t.layout = layout(rank);
    return t;
  }

  Layout layout(int rank) {
    Layout layout;
    for (int axis = 0; axis < rank; ++axis) layout.order.push_back(axis);
    std::shuffle(layout.order.begin(), layout.order.end(), engine_);
    for (int n = any(3); n > 0; --n) layout.blocks.push_back({any(rank), 1 + any(16)});
    return layout;
  }

  template <class F>
  auto list(F entry) {
    std::vector<decltype(entry())> v;
    for (int n = any(4); n > 0; --n) v.push_back(entry());
    return v;
  }

  Attr attr(const ir::Program& program, size_t graph) {
    switch (any(graph + 1 < program.graphs.size() ? 9 : 8)) {
      case 0:
        return any(2) == 0;
      case 1:
        return integer();
      case 2:
        return real();
      case 3:
        return text();
      case 4:
        return type();
      case 5:
        return list([&] { return integer(); });
      case 6:
        return list([&] { return real(); });
      case 7:
        return list([&] { return text(); });
      default:
        return GraphRef{program.graphs[graph + 1]->name};
    }
  }

  void fill(ir::Graph& graph, size_t position, int ops) {
    Values values;
    int64_t id = 0;
    for (int i = 0; i < ops; ++i) {
      std::vector<Type> types;
      for (int n = any(4); n > 0; --n) types.push_back(type());
      Values operands;
      for (int n = values.empty() ? 0 : any(4); n > 0; --n) {
        operands.push_back(values[static_cast<size_t>(any(static_cast<int>(values.size())))]);
      }
      static const char* const kNames[] = {"mul", "conv2d", "nan", "f32", "scope_1", "ints", "a.b"};
      ir::Op& op = *graph.append(one_of(kNames), operands, {}, types);
      if (any(3) == 0) id += any(5);
      graph.restore_id(op, id++);
      decorate(op, i, position);
      for (int r = 0; r < static_cast<int>(op.results.size()); ++r) values.push_back(op.result(r));
    }
    for (int n = values.empty() ? 0 : any(4); n > 0; --n) {
      const size_t v = static_cast<size_t>(any(static_cast<int>(values.size())));
      graph.outputs.push_back({text() + std::to_string(n), values[v]});
    }
  }

  void decorate(ir::Op& op, int i, size_t graph) {
    static const char* const kAttrs[] = {"alpha", "inf", "f64", "true_", "_x", "graph"};
    for (int n = any(4); n > 0; --n)
      op.attrs.set(one_of(kAttrs), attr(op.graph()->program(), graph));
    if (any(3) == 0) op.symbol = text() + std::to_string(i);
    if (any(3) == 0) op.role = static_cast<ir::Role>(any(ir::kRoles));
    if (any(4) == 0) op.param = text();
    if (any(4) == 0) op.scope = text();
    if (any(3) == 0) op.loc = {any(4) ? "dir/net.cpp" : text(), any(100)};
    static const char* const kResults[] = {"", "x", "y", "fc0.w", "x_2", "7", "no name", "nan"};
    for (ir::Result& r : op.results) r.name = one_of(kResults);
  }

  std::mt19937_64 engine_;
};

}  // namespace

std::unique_ptr<ir::Program> random_program(uint64_t seed, int ops) {
  return Maker(seed).program(ops);
}

}  // namespace fluid
