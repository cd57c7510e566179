#include "executor/session/feeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "executor/host/parallel.h"
#include "ir/error.h"

namespace fluid {
namespace {

// Copies of fewer elements run on one thread, because starting a parallel region would take longer.
constexpr int64_t kSerialElements = 32768;

std::string column_names(const Batch& batch) {
  std::string text;
  for (const auto& [name, tensor] : batch.columns)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "no columns" : text;
}

bool is_double_for_float(const Feed& feed, const Tensor& column) {
  return column.dtype() == DType::f64 && feed.declared_dtype == DType::f32;
}

void warn_rounding_once(const std::string& feed) {
  static std::atomic_flag warned;
  if (warned.test_and_set()) return;
  const std::string warning =
      fmt::format("feed '{}' is given as f64 and rounded to f32; others may be, too\n", feed);
  std::fwrite(warning.data(), 1, warning.size(),
              stderr);  // a failed write, for example to a closed stderr, is ignored
}

/// Throws UserError if a finite element of `column` becomes infinite in f32.
void check_rounding(const Feed& feed, const Tensor& column, int64_t samples) {
  const std::optional<int64_t> at = first_overflow(column, DType::f32);
  if (!at) return;
  throw UserError(
      feed.loc,
      fmt::format("feed '{}': sample {} of the batch holds {}, beyond the range of f32; "
                  "PrecisionOptions::dtype f64 can represent it",
                  feed.name, *at / std::max<int64_t>(column.numel() / samples, 1), column.at(*at)));
}

struct FeedCopy {
  const void* from;
  void* to;
  double scale;
  DType from_type;
  DType to_type;
  std::span<const ChannelNorm> channels;
  int64_t inner;  ///< number of elements per channel in a sample
};

/// Calls `visit(read)`, where `read(i)` returns element i of the source, converted to type `To`.
template <class To, class F>
void with_reader(const FeedCopy& c, F&& visit) {
  auto as = [&]<class T>(T) {
    visit([p = static_cast<const T*>(c.from)](int64_t i) { return static_cast<To>(p[i]); });
  };
  switch (c.from_type) {
    case DType::u8:
      return as(uint8_t());
    case DType::i8:
      return as(int8_t());
    case DType::f32:
      return as(float());
    case DType::f64:
      return as(double());
    case DType::i64:
      return as(int64_t());
    case DType::i32:
      return as(int32_t());
    case DType::boolean:
      return as(uint8_t());
    case DType::f16:
    case DType::bf16:
      return visit([p = static_cast<const uint16_t*>(c.from), t = c.from_type](int64_t i) {
        return static_cast<To>(half_to_float(p[i], t));
      });
  }
}

/// Converts the source elements [begin, end) to `T`, scales and normalises them. Calls
/// `write(i, value)` for each element.
template <class T, class F>
void convert_as(const FeedCopy& c, int64_t begin, int64_t end, F&& write) {
  with_reader<T>(c, [&](auto read) {
    const auto scale = static_cast<T>(c.scale);
    if (c.channels.empty()) {
      for (int64_t i = begin; i < end; ++i) write(i, read(i) * scale);
    }
    for (int64_t at = c.channels.empty() ? end : begin, stop; at < end; at = stop) {
      stop = std::min(end, (at / c.inner + 1) * c.inner);
      const ChannelNorm& channel =
          c.channels[static_cast<size_t>(at / c.inner) % c.channels.size()];
      const auto mean = static_cast<T>(channel.mean), std = static_cast<T>(channel.std);
      for (int64_t i = at; i < stop; ++i) write(i, (read(i) * scale - mean) / std);
    }
  });
}

void convert(void* context, int64_t begin, int64_t end) {
  const FeedCopy& c = *static_cast<const FeedCopy*>(context);
  if (c.to_type == DType::f64) {
    convert_as<double>(c, begin, end, [to = static_cast<double*>(c.to)](int64_t i, double value) {
      to[i] = value;
    });
  } else if (is_half_precision(c.to_type)) {
    auto* to = static_cast<uint16_t*>(c.to);
    convert_as<float>(c, begin, end, [to, type = c.to_type](int64_t i, float value) {
      to[i] = float_to_half(value, type);
    });
  } else {
    convert_as<float>(c, begin, end,
                      [to = static_cast<float*>(c.to)](int64_t i, float value) { to[i] = value; });
  }
}

/// Returns the elements [begin, end) of `column` along dimension `dim`.
Tensor slice_along(const Tensor& column, size_t dim, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = column.shape();
  const int64_t extent = std::exchange(shape[dim], end - begin);
  Tensor slice(column.dtype(), shape);
  int64_t inner = size_of(column.dtype());  // in bytes
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto* from = static_cast<const std::byte*>(column.data());
  auto* to = static_cast<std::byte*>(slice.data());
  const int64_t bytes = (end - begin) * inner;
  for (int64_t at = 0; at < slice.bytes(); at += bytes) {
    std::memcpy(to + at, from + (at / bytes * extent + begin) * inner, static_cast<size_t>(bytes));
  }
  return slice;
}

}  // namespace

bool matches_feed(const Feed& feed, const Tensor& column, int64_t samples) {
  const bool raw = column.dtype() == DType::u8 && is_float(feed.declared_dtype);
  const bool same = column.dtype() == feed.declared_dtype;
  if (!same && !raw && !is_double_for_float(feed, column)) return false;
  const Shape& shape = feed.type.shape;
  if (column.shape().size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (column.shape()[d] != shape[d].at(samples)) return false;
  }
  return true;
}

std::optional<int64_t> first_overflow(const Tensor& value, DType dtype) {
  const bool widens = dtype == DType::f64 || (dtype == DType::f32 && value.dtype() != DType::f64);
  if (value.dtype() == dtype || !is_float(dtype) || widens) return std::nullopt;
  const auto rounded = [&](double x) {
    const auto single = static_cast<float>(x);
    return is_half_precision(dtype) ? half_to_float(float_to_half(single, dtype), dtype) : single;
  };
  for (int64_t i = 0; i < value.numel(); ++i) {
    const double x = value.at(i);
    if (std::isfinite(x) && !std::isfinite(rounded(x))) return i;
  }
  return std::nullopt;
}

void check_no_overflow(const Tensor& value, DType dtype, const std::string& tensor_name) {
  const std::optional<int64_t> i = first_overflow(value, dtype);
  if (!i) return;
  throw UserError(fmt::format("{}: element {} is {}, beyond the range of {}", tensor_name, *i,
                              value.at(*i), name_of(dtype)));
}

std::vector<ChannelNorm> channel_norms_of(const ir::Op& data) {
  const auto means = data.attrs.get_or("mean", std::vector<double>());
  const auto stds = data.attrs.get_or("std", std::vector<double>());
  std::vector<ChannelNorm> channels(std::max(means.size(), stds.size()));
  for (size_t i = 0; i < channels.size(); ++i) {
    if (!means.empty()) channels[i].mean = means[means.size() == 1 ? 0 : i];
    if (!stds.empty()) channels[i].std = stds[stds.size() == 1 ? 0 : i];
  }
  return channels;
}

void check_feeds(const Batch& batch, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& feed_names) {
  for (const Feed& feed : feeds) {
    const Tensor* column = batch.find(feed.name);
    if (column == nullptr) {
      throw UserError(feed.loc,
                      "feed '" + feed.name + "' is missing: the batch has " + column_names(batch));
    }
    if (matches_feed(feed, *column, batch.size)) {
      if (is_double_for_float(feed, *column) && feed.type.dtype != DType::f64) {
        warn_rounding_once(feed.name);
        check_rounding(feed, *column, batch.size);
      }
      continue;
    }
    Type wanted = feed.type;
    wanted.dtype = feed.declared_dtype;
    wanted.layout.reset();
    throw UserError(feed.loc, "feed '" + feed.name + "' is " + column->str() + " in a batch of " +
                                  std::to_string(batch.size) + "; the program takes " +
                                  wanted.str());
  }
  for (const auto& [name, column] : batch.columns) {
    if (std::find(feed_names.begin(), feed_names.end(), name) == feed_names.end()) {
      throw UserError("the program has no feed '" + name + "'" + did_you_mean(name, feed_names));
    }
  }
}

void copy_feed(const Tensor& column, const Feed& feed, int64_t first, int64_t samples,
               std::byte* to, int threads) {
  const Shape& shape = feed.type.shape;
  const auto dim = static_cast<size_t>(std::ranges::find_if(shape, &Dim::batch) - shape.begin());
  if (dim > 0 && dim < shape.size() && column.shape()[dim] != shape[dim].at(samples)) {
    // The samples are not contiguous.
    const int64_t begin = shape[dim].at(first), end = begin + shape[dim].at(samples);
    return copy_feed(slice_along(column, dim, begin, end), feed, 0, samples, to, threads);
  }
  const Dim elements = shape.numel();
  const int64_t n = elements.at(samples), skipped = elements.batch ? elements.at(first) : 0;
  const auto* from =
      static_cast<const std::byte*>(column.data()) + skipped * size_of(column.dtype());
  FeedCopy copy{from,
                to,
                feed.scale,
                column.dtype(),
                feed.type.dtype,
                feed.channels,
                std::max<int64_t>(n, 1)};
  for (size_t d = 0; d < 2 && feed.channels.size() > 1; ++d) {
    copy.inner /= shape[d].at(samples);
  }
  const int team = n < kSerialElements ? 1 : threads;
  if (copy.from_type != copy.to_type || feed.scale != 1 || !feed.channels.empty()) {
    return parallel_for(n, team, convert, &copy);
  }
  parallel_for(
      n * size_of(column.dtype()), team,
      [](void* context, int64_t begin, int64_t end) {
        const FeedCopy& c = *static_cast<const FeedCopy*>(context);
        std::memcpy(static_cast<std::byte*>(c.to) + begin,
                    static_cast<const std::byte*>(c.from) + begin,
                    static_cast<size_t>(end - begin));
      },
      &copy);
}

}  // namespace fluid
