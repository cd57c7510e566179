#include "executor/cpu_libraries/onednn_shards.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "executor/cpu_libraries/onednn_memory.h"
#include "executor/cpu_libraries/onednn_plan.h"
#include "executor/device/half_arrays.h"
#include "executor/host/parallel.h"
#include "ir/error.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

constexpr int64_t kMaxGradientBytes = int64_t{128} << 20;  // maximum bytes of all shards' gradients
constexpr int64_t kSumChunk = 1024;  // elements that are summed at a time; they fit in the L1 cache

bool is_reference(const OnednnShards::PrimitiveDesc& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") != std::string_view::npos;
}

/// Shards bound to memory addresses.
class ShardedCall {
 public:
  using Desc = OnednnShards::Desc;

  ShardedCall(int64_t elements, void* result)
      : elements_(elements), result_(static_cast<uint16_t*>(result)) {}

  void add(const_dnnl_primitive_t primitive, const std::vector<std::pair<int, Desc>>& descs,
           const std::vector<void*>& data, const float* sum) {
    Shard shard{primitive, {}, dnnl::stream(onednn_engine())};
    for (size_t i = 0; i < descs.size(); ++i) {
      memory_.emplace_back(descs[i].second, onednn_engine(), data[i]);
      shard.args.push_back({descs[i].first, memory_.back().get()});
    }
    shards_.push_back(std::move(shard));
    sums_.push_back(sum);
  }

  void run() {
    // Use all threads of the pool, even if there are fewer shards. libgomp would terminate the
    // threads that a smaller team does not need.
    const int threads = thread_count(0);
    run_shards(threads);
    for (const Shard& s : shards_) check_onednn(s.status);
    parallel_for((elements_ + kSumChunk - 1) / kSumChunk, threads,
                 [](void* call, int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     static_cast<ShardedCall*>(call)->sum_chunk(i * kSumChunk);
                 },
                 this);
  }

 private:
  struct Shard {
    const_dnnl_primitive_t primitive;
    std::vector<dnnl_exec_arg_t> args;
    dnnl::stream stream;
    dnnl_status_t status = dnnl_success;
    void run() {
      status = dnnl_primitive_execute(primitive, stream.get(), static_cast<int>(args.size()),
                                      args.data());
    }
  };

  void run_shards(int threads) {
    const ScopedLibraryThreads alone(1);  // oneDNN uses one thread per shard
    parallel_for(
        std::ssize(shards_), threads,
        [](void* call, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            static_cast<ShardedCall*>(call)->shards_[static_cast<size_t>(i)].run();
          }
        },
        this);
  }

  /// Sums one chunk of the gradients of all shards, and rounds the sums to bf16. Adds in the order
  /// of the shards, whichever thread sums the chunk.
  void sum_chunk(int64_t first) const {
    const int64_t n = std::min(kSumChunk, elements_ - first);
    std::array<float, kSumChunk> total;
    std::copy_n(sums_.front() + first, n, total.data());
    for (size_t s = 1; s < sums_.size(); ++s) {
      const float* sum = sums_[s] + first;
      for (int64_t i = 0; i < n; ++i) total[static_cast<size_t>(i)] += sum[i];
    }
    floats_to_halves(DType::bf16, total.data(), result_ + first, static_cast<size_t>(n));
  }

  std::vector<dnnl::memory> memory_;
  std::vector<Shard> shards_;
  std::vector<const float*> sums_;
  int64_t elements_;
  uint16_t* result_;
};

}  // namespace

std::shared_ptr<const OnednnShards> OnednnShards::create(const PrimitiveDesc& whole,
                                                         const MakePrimitive& make) {
  const Desc x = whole.src_desc(), dy = whole.diff_dst_desc();
  const Desc sum = onednn_desc_with_dtype(whole.diff_weights_desc(), dnnl::memory::data_type::f32);
  const int64_t images = x.dims()[0], threads = thread_count(0);
  const bool bf16 = whole.diff_weights_desc().data_type() == dnnl::memory::data_type::bf16;
  if (!bf16 || threads < 2) return nullptr;
  const int64_t max_shards =
      kMaxGradientBytes / std::max<int64_t>(1, static_cast<int64_t>(sum.get_size()));
  const int64_t count = std::max<int64_t>(1, std::min({threads, images, max_shards}));
  const ScopedLibraryThreads alone(1);
  auto all = std::make_shared<OnednnShards>();
  all->x_bytes_ = onednn_image_stride(x);
  all->dy_bytes_ = onednn_image_stride(dy);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = images * i / count, n = images * (i + 1) / count - first;
    const PrimitiveDesc desc = make(onednn_first_images(x, n), sum, onednn_first_images(dy, n));
    if (!desc || is_reference(desc)) return nullptr;
    all->shards_.push_back({dnnl::convolution_backward_weights(desc), desc.src_desc(),
                            desc.diff_weights_desc(), desc.diff_dst_desc(), desc.scratchpad_desc(),
                            first});
  }
  return all;
}

int64_t OnednnShards::workspace() const {
  int64_t bytes = 0;
  for (const Shard& s : shards_)
    bytes += align_up(s.dw.get_size()) + align_up(s.scratch.get_size());
  return bytes;
}

std::function<void()> OnednnShards::bind(void* x, void* dy, void* dw, void* workspace) const {
  const auto elements = static_cast<int64_t>(shards_.front().dw.get_size() / sizeof(float));
  auto call = std::make_shared<ShardedCall>(elements, dw);
  auto* free = static_cast<std::byte*>(workspace);
  for (const Shard& s : shards_) {
    std::byte* sum = free;
    std::byte* scratch = sum + align_up(s.dw.get_size());
    free = scratch + align_up(s.scratch.get_size());
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
