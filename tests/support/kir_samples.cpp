#include "tests/support/kir_samples.h"

#include <algorithm>
#include <functional>

#include "tests/support/kir_builder.h"

namespace fluid::testing {
namespace {

using Kind = kir::For::Kind;
using kir::Block;
using kir::Kernel;

constexpr int64_t kElements = 37;

Expr at(int64_t i) { return Expr::index(i); }
Expr i0() { return Expr::var(0); }

std::string c_name(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

Kernel vector_map(const std::string& name, DType in, DType out,
                  const std::function<Expr(Expr, Expr)>& f) {
  Kernel k =
      one_block({input("a", in, kElements), input("b", in, kElements), output("y", out, kElements)},
                {loop(Kind::vector, 0, at(0), at(kElements),
                      {store(2, i0(), f(load(0, in, i0()), load(1, in, i0())))})});
  k.name = c_name(name);
  return k;
}

void add_float_kernels(std::vector<Kernel>& kernels, DType dtype) {
  const std::string suffix = "_" + std::string(name_of(dtype));
  for (ScalarOp op :
       {ScalarOp::neg,  ScalarOp::abs,   ScalarOp::sqrt,    ScalarOp::rsqrt, ScalarOp::exp,
        ScalarOp::exp2, ScalarOp::expm1, ScalarOp::log,     ScalarOp::log2,  ScalarOp::log1p,
        ScalarOp::sinh, ScalarOp::cosh,  ScalarOp::tanh,    ScalarOp::asin,  ScalarOp::acos,
        ScalarOp::atan, ScalarOp::erf,   ScalarOp::sigmoid, ScalarOp::floor, ScalarOp::tan,
        ScalarOp::sin,  ScalarOp::cos}) {
    kernels.push_back(vector_map("unary" + std::to_string(static_cast<int>(op)) + suffix, dtype,
                                 dtype, [&](Expr a, Expr) { return scalar::unary(op, a); }));
  }
  for (ScalarOp op : {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::div, ScalarOp::mod,
                      ScalarOp::min, ScalarOp::max, ScalarOp::pow}) {
    kernels.push_back(vector_map("binary" + std::to_string(static_cast<int>(op)) + suffix, dtype,
                                 dtype, [&](Expr a, Expr b) {
                                   return Expr::make(op, a.dtype(), {a, b});
                                 }));
  }
  kernels.push_back(vector_map("fma" + suffix, dtype, dtype, [](Expr a, Expr b) {
    return Expr::make(ScalarOp::fma, a.dtype(), {a, b, a});
  }));
  kernels.push_back(vector_map("isfinite" + suffix, dtype, boolean,
                               [](Expr a, Expr) { return scalar::unary(ScalarOp::isfinite, a); }));
}

void add_integer_kernels(std::vector<Kernel>& kernels, DType dtype) {
  const std::string suffix = "_" + std::string(name_of(dtype));
  for (ScalarOp op : {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::floordiv,
                      ScalarOp::mod, ScalarOp::min, ScalarOp::max}) {
    kernels.push_back(vector_map("binary" + std::to_string(static_cast<int>(op)) + suffix, dtype,
                                 dtype, [&](Expr a, Expr b) {
                                   return Expr::make(op, a.dtype(), {a, b});
                                 }));
  }
  for (ScalarOp op : {ScalarOp::neg, ScalarOp::abs}) {
    kernels.push_back(vector_map("unary" + std::to_string(static_cast<int>(op)) + suffix, dtype,
                                 dtype, [&](Expr a, Expr) { return scalar::unary(op, a); }));
  }
}

void add_common_kernels(std::vector<Kernel>& kernels, DType dtype) {
  const std::string suffix = "_" + std::string(name_of(dtype));
  for (ScalarOp op :
       {ScalarOp::eq, ScalarOp::ne, ScalarOp::lt, ScalarOp::le, ScalarOp::gt, ScalarOp::ge}) {
    kernels.push_back(vector_map("compare" + std::to_string(static_cast<int>(op)) + suffix, dtype,
                                 boolean,
                                 [&](Expr a, Expr b) { return scalar::compare(op, a, b); }));
  }
  for (DType to : {f64, f32, f16, bf16, i64, i32, u8, i8, boolean}) {
    kernels.push_back(vector_map("cast" + suffix + "_" + std::string(name_of(to)), dtype, to,
                                 [&](Expr a, Expr) { return scalar::cast(a, to); }));
  }
  kernels.push_back(vector_map("select" + suffix, dtype, dtype, [](Expr a, Expr b) {
    return scalar::select(scalar::compare(ScalarOp::lt, a, b), b, a);
  }));
}

Kernel logic_kernel() {
  Kernel k = vector_map("logic", boolean, boolean, [](Expr a, Expr b) {
    return scalar::logical_or(scalar::logical_and(a, scalar::logical_not(b)),
                              scalar::logical_and(scalar::logical_not(a), b));
  });
  return k;
}

/// Random bits, index arithmetic and a name, over blocks that follow the batch.
Kernel batch_kernel() {
  Kernel k;
  k.name = "batch";
  k.buffers = {input("seed", i64, 1), output("y", i64, Dim::of_batch(kElements)),
               output("z", i64, Dim::of_batch(kElements))};
  k.blocks = batch();
  k.block_var = 7;
  const Expr flat = Expr::var(7) * at(kElements) + i0();
  const Expr name = named(ScalarOp::let, i64, 1);
  const Expr bits = scalar::philox(load(0, i64, at(0)), batch(), at(3), name);
  const Expr folded = scalar::floordiv(name, at(5)) * 100.0 + scalar::mod(name, at(5));
  k.body = {loop(Kind::vector, 0, at(0), at(kElements),
                 {kir::Stmt{kir::Let{1, flat}}, store(1, name, bits), store(2, name, folded)})};
  return k;
}

/// Error words, set in lanes and for all lanes at once.
Kernel checked_kernel() {
  const Expr x = load(0, i64, i0()), first = load(0, i64, at(0));
  const auto negative = [&](const Expr& e) { return scalar::compare(ScalarOp::lt, e, at(0)); };
  const auto small = [&](const Expr& e) { return scalar::compare(ScalarOp::lt, e, at(1 << 20)); };
  Kernel k = one_block(
      {input("x", i64, kElements), {"error", i64, 4, kir::Buffer::Role::error}},
      {loop(Kind::vector, 0, at(0), at(kElements),
            {store(1, at(0), at(1), negative(x)), store(1, at(1), x, negative(x)),
             store(1, at(2), at(1), small(first)), store(1, at(3), first, small(first))})});
  k.name = "checked";
  return k;
}

/// Per-block partial sums, combined in `finish`; a condition and a masked store.
Kernel finish_kernel() {
  Kernel k;
  k.name = "finish";
  k.buffers = {input("x", i64, Dim::of_batch(kElements)),
               {"partial", i64, Dim::of_batch(1), kir::Buffer::Role::scratch},
               output("sum", i64, 1),
               output("last", i64, 1)};
  k.blocks = batch();
  k.block_var = 7;
  const Expr sum = named(ScalarOp::acc, i64, 1), total = named(ScalarOp::acc, i64, 2);
  const Expr x = load(0, i64, Expr::var(7) * at(kElements) + i0());
  k.body = {kir::Stmt{kir::Accumulator{1, i64, Combine::sum, {}, true}},
            loop(Kind::vector, 0, at(0), at(kElements), {kir::Stmt{kir::Accumulate{1, {}, x, {}}}}),
            store(1, Expr::var(7), lanes(sum))};
  const Expr is_last = scalar::compare(ScalarOp::eq, i0(), batch() - at(1));
  Block then = {store(3, at(0), load(1, i64, i0()))};
  k.finish = {kir::Stmt{kir::Accumulator{2, i64, Combine::sum, {}, false}},
              loop(Kind::serial, 0, at(0), batch(),
                   {kir::Stmt{kir::Accumulate{2, {}, load(1, i64, i0()), {}}},
                    kir::Stmt{kir::If{is_last, std::make_shared<Block>(then)}}}),
              store(2, at(0), total, scalar::compare(ScalarOp::gt, batch(), at(0)))};
  return k;
}

/// An array of accumulators filled by unrolled loops inside a vector loop: a small contraction.
Kernel tile_kernel() {
  const Expr column = i0(), row = Expr::var(1), k = Expr::var(2);
  constexpr int64_t kRows = 3, kInner = 4;
  const Expr product =
      load(0, f32, row * at(kInner) + k) * load(1, f32, k * at(kElements) + column);
  Kernel kernel = one_block(
      {input("a", f32, kRows * kInner), input("b", f32, kInner * kElements),
       output("y", f32, kRows * kElements)},
      {loop(
          Kind::vector, 0, at(0), at(kElements),
          {kir::Stmt{kir::Accumulator{1, f32, Combine::max, {kRows}, false}},
           loop(Kind::serial, 2, at(0), at(kInner),
                {loop(Kind::unroll, 1, at(0), at(kRows),
                      {kir::Stmt{kir::Accumulate{1, {row}, product, {}}}})}),
           loop(Kind::unroll, 1, at(0), at(kRows),
                {store(2, row * at(kElements) + column, named(ScalarOp::acc, f32, 1, {row}))})})});
  kernel.name = "tile";
  return kernel;
}

}  // namespace

std::vector<Kernel> every_scalar_kernels() {
  std::vector<Kernel> kernels;
  for (DType dtype : {f64, f32, f16, bf16}) add_float_kernels(kernels, dtype);
  for (DType dtype : {i64, i32, u8, i8}) add_integer_kernels(kernels, dtype);
  for (DType dtype : {f64, f32, f16, bf16, i64, i32, u8, i8}) add_common_kernels(kernels, dtype);
  kernels.push_back(logic_kernel());
  kernels.push_back(batch_kernel());
  kernels.push_back(finish_kernel());
  kernels.push_back(checked_kernel());
  kernels.push_back(tile_kernel());
  return kernels;
}

std::vector<Kernel> reduction_kernels(DType dtype, int64_t n) {
  std::vector<Kernel> kernels;
  const Expr x = load(0, dtype, i0());
  const DType compute = compute_dtype(dtype);
  for (Combine combine :
       {Combine::sum, Combine::prod, Combine::max, Combine::min, Combine::argmax}) {
    if (combine == Combine::sum && is_float(dtype)) continue;  // has its own test: order matters
    for (bool by_lanes : {false, true}) {
      Expr value = named(ScalarOp::acc, compute, 1);
      Expr position = named(ScalarOp::acc, compute == i64 ? i32 : i64, 1);
      if (by_lanes) {
        value = lanes(value);
        position = lanes(position);
      }
      const bool arg = combine == Combine::argmax;
      Block body = {kir::Stmt{kir::Accumulator{1, compute, combine, {}, by_lanes}},
                    loop(by_lanes ? Kind::vector : Kind::serial, 0, at(0), at(n),
                         {kir::Stmt{kir::Accumulate{1, {}, x, arg ? i0() : Expr()}}})};
      body.push_back(store(1, at(0), value));
      if (arg) body.push_back(store(2, at(0), position));
      kernels.push_back(one_block(
          {input("x", dtype, n), output("y", dtype, 1), output("p", i64, 1)}, std::move(body)));
    }
  }
  return kernels;
}

std::vector<Kernel> memory_kernels(DType dtype, int64_t stride, int64_t n) {
  const int64_t reach = std::max<int64_t>((n - 1) * std::abs(stride) + 1, 0);
  const int64_t start = stride < 0 ? (n - 1) * -stride : 0;
  const Expr place = stride == 0 ? load(2, i64, i0()) : at(start) + i0() * at(stride);
  std::vector<kir::Buffer> buffers = {input("x", dtype, stride == 0 ? n : reach),
                                      output("y", dtype, stride == 0 ? n : reach),
                                      input("index", i64, n)};
  const Expr even = scalar::compare(ScalarOp::eq, scalar::mod(i0(), at(2)), at(0));
  const Expr low = scalar::compare(ScalarOp::lt, i0(), at(n / 2));
  const auto run = [&](Expr value, Expr offset, Expr mask) {
    return one_block(buffers,
                     {loop(Kind::vector, 0, at(0), at(n), {store(1, offset, value, mask)})});
  };
  const Expr x = load(0, dtype, place);
  const Kernel prefetches = one_block(
      buffers,
      {loop(Kind::vector, 0, at(0), at(n), {prefetch(0, i0() + at(n)), store(1, i0(), x)})});
  return {prefetches,
          run(x, i0(), {}),
          run(load(0, dtype, place, even, 3), i0(), {}),
          run(load(0, dtype, place, low, 0), i0(), {}),
          run(load(0, dtype, i0()), place, {}),
          run(load(0, dtype, i0()), place, even),
          run(x, place, low)};
}

std::vector<Kernel> divided_kernels(DType dtype, int64_t divisor, int64_t first, int64_t n) {
  const Expr place = scalar::floordiv(i0() + at(first), at(divisor));
  const Expr rest = scalar::mod(i0() + at(first), at(divisor));
  const std::vector<kir::Buffer> buffers = {input("x", dtype, (first + n) / divisor + divisor),
                                            output("y", dtype, n)};
  const Expr odd = scalar::compare(ScalarOp::ne, scalar::mod(i0(), at(3)), at(1));
  const Expr low = scalar::compare(ScalarOp::lt, i0(), at(n / 2));
  std::vector<Kernel> kernels;
  for (const Expr& value : {load(0, dtype, place), load(0, dtype, place + rest),
                            load(0, dtype, place, odd, 3), load(0, dtype, place, low)}) {
    const auto lanes = [&](const Expr& begin) {
      return loop(Kind::vector, 0, begin, at(n), {store(1, i0(), value)});
    };
    kernels.push_back(one_block(buffers, {lanes(at(0))}));
    // From where on is not known: nor is the remainder of a lane.
    kernels.push_back(
        one_block(buffers, {loop(Kind::serial, 1, at(0), at(2), {lanes(Expr::var(1))})}));
  }
  return kernels;
}

}  // namespace fluid::testing
