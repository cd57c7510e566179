#pragma once

// The C interface of a GPU library: one symbol returns one table of functions. Only plain C types
// cross it, so neither side depends on how the other was compiled, and no vendor header is needed
// here.
//
// Work is queued on streams. Each stream runs in order; different streams are ordered only by
// events. A call returns before its work is done unless stated otherwise. Memory must not be
// released while queued work uses it. Every function returns a result; `error` returns the message
// of the calling thread's last error.

#include <stddef.h>
#include <stdint.h>

#define FLUID_GPU_TABLE_VERSION 6u
#define FLUID_GPU_TABLE_SYMBOL "fluid_gpu_table"
#define FLUID_GPU_OLDEST_ARCHITECTURE 80  ///< compute capability 8.0, the first with bf16
#define FLUID_GPU_MOST_PRODUCTS 65535     ///< matrices of one batched matmul

extern "C" {

typedef enum FluidGpuResult {
  fluid_gpu_ok = 0,
  fluid_gpu_not_ready = 1,      ///< of an event: its work is not done
  fluid_gpu_out_of_memory = 2,  ///< nothing was allocated
  fluid_gpu_unusable = 3,       ///< no driver, no GPU, or an unsupported one
  fluid_gpu_misused = 4,        ///< the call is not allowed here; the streams are unchanged
  fluid_gpu_failed = 5          ///< the GPU or a library failed; queued work is lost
} FluidGpuResult;

/// Versions in each library's own encoding: CUDA 13000 is 13.0, cuDNN 91300 is 9.13.0, NCCL 22703
/// is 2.27.3.
typedef struct FluidGpuVersions {
  int64_t driver;  ///< CUDA version that the driver supports; 0: no driver
  int64_t runtime;
  int64_t blas;
  int64_t dnn;
  int64_t collectives;
  int64_t linker;
} FluidGpuVersions;

typedef struct FluidGpuDescription {
  char name[128];
  int32_t major, minor;  ///< compute capability
  int32_t multiprocessors;
  int32_t memory_bus_bits;
  int64_t clock_khz, memory_clock_khz;
  int64_t memory, free_memory;  ///< bytes
} FluidGpuDescription;

typedef struct FluidGpu FluidGpu;  ///< an opened GPU
typedef struct FluidGpuStream FluidGpuStream;
typedef struct FluidGpuEvent FluidGpuEvent;
typedef struct FluidGpuGraph FluidGpuGraph;                ///< a captured graph
typedef struct FluidGpuModule FluidGpuModule;              ///< loaded code
typedef struct FluidGpuKernel FluidGpuKernel;              ///< an entry of a module
typedef struct FluidGpuCommunicator FluidGpuCommunicator;  ///< this GPU's rank in a communicator

typedef enum FluidGpuEventUse {
  fluid_gpu_orders = 0,  ///< orders streams; the host may wait for it
  fluid_gpu_times = 1    ///< measures time; the host may wait for it, streams may not
} FluidGpuEventUse;

typedef struct FluidGpuLaunch {
  FluidGpuKernel* kernel;
  int64_t groups;          ///< CUDA's grid
  int64_t threads;         ///< CUDA's block
  void* const* arguments;  ///< the address of each argument, copied by the call
  int32_t argument_count;  ///< every argument has 8 bytes
} FluidGpuLaunch;

typedef enum FluidGpuDtype {
  fluid_gpu_f64 = 0,
  fluid_gpu_f32 = 1,
  fluid_gpu_f16 = 2,
  fluid_gpu_bf16 = 3
} FluidGpuDtype;

/// `count` matmuls, result = relu(op(a) op(b) + addend + bias). Matrices are row-major; op is the
/// identity or a transposition. Accumulates in f32, or in f64 for f64 operands.
typedef struct FluidGpuMatmul {
  FluidGpuDtype operands;  ///< dtype of a and b
  /// Dtype of all other tensors: `operands`, or f32 for half-precision operands.
  FluidGpuDtype result;
  int32_t tf32;         ///< f32 operands may be rounded to TF32 (10 mantissa bits)
  int32_t transpose_a;  ///< a is stored as [k, m] instead of [m, k]
  int32_t transpose_b;  ///< b is stored as [n, k] instead of [k, n]
  /// Has an addend with the result's layout, which may alias the result; excludes bias and relu.
  int32_t adds;
  int32_t bias;                               ///< one value per column; not in f64
  int32_t relu;                               ///< max(x, 0), without a promise for NaN; not in f64
  int64_t m, n, k;                            ///< op(a) is [m, k], op(b) is [k, n]; all at least 1
  int64_t a_row, b_row, result_row;           ///< elements between the starts of stored rows
  int64_t count;                              ///< 1 to FLUID_GPU_MOST_PRODUCTS
  int64_t a_matrix, b_matrix, result_matrix;  ///< elements between the starts of matrices
} FluidGpuMatmul;

/// Which convolution is computed, and from which operands.
typedef enum FluidGpuDirection {
  fluid_gpu_forward = 0,        ///< a: images (input), b: filters, result: feature maps (output)
  fluid_gpu_data_gradient = 1,  ///< a: output gradient, b: filters, result: input gradient
  /// a: images, b: output gradient, result: filter gradient.
  fluid_gpu_filter_gradient = 2
} FluidGpuDirection;

/// result = relu(convolution + addend + bias). Shapes: images [images, channels, height, width],
/// filters [filters, channels / groups, filter_height, filter_width], feature maps [images,
/// filters, map_height, map_width]. Filters are not flipped (cross-correlation). Pairs hold the
/// value for the height first. Accumulates in f32.
typedef struct FluidGpuConvolution {
  FluidGpuDirection direction;
  FluidGpuDtype number;   ///< dtype of all tensors; not f64
  int32_t tf32;           ///< f32 operands may be rounded to TF32 (10 mantissa bits)
  int32_t channels_last;  ///< images and feature maps are stored as NHWC; filters never are
  /// Has an addend with the result's layout, which may alias the result; excludes bias and relu.
  int32_t adds;
  int32_t bias;    ///< one value per filter; forward only
  int32_t relu;    ///< max(x, 0), without a promise for NaN; requires a bias
  int32_t groups;  ///< grouped convolution
  int64_t images, channels, height, width;
  int64_t filters, filter_height, filter_width;
  int64_t map_height, map_width;
  int64_t stride[2], dilation[2];
  int64_t padding[2];  ///< zeros on each side
} FluidGpuConvolution;

/// An algorithm for a matmul or a convolution. `opaque` is valid for this GPU model and library
/// version, and may be kept on disk.
typedef struct FluidGpuChoice {
  uint64_t opaque[8];
  int64_t workspace;  ///< bytes that the algorithm needs
} FluidGpuChoice;

/// A plan: a matmul or convolution together with its algorithm.
typedef struct FluidGpuPlan FluidGpuPlan;

/// Device addresses of the operands; null where there is none. Each is a multiple of
/// FLUID_GPU_PRODUCT_ALIGNMENT, the workspace of FLUID_GPU_WORKSPACE_ALIGNMENT.
typedef struct FluidGpuOperands {
  const void* a;
  const void* b;
  const void* addend;
  const void* bias;
  void* result;
  void* workspace;  ///< not shared with concurrent work
} FluidGpuOperands;

#define FLUID_GPU_PRODUCT_ALIGNMENT 64
#define FLUID_GPU_WORKSPACE_ALIGNMENT 256  ///< cuBLAS Library: cublasLtMatmul, `workspace`

/// Globally unique id of a GPU.
typedef struct FluidGpuIdentity {
  uint8_t bytes[16];
} FluidGpuIdentity;

/// The unique id by which ranks form a communicator. One rank creates and distributes it.
typedef struct FluidGpuUniqueId {
  char bytes[128];
} FluidGpuUniqueId;

typedef struct FluidGpuTable {
  uint32_t version;
  const char* (*error)(void);

  FluidGpuResult (*versions)(FluidGpuVersions* versions);
  /// Counts the GPUs in CUDA_VISIBLE_DEVICES. Unusable without a recent enough driver.
  FluidGpuResult (*device_count)(int32_t* count);
  /// 10 times the compute capability. Creates no context, so it takes no GPU memory.
  FluidGpuResult (*architecture)(int32_t device, int32_t* architecture);
  FluidGpuResult (*describe)(int32_t device, FluidGpuDescription* description);

  /// Creates a context; unusable when the device's architecture is not supported. `close` waits for
  /// queued work and frees everything that is left.
  FluidGpuResult (*open)(int32_t device, FluidGpu** gpu);
  FluidGpuResult (*close)(FluidGpu* gpu);

  /// Allocates GPU memory, aligned to 256 bytes and not zeroed. `release` waits for queued work.
  FluidGpuResult (*allocate)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release)(FluidGpu* gpu, void* address);
  /// Allocates pinned host memory.
  FluidGpuResult (*allocate_host)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release_host)(FluidGpu* gpu, void* address);
  FluidGpuResult (*memory_info)(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes);

  FluidGpuResult (*stream_create)(FluidGpu* gpu, FluidGpuStream** stream);
  FluidGpuResult (*stream_destroy)(FluidGpuStream* stream);
  /// Waits for all queued work. Returns misused while the stream is captured.
  FluidGpuResult (*stream_synchronize)(FluidGpuStream* stream);

  /// Copies between GPU memory and pinned host memory, in any direction.
  FluidGpuResult (*copy)(FluidGpuStream* stream, void* to, const void* from, int64_t bytes);
  FluidGpuResult (*fill)(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes);
  FluidGpuResult (*launch)(FluidGpuStream* stream, const FluidGpuLaunch* launch);

  FluidGpuResult (*event_create)(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event);
  FluidGpuResult (*event_destroy)(FluidGpuEvent* event);
  /// Records the event after all work queued on the stream so far. A timing event recorded during a
  /// capture becomes a node of the graph: each launch records it when the preceding work is done.
  /// Its time is available after the graph has run.
  FluidGpuResult (*event_record)(FluidGpuEvent* event, FluidGpuStream* stream);
  /// Makes later work on the stream wait for the last recording of the event, if there is one.
  /// Returns misused for a timing event.
  FluidGpuResult (*stream_wait)(FluidGpuStream* stream, FluidGpuEvent* event);
  FluidGpuResult (*event_query)(FluidGpuEvent* event);  ///< ok: done
  FluidGpuResult (*event_synchronize)(FluidGpuEvent* event);
  /// Time between two completed timing events. Returns misused for other events.
  FluidGpuResult (*event_milliseconds)(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds);

  /// Starts the capture of a CUDA graph: until `capture_end`, work queued on the stream is recorded
  /// instead of run. A stream that waits for an event of the capture joins it. All joined streams
  /// must be waited for on the first stream before `capture_end`. Otherwise the capture is
  /// invalidated and `capture_end` returns misused. Synchronising, allocating memory and releasing
  /// memory also invalidate it. A GPU has one capture at a time; `capture_end` ends it in any case.
  FluidGpuResult (*capture_begin)(FluidGpuStream* stream);
  FluidGpuResult (*capture_end)(FluidGpuStream* stream, FluidGpuGraph** graph);
  FluidGpuResult (*graph_launch)(FluidGpuGraph* graph, FluidGpuStream* stream);
  FluidGpuResult (*graph_destroy)(FluidGpuGraph* graph);

  /// Compiles the code generator's output (PTX) to machine code for this GPU. The caller may keep
  /// the image on disk and must release it with `image_release`.
  FluidGpuResult (*assemble)(FluidGpu* gpu, const char* text, size_t length, void** image,
                             size_t* image_bytes);
  void (*image_release)(void* image);
  FluidGpuResult (*module_load)(FluidGpu* gpu, const void* image, size_t bytes,
                                FluidGpuModule** module);
  FluidGpuResult (*module_unload)(FluidGpuModule* module);  ///< waits for queued work
  FluidGpuResult (*module_kernel)(FluidGpuModule* module, const char* name,
                                  FluidGpuKernel** kernel);

  /// The deterministic algorithms for a matmul that need at most `workspace` bytes, in the
  /// library's order of expected speed. `count`: capacity of `choices` on entry, number of
  /// algorithms on return. Returns misused for an invalid matmul.
  FluidGpuResult (*matmul_choices)(FluidGpu* gpu, const FluidGpuMatmul* product, int64_t workspace,
                                   FluidGpuChoice* choices, int32_t* count);
  /// Creates a matmul plan. Returns misused when `choice` does not fit, for example when it stems
  /// from another library version.
  FluidGpuResult (*matmul_plan_create)(FluidGpu* gpu, const FluidGpuMatmul* product,
                                       const FluidGpuChoice* choice, FluidGpuPlan** gpu_plan);
  /// The deterministic algorithms for a convolution; parameters as for matmul_choices.
  FluidGpuResult (*convolution_choices)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                        int64_t workspace, FluidGpuChoice* choices, int32_t* count);
  /// Creates a convolution plan. Returns misused when `choice` does not fit.
  FluidGpuResult (*convolution_plan_create)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                            const FluidGpuChoice* choice, FluidGpuPlan** gpu_plan);
  FluidGpuResult (*plan_destroy)(FluidGpuPlan* gpu_plan);
  /// Queues a plan. Calls for one plan must not be concurrent. The first call loads code; it
  /// returns misused during a capture.
  FluidGpuResult (*multiply)(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                             const FluidGpuOperands* factors);

  // Collectives. Each process is one rank with one GPU, and all ranks make the same calls in the
  // same order. Calls return at once and take effect once `communicator_state` returns ok. Until
  // then the communicator and the stream must not be used. Sums have a fixed order: the same bits
  // on all ranks in every run.

  FluidGpuResult (*identity)(FluidGpu* gpu, FluidGpuIdentity* identity);
  FluidGpuResult (*meeting)(FluidGpuUniqueId* meeting);
  /// Takes effect once all ranks have called it. Returns misused when two ranks share a GPU.
  FluidGpuResult (*communicator_create)(FluidGpu* gpu, const FluidGpuUniqueId* meeting,
                                        int32_t rank, int32_t ranks,
                                        FluidGpuCommunicator** communicator);
  /// ok: the last call has taken effect. Not ready: it has not yet. Any other result is a permanent
  /// failure, perhaps of a collective queued earlier; the caller must then abort.
  FluidGpuResult (*communicator_state)(FluidGpuCommunicator* communicator);
  /// Ends this GPU's queued collectives, also those that wait for other ranks. Their results are
  /// undefined. Afterwards the communicator may only be destroyed, and graphs that contain its
  /// collectives must not be launched.
  FluidGpuResult (*communicator_abort)(FluidGpuCommunicator* communicator);
  /// Waits for queued collectives, unless the communicator was aborted. The caller must first
  /// destroy all graphs that captured its collectives.
  FluidGpuResult (*communicator_destroy)(FluidGpuCommunicator* communicator);

  /// Sums `count` elements in place. The stream belongs to the communicator's GPU and may be
  /// captured.
  FluidGpuResult (*all_reduce)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, FluidGpuDtype element);
  /// In place. Rank r gets the sums of its shard only: up to `share` elements from r * share on.
  /// The other elements are undefined. Requires ranks * share >= count.
  FluidGpuResult (*reduce_scatter)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                                   void* data, int64_t count, int64_t share, FluidGpuDtype element);
  /// In place. Gathers all ranks' shards, as defined for reduce_scatter.
  FluidGpuResult (*all_gather)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, int64_t share, FluidGpuDtype element);
  /// In place. Copies the bytes of rank `root` to all ranks.
  FluidGpuResult (*broadcast)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t bytes, int32_t root);
} FluidGpuTable;

/// Returns null when the library does not support the version.
typedef const FluidGpuTable* (*FluidGpuTableFn)(uint32_t version);

}  // extern "C"
