#pragma once

// What a library that drives GPUs gives the executor: one C symbol, which returns one table of
// functions. Plain C types alone cross it, so that neither side depends on how the other was built,
// and no header of a vendor is needed here.
//
// Work is queued on streams, in order; work of several streams runs in any order but for what
// events ask. A call returns before its work is done unless it says otherwise. Memory must not be
// released while queued work uses it. Every function returns a result; what went wrong in words is
// what `error` returns, in the thread that made the call.

#include <stddef.h>
#include <stdint.h>

#define FLUID_GPU_TABLE_VERSION 6u
#define FLUID_GPU_TABLE_SYMBOL "fluid_gpu_table"
#define FLUID_GPU_OLDEST_ARCHITECTURE 80  ///< compute capability 8.0, the first with bf16
#define FLUID_GPU_MOST_PRODUCTS 65535     ///< of equal sizes, in one call

extern "C" {

typedef enum FluidGpuResult {
  fluid_gpu_ok = 0,
  fluid_gpu_not_ready = 1,      ///< of an event: its work is not done
  fluid_gpu_out_of_memory = 2,  ///< nothing was taken
  fluid_gpu_unusable = 3,       ///< no driver, no GPU, or one that is not supported
  fluid_gpu_misused = 4,        ///< a call that is not allowed here; the queues are as before
  fluid_gpu_failed = 5          ///< the GPU or a library failed: what is queued is lost
} FluidGpuResult;

/// As each library counts: CUDA 13000 is 13.0, cuDNN 91300 is 9.13.0, NCCL 22703 is 2.27.3.
typedef struct FluidGpuVersions {
  int64_t driver;  ///< of CUDA that the driver runs; 0: there is no driver
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

typedef struct FluidGpu FluidGpu;  ///< a GPU that was opened
typedef struct FluidGpuStream FluidGpuStream;
typedef struct FluidGpuEvent FluidGpuEvent;
typedef struct FluidGpuGraph FluidGpuGraph;                ///< recorded work that is queued as one
typedef struct FluidGpuModule FluidGpuModule;              ///< loaded code
typedef struct FluidGpuKernel FluidGpuKernel;              ///< an entry of a module
typedef struct FluidGpuCommunicator FluidGpuCommunicator;  ///< of one GPU with those of other ranks

typedef enum FluidGpuEventUse {
  fluid_gpu_orders = 0,  ///< streams wait for the event, and the host
  fluid_gpu_times = 1    ///< it tells the time, and the host may wait for it; streams may not
} FluidGpuEventUse;

typedef struct FluidGpuLaunch {
  FluidGpuKernel* kernel;
  int64_t groups;          ///< CUDA's grid
  int64_t threads;         ///< of a group: CUDA's block
  void* const* arguments;  ///< the address of each, copied by the call
  int32_t argument_count;  ///< every argument has 8 bytes
} FluidGpuLaunch;

typedef enum FluidGpuNumber {
  fluid_gpu_f64 = 0,
  fluid_gpu_f32 = 1,
  fluid_gpu_f16 = 2,
  fluid_gpu_bf16 = 3
} FluidGpuNumber;

/// `count` products of matrices, result = relu(op(a) op(b) + addend + bias). A row's elements
/// follow each other in memory; op is the matrix as it is, or transposed. Sums are kept in f32, of
/// f64 in f64.
typedef struct FluidGpuProduct {
  FluidGpuNumber operands;  ///< of a and b
  FluidGpuNumber result;    ///< of all else: as `operands`, or f32 where these are halves
  int32_t tf32;             ///< f32 operands may be rounded to TF32, which has 10 bits
  int32_t transpose_a;      ///< a is stored as [k, m] instead of [m, k]
  int32_t transpose_b;      ///< b as [n, k] instead of [k, n]
  int32_t adds;  ///< an addend, laid out as the result, whose memory it may be; alone of the three
  int32_t bias;  ///< one number a column; not in f64
  int32_t relu;  ///< max(x, 0), whatever becomes of a NaN; not in f64
  int64_t m, n, k;                            ///< op(a) is [m, k], op(b) [k, n]; all at least 1
  int64_t a_row, b_row, result_row;           ///< elements from a row to the next, as stored
  int64_t count;                              ///< 1 to FLUID_GPU_MOST_PRODUCTS
  int64_t a_matrix, b_matrix, result_matrix;  ///< elements from one to the next
} FluidGpuProduct;

/// What of a convolution is computed, and from which factors.
typedef enum FluidGpuDirection {
  fluid_gpu_forward = 0,         ///< a: the images, b: the filters, result: the maps
  fluid_gpu_data_gradient = 1,   ///< a: the gradient of the maps, b: the filters, result: of images
  fluid_gpu_filter_gradient = 2  ///< a: the images, b: the gradient of the maps, result: of filters
} FluidGpuDirection;

/// result = relu(convolution + addend + bias), where images [images, channels, height, width] and
/// filters [filters, channels / groups, filter_height, filter_width] give maps [images, filters,
/// map_height, map_width]; filters are not turned. Of pairs the first is along the height. Sums are
/// kept in f32.
typedef struct FluidGpuConvolution {
  FluidGpuDirection direction;
  FluidGpuNumber number;  ///< of all tensors; not f64
  int32_t tf32;           ///< f32 factors may be rounded to TF32, which has 10 bits
  int32_t
      channels_last;  ///< images and maps lie as [images, height, width, channels]; filters never
  int32_t adds;       ///< an addend, laid out as the result, whose memory it may be; alone
  int32_t bias;       ///< one number a filter; forward only
  int32_t relu;       ///< max(x, 0), whatever becomes of a NaN; with a bias alone
  int32_t groups;     ///< of channels and filters that do not see each other
  int64_t images, channels, height, width;
  int64_t filters, filter_height, filter_width;
  int64_t map_height, map_width;
  int64_t stride[2], dilation[2];
  int64_t padding[2];  ///< zeros on either side
} FluidGpuConvolution;

/// A way to compute a product or a convolution. What is opaque stays valid on such a GPU with such
/// a library: it may be kept on disk.
typedef struct FluidGpuChoice {
  uint64_t opaque[8];
  int64_t workspace;  ///< bytes that it needs
} FluidGpuChoice;

/// A product, or a convolution, with a way to compute it.
typedef struct FluidGpuMultiplier FluidGpuMultiplier;

/// Addresses of the GPU's, multiples of FLUID_GPU_PRODUCT_ALIGNMENT, the workspace's of
/// FLUID_GPU_WORKSPACE_ALIGNMENT; null where there is none.
typedef struct FluidGpuFactors {
  const void* a;
  const void* b;
  const void* addend;
  const void* bias;
  void* result;
  void* workspace;  ///< nobody else uses it meanwhile
} FluidGpuFactors;

#define FLUID_GPU_PRODUCT_ALIGNMENT 64
#define FLUID_GPU_WORKSPACE_ALIGNMENT 256  ///< cuBLAS Library: cublasLtMatmul, `workspace`

/// Tells a GPU from all others, on whatever machine.
typedef struct FluidGpuIdentity {
  uint8_t bytes[16];
} FluidGpuIdentity;

/// What the ranks of a communicator meet by; one makes it and tells the others.
typedef struct FluidGpuMeeting {
  char bytes[128];
} FluidGpuMeeting;

typedef struct FluidGpuTable {
  uint32_t version;
  const char* (*error)(void);

  FluidGpuResult (*versions)(FluidGpuVersions* versions);
  /// Of those that CUDA_VISIBLE_DEVICES leaves. Unusable without a driver that is new enough.
  FluidGpuResult (*device_count)(int32_t* count);
  /// 10 times the compute capability. Makes no context, and so takes no memory of the GPU.
  FluidGpuResult (*architecture)(int32_t device, int32_t* architecture);
  FluidGpuResult (*describe)(int32_t device, FluidGpuDescription* description);

  /// Makes a context; unusable when the device's architecture is not supported. `close` waits for
  /// what is queued and takes back what is left.
  FluidGpuResult (*open)(int32_t device, FluidGpu** gpu);
  FluidGpuResult (*close)(FluidGpu* gpu);

  /// Of the GPU's memory, aligned to 256 bytes; not zeroed. Returning it waits for queued work.
  FluidGpuResult (*allocate)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release)(FluidGpu* gpu, void* address);
  /// Of the host's memory, so that copies need not wait for it to be paged in.
  FluidGpuResult (*allocate_host)(FluidGpu* gpu, int64_t bytes, void** address);
  FluidGpuResult (*release_host)(FluidGpu* gpu, void* address);
  FluidGpuResult (*memory_info)(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes);

  FluidGpuResult (*stream_create)(FluidGpu* gpu, FluidGpuStream** stream);
  FluidGpuResult (*stream_destroy)(FluidGpuStream* stream);
  /// Waits until all that was queued is done. Misused while the stream is recorded.
  FluidGpuResult (*stream_synchronize)(FluidGpuStream* stream);

  /// Between addresses of the GPU or of host memory taken above, in any direction.
  FluidGpuResult (*copy)(FluidGpuStream* stream, void* to, const void* from, int64_t bytes);
  FluidGpuResult (*fill)(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes);
  FluidGpuResult (*launch)(FluidGpuStream* stream, const FluidGpuLaunch* launch);

  FluidGpuResult (*event_create)(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event);
  FluidGpuResult (*event_destroy)(FluidGpuEvent* event);
  /// The event stands for all that was queued on the stream so far, until it is noted again. In a
  /// capture, one that tells the time is noted by each launch of the graph instead, when the work
  /// before it there is done: its time can be asked for once the graph is.
  FluidGpuResult (*event_record)(FluidGpuEvent* event, FluidGpuStream* stream);
  /// What is queued on the stream from now on waits for the event, as noted last; not at all when
  /// it never was. Misused of an event that tells the time.
  FluidGpuResult (*stream_wait)(FluidGpuStream* stream, FluidGpuEvent* event);
  FluidGpuResult (*event_query)(FluidGpuEvent* event);  ///< ok: done
  FluidGpuResult (*event_synchronize)(FluidGpuEvent* event);
  /// Between two events that are done and tell the time; misused of others.
  FluidGpuResult (*event_milliseconds)(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds);

  /// What is queued on the stream until `capture_end`, and on those that wait for an event of it,
  /// is recorded instead of run. All of these must have been joined to the stream by then, else the
  /// capture is lost and `capture_end` says misused; likewise when a call was misused meanwhile, as
  /// waiting for the stream, asking for memory or returning it are. One capture a GPU at a time,
  /// which is over after `capture_end`, whatever that says.
  FluidGpuResult (*capture_begin)(FluidGpuStream* stream);
  FluidGpuResult (*capture_end)(FluidGpuStream* stream, FluidGpuGraph** graph);
  FluidGpuResult (*graph_launch)(FluidGpuGraph* graph, FluidGpuStream* stream);
  FluidGpuResult (*graph_destroy)(FluidGpuGraph* graph);

  /// Code for the GPU's architecture, of what the code generator made for it. The image belongs to
  /// the caller, who may keep it on disk, and gives it back by `image_release`.
  FluidGpuResult (*assemble)(FluidGpu* gpu, const char* text, size_t length, void** image,
                             size_t* image_bytes);
  void (*image_release)(void* image);
  FluidGpuResult (*module_load)(FluidGpu* gpu, const void* image, size_t bytes,
                                FluidGpuModule** module);
  FluidGpuResult (*module_unload)(FluidGpuModule* module);  ///< waits for queued work
  FluidGpuResult (*module_kernel)(FluidGpuModule* module, const char* name,
                                  FluidGpuKernel** kernel);

  /// The ways to compute a product that give the same bits every time and need at most `workspace`
  /// bytes, those first that the library takes for the fastest. `count`: how many there is room
  /// for; set to how many there are, 0 if none. Misused where there can be no such product.
  FluidGpuResult (*matmul_choices)(FluidGpu* gpu, const FluidGpuProduct* product, int64_t workspace,
                                   FluidGpuChoice* choices, int32_t* count);
  /// Misused when `choice` is none for the product, as one that another library made.
  FluidGpuResult (*multiplier_create)(FluidGpu* gpu, const FluidGpuProduct* product,
                                      const FluidGpuChoice* choice,
                                      FluidGpuMultiplier** multiplier);
  /// The same of convolutions.
  FluidGpuResult (*convolution_choices)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                        int64_t workspace, FluidGpuChoice* choices, int32_t* count);
  FluidGpuResult (*convolver_create)(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                     const FluidGpuChoice* choice, FluidGpuMultiplier** multiplier);
  FluidGpuResult (*multiplier_destroy)(FluidGpuMultiplier* multiplier);
  /// Queues the product or the convolution. Not by two threads at once. The first time loads code:
  /// misused where that is during a capture.
  FluidGpuResult (*multiply)(FluidGpuStream* stream, FluidGpuMultiplier* multiplier,
                             const FluidGpuFactors* factors);

  // What GPUs compute together: each process, a rank, has one of them, and all ranks make the same
  // calls in the same order. These calls return at once. What they began is in effect once
  // `communicator_state` says ok; until then nothing else is done with the communicator or with the
  // stream. Sums are made in one order: the same bits on all ranks, at every run.

  FluidGpuResult (*identity)(FluidGpu* gpu, FluidGpuIdentity* identity);
  FluidGpuResult (*meeting)(FluidGpuMeeting* meeting);
  /// The ranks need as long as the last of them takes to come. Misused when two have the same GPU.
  FluidGpuResult (*communicator_create)(FluidGpu* gpu, const FluidGpuMeeting* meeting, int32_t rank,
                                        int32_t ranks, FluidGpuCommunicator** communicator);
  /// Not ready: the last call is not in effect yet. Anything else than ok is a failure, also of
  /// work that was queued earlier, and stays: then abort.
  FluidGpuResult (*communicator_state)(FluidGpuCommunicator* communicator);
  /// Ends what waits for other ranks on this GPU, whose results are lost. Nothing may follow but to
  /// destroy it, and no graph with work of it may be launched.
  FluidGpuResult (*communicator_abort)(FluidGpuCommunicator* communicator);
  /// Waits for queued work, unless it was aborted. Graphs with work of it must be gone.
  FluidGpuResult (*communicator_destroy)(FluidGpuCommunicator* communicator);

  /// In place, over `count` elements, on a stream of the communicator's GPU, which may be recorded.
  FluidGpuResult (*all_reduce)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, FluidGpuNumber element);
  /// Rank r gets the sums of its share alone, the elements from r * share on, up to share of them;
  /// what the others are then is not said. ranks * share >= count.
  FluidGpuResult (*reduce_scatter)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                                   void* data, int64_t count, int64_t share,
                                   FluidGpuNumber element);
  /// Gives every rank what each has in its share, as above.
  FluidGpuResult (*all_gather)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, int64_t share, FluidGpuNumber element);
  /// Gives every rank the bytes of rank `root`.
  FluidGpuResult (*broadcast)(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t bytes, int32_t root);
} FluidGpuTable;

/// Null when the library does not have this version.
typedef const FluidGpuTable* (*FluidGpuTableFn)(uint32_t version);

}  // extern "C"
