#pragma once

// The C interface of a GPU library. The library exports one symbol, which returns a table of
// functions. The interface uses only plain C types, so that the library and the program may be
// built by different compilers. The interface includes no vendor header.
//
// Work is queued on streams. A stream runs its work in order. Work on different streams is ordered
// only by events. Calls are asynchronous unless stated otherwise. Memory must not be released while
// queued work uses it. Functions return a FluidGpuResult; `error` returns the message of the
// calling thread's last error.

#include <stddef.h>
#include <stdint.h>

#define FLUID_GPU_TABLE_VERSION 6u
#define FLUID_GPU_TABLE_SYMBOL "fluid_gpu_table"
#define FLUID_GPU_OLDEST_ARCHITECTURE 80  ///< sm_80, the oldest architecture with bf16 arithmetic
#define FLUID_GPU_MAX_MATMUL_BATCH 65535  ///< maximum batch size of a batched matmul

extern "C" {

typedef enum FluidGpuResult {
  fluid_gpu_ok = 0,
  fluid_gpu_not_ready = 1,      ///< the queried event or NCCL call is not complete
  fluid_gpu_out_of_memory = 2,  ///< GPU or host memory is exhausted; the call has allocated nothing
  fluid_gpu_unusable = 3,       ///< no driver, no GPU, or an unsupported GPU
  fluid_gpu_invalid_usage = 4,  ///< an invalid call, which queued no work
  fluid_gpu_failed = 5          ///< the GPU or a library failed; results of queued work are lost
} FluidGpuResult;

/// Library versions, each in the library's encoding: 13000 is CUDA 13.0, 91300 is cuDNN 9.13.0, and
/// 22703 is NCCL 2.27.3.
typedef struct FluidGpuVersions {
  int64_t driver;       ///< CUDA version that the driver supports; 0: no driver
  int64_t runtime;      ///< CUDA runtime
  int64_t blas;         ///< cuBLASLt
  int64_t dnn;          ///< cuDNN
  int64_t collectives;  ///< NCCL's version
  int64_t linker;       ///< nvJitLink's version
} FluidGpuVersions;

/// Properties of a GPU.
typedef struct FluidGpuDescription {
  char name[128];
  int32_t major, minor;  ///< compute capability
  int32_t multiprocessors;
  int32_t memory_bus_bits;
  int64_t clock_khz, memory_clock_khz;
  int64_t memory, free_memory;  ///< total and free GPU memory in bytes
} FluidGpuDescription;

typedef struct FluidGpu FluidGpu;  ///< an open GPU and its CUDA context
typedef struct FluidGpuStream FluidGpuStream;
typedef struct FluidGpuEvent FluidGpuEvent;
typedef struct FluidGpuGraph FluidGpuGraph;                ///< an instantiated CUDA graph
typedef struct FluidGpuModule FluidGpuModule;              ///< GPU code loaded from a cubin
typedef struct FluidGpuKernel FluidGpuKernel;              ///< a kernel of a module
typedef struct FluidGpuCommunicator FluidGpuCommunicator;  ///< an NCCL communicator

typedef enum FluidGpuEventUse {
  fluid_gpu_event_order = 0,  ///< without timing; streams and the host may wait for the event
  fluid_gpu_event_timing = 1  ///< with timing; only the host may wait for the event
} FluidGpuEventUse;

/// Parameters of a one-dimensional kernel launch.
typedef struct FluidGpuLaunch {
  FluidGpuKernel* kernel;
  int64_t grid;            ///< number of thread blocks in the grid
  int64_t block;           ///< number of threads per block
  void* const* arguments;  ///< host address of each argument; the arguments are copied by the call
  int32_t argument_count;  ///< number of arguments, each of 8 bytes
} FluidGpuLaunch;

typedef enum FluidGpuDtype {
  fluid_gpu_f64 = 0,
  fluid_gpu_f32 = 1,
  fluid_gpu_f16 = 2,
  fluid_gpu_bf16 = 3
} FluidGpuDtype;

/// A batched matmul of `count` matrices: result = relu(op(a) op(b) + addend + bias). Matrices are
/// row-major. op() transposes its operand or does nothing. The matmul accumulates in f32, or in f64
/// for f64 operands.
typedef struct FluidGpuMatmul {
  FluidGpuDtype operands;  ///< dtype of a and b
  /// dtype of result, addend and bias: equal to `operands`, or f32 if `operands` is f16 or bf16
  FluidGpuDtype result;
  int32_t tf32;         ///< whether f32 operands may be rounded to TF32 (10 mantissa bits)
  int32_t transpose_a;  ///< whether a is stored as [k, m] instead of [m, k]
  int32_t transpose_b;  ///< whether b is stored as [n, k] instead of [k, n]
  /// Whether a tensor is added to the result. The tensor has the result's layout, and may alias the
  /// result. Cannot be combined with bias or relu.
  int32_t has_addend;
  int32_t bias;     ///< whether there is a bias, one value per column; not for f64
  int32_t relu;     ///< whether max(x, 0) is applied; NaN may become 0; not for f64
  int64_t m, n, k;  ///< extents, at least 1: op(a) is [m, k], op(b) is [k, n]
  int64_t a_row_stride, b_row_stride, result_row_stride;  ///< row strides, in elements
  int64_t count;  ///< batch size, 1 to FLUID_GPU_MAX_MATMUL_BATCH
  /// Batch strides: distances between the starts of consecutive matrices, in elements.
  int64_t a_matrix_stride, b_matrix_stride, result_matrix_stride;
} FluidGpuMatmul;

/// Direction of a convolution: forward, or one of its two gradients. Each enumerator states which
/// tensors are operand a, operand b and the result.
typedef enum FluidGpuDirection {
  fluid_gpu_forward = 0,        ///< a: images (input), b: filters, result: feature maps (output)
  fluid_gpu_data_gradient = 1,  ///< a: output gradient, b: filters, result: input gradient
  /// a: images, b: output gradient, result: filter gradient.
  fluid_gpu_filter_gradient = 2
} FluidGpuDirection;

/// A convolution or one of its gradients: result = relu(convolution + addend + bias), accumulated
/// in f32. Shapes: images [images, channels, height, width], filters [filters, channels / groups,
/// filter_height, filter_width], feature maps [images, filters, map_height, map_width]. The
/// convolution is a cross-correlation: filters are not flipped. Arrays of two elements hold the
/// value for the height, then the value for the width.
typedef struct FluidGpuConvolution {
  FluidGpuDirection direction;
  FluidGpuDtype dtype;  ///< dtype of all tensors; not f64
  int32_t tf32;         ///< whether f32 operands may be rounded to TF32 (10 mantissa bits)
  /// Whether images and feature maps are NHWC instead of NCHW; filters are always NCHW.
  int32_t channels_last;
  /// Whether a tensor is added to the result. The tensor has the result's layout, and may alias the
  /// result. Cannot be combined with bias or relu.
  int32_t has_addend;
  int32_t bias;    ///< whether there is a bias, one value per filter; forward only
  int32_t relu;    ///< whether max(x, 0) is applied; NaN may become 0; requires a bias
  int32_t groups;  ///< number of groups; 1 if the convolution is not grouped
  int64_t images, channels, height, width;
  int64_t filters, filter_height, filter_width;
  int64_t map_height, map_width;
  int64_t stride[2], dilation[2];
  int64_t padding[2];  ///< rows and columns of zeros added on each side
} FluidGpuConvolution;

/// An algorithm of cuBLASLt for a matmul, or of cuDNN for a convolution. `opaque` is the library's
/// description of the algorithm. `opaque` may be stored on disk, but is valid only for the same GPU
/// model and library version.
typedef struct FluidGpuAlgorithm {
  uint64_t opaque[8];
  int64_t workspace;  ///< bytes of workspace that the algorithm needs
} FluidGpuAlgorithm;

/// A matmul or convolution that is ready to execute with a chosen algorithm.
typedef struct FluidGpuPlan FluidGpuPlan;

/// Device addresses of a plan's tensors; null for absent tensors. Tensors are aligned to
/// FLUID_GPU_TENSOR_ALIGNMENT bytes. The workspace is aligned to FLUID_GPU_WORKSPACE_ALIGNMENT
/// bytes.
typedef struct FluidGpuOperands {
  const void* a;
  const void* b;
  const void* addend;
  const void* bias;
  void* result;
  void* workspace;  ///< scratch memory of the plan; concurrent work must not use it
} FluidGpuOperands;

#define FLUID_GPU_TENSOR_ALIGNMENT 64
#define FLUID_GPU_WORKSPACE_ALIGNMENT 256  ///< bytes; required by cublasLtMatmul()

/// The UUID of a GPU.
typedef struct FluidGpuUuid {
  uint8_t bytes[16];
} FluidGpuUuid;

/// NCCL's unique id of a communicator. One rank creates the id and sends it to the other ranks.
typedef struct FluidGpuUniqueId {
  char bytes[128];
} FluidGpuUniqueId;

typedef struct FluidGpuTable {
  uint32_t version;
  const char* (*error)(void);  ///< returns the message of the calling thread's last error

  FluidGpuResult (*versions)(FluidGpuVersions* versions);
  /// Counts the GPUs visible under CUDA_VISIBLE_DEVICES. Returns fluid_gpu_unusable if there is no
  /// driver, or if the driver is too old.
  FluidGpuResult (*device_count)(int32_t* count);
  /// Returns the architecture as 10 times the compute capability, such as 90. Creates no CUDA
  /// context, and so uses no GPU memory.
  FluidGpuResult (*architecture)(int32_t device, int32_t* architecture);
  FluidGpuResult (*describe)(int32_t device, FluidGpuDescription* description);

  /// Opens a GPU and creates its CUDA context. Returns fluid_gpu_unusable when the architecture of
  /// the GPU is not supported. `close` waits for queued work and destroys all remaining objects of
  /// the GPU.
  FluidGpuResult (*open)(int32_t device, FluidGpu** gpu);
  FluidGpuResult (*close)(FluidGpu* gpu);

  /// Allocates uninitialised GPU memory, aligned to 256 bytes. `release` waits for queued work.
  FluidGpuResult (*allocate)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release)(FluidGpu* gpu, void* address);
  /// Allocates pinned host memory.
  FluidGpuResult (*allocate_host)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release_host)(FluidGpu* gpu, void* address);
  FluidGpuResult (*memory_info)(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes);

  FluidGpuResult (*stream_create)(FluidGpu* gpu, FluidGpuStream** stream);
  FluidGpuResult (*stream_destroy)(FluidGpuStream* stream);
  /// Waits on the host for all work queued on the stream. Returns invalid_usage while the stream is
  /// being captured.
  FluidGpuResult (*stream_synchronize)(FluidGpuStream* stream);

  /// Queues a copy of `bytes` bytes. Each address is in GPU memory or in pinned host memory.
  FluidGpuResult (*copy)(FluidGpuStream* stream, void* to, const void* from, int64_t bytes);
  /// Queues a fill of `bytes` bytes with `value`.
  FluidGpuResult (*fill)(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes);
  FluidGpuResult (*launch)(FluidGpuStream* stream, const FluidGpuLaunch* launch);

  FluidGpuResult (*event_create)(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event);
  FluidGpuResult (*event_destroy)(FluidGpuEvent* event);
  /// Records the event after all work queued on the stream so far. During a capture, recording a
  /// timing event adds an event record node to the graph, so that each launch of the graph records
  /// the event.
  FluidGpuResult (*event_record)(FluidGpuEvent* event, FluidGpuStream* stream);
  /// Makes later work on the stream wait for the last record of the event, if any. Returns
  /// invalid_usage for a timing event.
  FluidGpuResult (*stream_wait)(FluidGpuStream* stream, FluidGpuEvent* event);
  /// Returns fluid_gpu_ok if the event is complete, else fluid_gpu_not_ready.
  FluidGpuResult (*event_query)(FluidGpuEvent* event);
  FluidGpuResult (*event_synchronize)(FluidGpuEvent* event);
  /// Returns the time between two completed timing events in milliseconds. Returns invalid_usage
  /// for other events.
  FluidGpuResult (*event_milliseconds)(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds);

  /// Starts capturing a CUDA graph. Until `capture_end`, work queued on the stream is captured and
  /// not run. Another stream joins the capture when it waits for an event recorded in the capture.
  /// Before `capture_end`, the first stream must wait for all streams that joined; otherwise the
  /// capture is invalidated. Synchronizing, allocating memory and releasing memory also invalidate
  /// the capture. `capture_end` always ends the capture, and returns invalid_usage if the capture
  /// was invalidated. A GPU has at most one capture at a time.
  FluidGpuResult (*capture_begin)(FluidGpuStream* stream);
  FluidGpuResult (*capture_end)(FluidGpuStream* stream, FluidGpuGraph** graph);
  FluidGpuResult (*graph_launch)(FluidGpuGraph* graph, FluidGpuStream* stream);
  FluidGpuResult (*graph_destroy)(FluidGpuGraph* graph);

  /// Compiles PTX to a cubin for this GPU. The caller may store the cubin on disk, and must release
  /// `cubin` with `free_cubin`.
  FluidGpuResult (*assemble)(FluidGpu* gpu, const char* ptx, size_t length, void** cubin,
                             size_t* cubin_bytes);
  void (*free_cubin)(void* cubin);
  /// Loads a cubin onto the GPU as a module.
  FluidGpuResult (*module_load)(FluidGpu* gpu, const void* image, size_t bytes,
                                FluidGpuModule** module);
  FluidGpuResult (*module_unload)(FluidGpuModule* module);  ///< first waits for queued work
  FluidGpuResult (*module_kernel)(FluidGpuModule* module, const char* name,
                                  FluidGpuKernel** kernel);

  /// Lists deterministic algorithms for a matmul in the order of the library's heuristics, fastest
  /// first. Each algorithm needs at most `workspace` bytes of workspace. `count`: capacity of
  /// `algorithms` on entry, number of algorithms on return. Returns invalid_usage for an invalid
  /// matmul.
  FluidGpuResult (*matmul_algorithms)(FluidGpu* gpu, const FluidGpuMatmul* matmul,
                                      int64_t workspace, FluidGpuAlgorithm* algorithms,
                                      int32_t* count);
  /// Creates a matmul plan. Returns invalid_usage when `algorithm` cannot compute the matmul, for
  /// example because `algorithm` comes from another library version.
  FluidGpuResult (*matmul_plan_create)(FluidGpu* gpu, const FluidGpuMatmul* matmul,
                                       const FluidGpuAlgorithm* algorithm, FluidGpuPlan** gpu_plan);
  /// Lists deterministic algorithms for a convolution, as matmul_algorithms does for a matmul.
  FluidGpuResult (*convolution_algorithms)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                           int64_t workspace, FluidGpuAlgorithm* algorithms,
                                           int32_t* count);
  /// Creates a convolution plan. Returns invalid_usage when `algorithm` cannot compute the
  /// convolution.
  FluidGpuResult (*convolution_plan_create)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                            const FluidGpuAlgorithm* algorithm,
                                            FluidGpuPlan** gpu_plan);
  FluidGpuResult (*plan_destroy)(FluidGpuPlan* gpu_plan);
  /// Queues one execution of the plan. Calls for the same plan must not be concurrent. The first
  /// call for a plan loads GPU code, and so returns invalid_usage during a capture.
  FluidGpuResult (*plan_execute)(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                                 const FluidGpuOperands* operands);

  // Collectives. Each process is one rank with one GPU. All ranks make the same calls in the same
  // order. Calls are non-blocking: after a call, the communicator and the stream must not be used
  // until `communicator_state` returns ok. Sums are added in a fixed order, so that results are
  // bitwise equal on all ranks and in every run.

  /// Returns the GPU's UUID.
  FluidGpuResult (*uuid)(FluidGpu* gpu, FluidGpuUuid* uuid);
  /// Creates the unique id of a new communicator. Only one rank calls this function.
  FluidGpuResult (*unique_id)(FluidGpuUniqueId* unique_id);
  /// Collective. Creates this rank's communicator. The call is complete once all ranks have called
  /// it. Returns invalid_usage when two ranks have the same GPU.
  FluidGpuResult (*communicator_create)(FluidGpu* gpu, const FluidGpuUniqueId* unique_id,
                                        int32_t rank, int32_t ranks,
                                        FluidGpuCommunicator** communicator);
  /// Returns the state of the last call for the communicator: fluid_gpu_ok if the call is complete,
  /// else fluid_gpu_not_ready. Any other result reports a permanent failure of this call or of an
  /// earlier call. The caller must then abort the communicator.
  FluidGpuResult (*communicator_state)(FluidGpuCommunicator* communicator);
  /// Aborts this GPU's queued collectives, even if they wait for other ranks. The results of the
  /// collectives are undefined. Afterwards the communicator may only be destroyed, and graphs that
  /// contain its collectives must not be launched.
  FluidGpuResult (*communicator_abort)(FluidGpuCommunicator* communicator);
  /// Destroys the communicator. First waits for queued collectives, unless the communicator was
  /// aborted. The caller must already have destroyed all graphs that contain its collectives.
  FluidGpuResult (*communicator_destroy)(FluidGpuCommunicator* communicator);

  /// In-place sum of `count` elements over all ranks. The stream must belong to the communicator's
  /// GPU, and may be captured.
  FluidGpuResult (*all_reduce)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, FluidGpuDtype dtype);
  /// In-place reduce-scatter. Rank r gets the sums of its shard, which consists of the elements
  /// from r * shard_size to min((r + 1) * shard_size, count). All other elements are undefined.
  /// Requires ranks * shard_size >= count.
  FluidGpuResult (*reduce_scatter)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                                   void* data, int64_t count, int64_t shard_size,
                                   FluidGpuDtype dtype);
  /// In-place all-gather of the ranks' shards. The shards are laid out as in reduce_scatter.
  FluidGpuResult (*all_gather)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, int64_t shard_size, FluidGpuDtype dtype);
  /// In-place broadcast of `bytes` bytes from rank `root`.
  FluidGpuResult (*broadcast)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t bytes, int32_t root);
} FluidGpuTable;

/// Type of the exported function FLUID_GPU_TABLE_SYMBOL. The function returns null when the library
/// does not support `version` of the table.
typedef const FluidGpuTable* (*FluidGpuTableFn)(uint32_t version);

}  // extern "C"
