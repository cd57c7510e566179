#include "executor/cpu_libraries/onednn_shards.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "executor/cpu_libraries/onednn_memory.h"
#include "executor/cpu_libraries/onednn_plan.h"
#include "executor/host/parallel.h"
#include "ir/bf16.h"
#include "ir/error.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

constexpr int64_t kMaxGradientBytes = int64_t{128} << 20;  // bytes of all slices' gradients
constexpr int64_t kSumChunk = 1024;                        // elements; a chunk fits the L1 cache

bool is_reference(const OnednnShards::PrimitiveDesc& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") != std::string_view::npos;
}

/// Slices bound to memory addresses.
class ShardedCall {
 public:
  using Desc = OnednnShards::Desc;

  ShardedCall(int64_t elements, void* result)
      : elements_(elements), result_(static_cast<uint16_t*>(result)) {}

  void add(const_dnnl_primitive_t primitive, const std::vector<std::pair<int, Desc>>& descs,
           const std::vector<void*>& data, const float* sum) {
    Slice slice{primitive, {}, dnnl::stream(onednn_engine())};
    for (size_t i = 0; i < descs.size(); ++i) {
      memory_.emplace_back(descs[i].second, onednn_engine(), data[i]);
      slice.args.push_back({descs[i].first, memory_.back().get()});
    }
    shards_.push_back(std::move(slice));
    sums_.push_back(sum);
  }

  void run() {
    // The whole pool, even with fewer slices, as parallel_for() needs.
    const int threads = thread_count(0);
    run_micro_batches(threads);
    for (const Slice& s : shards_) check_onednn(s.status);
    parallel_for((elements_ + kSumChunk - 1) / kSumChunk, threads,
                 [](void* call, int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     static_cast<ShardedCall*>(call)->add_up(i * kSumChunk);
                 },
                 this);
  }

 private:
  struct Slice {
    const_dnnl_primitive_t primitive;
    std::vector<dnnl_exec_arg_t> args;
    dnnl::stream stream;
    dnnl_status_t status = dnnl_success;
    void run() {
      status = dnnl_primitive_execute(primitive, stream.get(), static_cast<int>(args.size()),
                                      args.data());
    }
  };

  void run_micro_batches(int threads) {
    const LibraryThreads alone(1);  // a single slice runs in the caller, on one thread too
    parallel_for(
        std::ssize(shards_), threads,
        [](void* call, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            static_cast<ShardedCall*>(call)->shards_[static_cast<size_t>(i)].run();
          }
        },
        this);
  }

  /// Adds one chunk of all slices' gradients and rounds it to bf16. The order is the order of the
  /// slices, independent of the number of threads.
  void add_up(int64_t first) const {
    const int64_t n = std::min(kSumChunk, elements_ - first);
    std::array<float, kSumChunk> total;
    std::copy_n(sums_.front() + first, n, total.data());
    for (size_t s = 1; s < sums_.size(); ++s) {
      const float* sum = sums_[s] + first;
      for (int64_t i = 0; i < n; ++i) total[static_cast<size_t>(i)] += sum[i];
    }
    uint16_t* result = result_ + first;
    for (int64_t i = 0; i < n; ++i) result[i] = float_to_bf16(total[static_cast<size_t>(i)]);
  }

  std::vector<dnnl::memory> memory_;
  std::vector<Slice> shards_;
  std::vector<const float*> sums_;
  int64_t elements_;
  uint16_t* result_;
};

}  // namespace

std::shared_ptr<const OnednnShards> OnednnShards::of(const PrimitiveDesc& whole, const Make& make) {
  const Desc x = whole.src_desc(), dy = whole.diff_dst_desc();
  const Desc sum = onednn_as(whole.diff_weights_desc(), dnnl::memory::data_type::f32);
  const int64_t images = x.dims()[0], threads = thread_count(0);
  const bool bf16 = whole.diff_weights_desc().data_type() == dnnl::memory::data_type::bf16;
  if (!bf16 || threads < 2) return nullptr;
  const int64_t that_fit =
      kMaxGradientBytes / std::max<int64_t>(1, static_cast<int64_t>(sum.get_size()));
  const int64_t count = std::max<int64_t>(1, std::min({threads, images, that_fit}));
  const LibraryThreads alone(1);
  auto all = std::make_shared<OnednnShards>();
  all->x_bytes_ = onednn_image_bytes(x);
  all->dy_bytes_ = onednn_image_bytes(dy);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = images * i / count, n = images * (i + 1) / count - first;
    const PrimitiveDesc desc = make(onednn_images(x, n), sum, onednn_images(dy, n));
    if (!desc || is_reference(desc)) return nullptr;
    all->shards_.push_back({dnnl::convolution_backward_weights(desc), desc.src_desc(),
                            desc.diff_weights_desc(), desc.diff_dst_desc(), desc.scratchpad_desc(),
                            first});
  }
  return all;
}

int64_t OnednnShards::workspace() const {
  int64_t bytes = 0;
  for (const Slice& s : shards_) bytes += aligned(s.dw.get_size()) + aligned(s.scratch.get_size());
  return bytes;
}

std::function<void()> OnednnShards::bind(void* x, void* dy, void* dw, void* workspace) const {
  const auto elements = static_cast<int64_t>(shards_.front().dw.get_size() / sizeof(float));
  auto call = std::make_shared<ShardedCall>(elements, dw);
  auto* free = static_cast<std::byte*>(workspace);
  for (const Slice& s : shards_) {
    std::byte* sum = free;
    std::byte* scratch = sum + aligned(s.dw.get_size());
    free = scratch + aligned(s.scratch.get_size());
    call->add(s.primitive.get(),
              {{DNNL_ARG_SRC, s.x},
               {DNNL_ARG_DIFF_DST, s.dy},
               {DNNL_ARG_DIFF_WEIGHTS, s.dw},
               {DNNL_ARG_SCRATCHPAD, s.scratch}},
              {static_cast<std::byte*>(x) + s.first * x_bytes_,
               static_cast<std::byte*>(dy) + s.first * dy_bytes_, sum, scratch},
              reinterpret_cast<const float*>(sum));
  }
  return [call] { call->run(); };
}

}  // namespace fluid
