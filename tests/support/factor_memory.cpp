#include "tests/support/factor_memory.h"

#include <cstring>

namespace fluid::testing {

Tensor small_integers(DType dtype, int64_t count, int64_t seed) {
  Tensor values(DType::f64, {count});
  for (int64_t i = 0; i < count; ++i) {
    values.as<double>()[static_cast<size_t>(i)] = static_cast<double>((i * 5 + seed) % 7) - 3;
  }
  return values.cast(dtype);
}

FactorMemory::FactorMemory(const Gpu& gpu, const GpuStream& stream, const FactorData& data,
                           bool has_addend, int64_t workspace)
    : gpu_(gpu), stream_(stream), result_(data.addend.dtype()), results_(data.addend.numel()) {
  factors_ = {.a = on_gpu(data.a),
              .b = on_gpu(data.b),
              .addend = has_addend ? on_gpu(data.addend) : nullptr,
              .bias = on_gpu(data.bias),
              .result = on_gpu(Tensor(result_, {results_}))};
  held_.push_back(gpu.allocate(workspace));
  factors_.workspace = held_.back().data();
}

void* FactorMemory::on_gpu(const Tensor& tensor) {
  const GpuMemory host = gpu_.allocate_host(tensor.bytes());
  std::memcpy(host.data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  held_.push_back(gpu_.allocate(tensor.bytes()));
  gpu_.copy(stream_, held_.back().data(), host.data(), tensor.bytes());
  gpu_.synchronize(stream_);
  return held_.back().data();
}

std::vector<double> FactorMemory::read(const void* address) const {
  Tensor values(result_, {results_});
  const GpuMemory host = gpu_.allocate_host(values.bytes());
  gpu_.copy(stream_, host.data(), address, values.bytes());
  gpu_.synchronize(stream_);
  std::memcpy(values.data(), host.data(), static_cast<size_t>(values.bytes()));
  std::vector<double> read;
  for (int64_t i = 0; i < values.numel(); ++i) read.push_back(values.at(i));
  return read;
}

}  // namespace fluid::testing
