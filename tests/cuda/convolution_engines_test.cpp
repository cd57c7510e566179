// Tests which cuDNN engines are found for convolutions, on described GPUs that this machine need
// not have. Runs no kernel.

#include "executor/cuda/convolution_engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "executor/gpu_libraries/gpu_workspace.h"
#include "tests/support/example_convolutions.h"
#include "tests/support/full_run.h"
#include "tests/support/gpu_convolution_cases.h"

namespace fluid::cuda::convolution_engines_test {
namespace {

using testing::convolution_of;
using testing::Convolutions;
using testing::convolutions_of;
using testing::followed_convolutions;
using testing::kDirections;

constexpr int64_t kWorkspace = kGpuWorkspace;

using Layer = testing::ConvolutionLayer;
constexpr auto& kLayers = testing::kExampleConvolutions;

/// As cuDNN describes one, by what NVIDIA says of it: A100, H100, B200, RTX 5090.
std::string described(int architecture) {
  struct Gpu {
    int multiprocessors, threads, groups, shared;
    const char* name;
  };
  static const std::map<int, Gpu> gpus = {{80, {108, 2048, 32, 163, "NVIDIA A100-SXM4-80GB"}},
                                          {90, {132, 2048, 32, 227, "NVIDIA H100 80GB HBM3"}},
                                          {100, {148, 2048, 32, 227, "NVIDIA B200"}},
                                          {120, {170, 1536, 24, 99, "NVIDIA GeForce RTX 5090"}}};
  const Gpu& gpu = gpus.at(architecture);
  const auto text = [](int64_t number) { return std::to_string(number); };
  return R"({"cudaDeviceId":0,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)"
         R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,"pciDeviceId":0,)"
         R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,)"
         R"("maxRegistersPerSM":65536,"maxThreadsPerBlock":1024,"isTccDriver":0,)"
         R"("supportCoopLaunch":1,"smClockRateKHz":1800000,"memClockRateKHz":2600000,)"
         R"("l2CacheSize":52428800,"totalGlobalMem":34000000000,"deviceVer":)" +
         text(10 * architecture) + R"(,"multiProcessorCount":)" + text(gpu.multiprocessors) +
         R"(,"maxSharedMemoryPerBlockOptin":)" + text(int64_t{1024} * gpu.shared) +
         R"(,"maxCtasPerSM":)" + text(gpu.groups) + R"(,"maxThreadsPerSM":)" + text(gpu.threads) +
         R"(,"deviceName":")" + gpu.name + R"("})";
}

std::vector<FluidGpuAlgorithm> found_for(const FluidGpuConvolution& c, const DnnDevice& machine,
                                         int64_t workspace, int room) {
  ConvolutionEngines found = convolution_engines(c, machine, workspace, room);
  EXPECT_EQ(found.status, CUDNN_STATUS_SUCCESS);
  return std::move(found.algorithms);
}

/// One architecture, or all in a full run.
const std::vector<int>& architectures() {
  static const std::vector<int> all =
      fluid::testing::is_full_run() ? std::vector{80, 90, 100, 120} : std::vector{90};
  return all;
}

std::string text_of(int architecture, const Layer& layer, const FluidGpuConvolution& c) {
  constexpr const char* kWords[] = {"forward", "data gradient", "filter gradient"};
  constexpr const char* kNumbers[] = {"f64", "f32", "f16", "bf16"};
  return std::string("sm_") + std::to_string(architecture) + " " + layer.name + ", " +
         kWords[c.direction] + " in " + kNumbers[c.dtype] + (c.tf32 != 0 ? ", TF32" : "") +
         (c.has_addend != 0 ? ", added" : "") + (c.bias != 0 ? ", bias" : "") +
         (c.relu != 0 ? ", relu" : "");
}

class ConvolutionEnginesTest : public ::testing::Test {
 protected:
  const DnnDevice& machine(int architecture) {
    auto& made = machines_[architecture];
    if (!made) made = std::make_unique<DnnDevice>(described(architecture));
    return *made;
  }
  void expect_one(int architecture, const Layer& layer, const FluidGpuConvolution& c) {
    expect_one(architecture, text_of(architecture, layer, c), c, kWorkspace);
  }
  /// Expects that an engine is found, and that its stored form gives the same plan.
  void expect_one(int architecture, const std::string& what, const FluidGpuConvolution& c,
                  int64_t workspace) {
    ASSERT_EQ(validation_error(c), "") << what;
    const ConvolutionDescription description(c);
    ASSERT_EQ(description.status(), CUDNN_STATUS_SUCCESS) << what;
    const auto found = found_for(c, machine(architecture), workspace, 1);
    ASSERT_EQ(found.size(), 1U) << what;
    const ConvolutionPlan plan =
        create_convolution_plan(description, machine(architecture), found[0]);
    EXPECT_EQ(plan.plan.status(), CUDNN_STATUS_SUCCESS) << what;
    EXPECT_EQ(plan.workspace, found[0].workspace) << what;
    EXPECT_LE(plan.workspace, workspace) << what;
  }

 private:
  std::map<int, std::unique_ptr<DnnDevice>> machines_;
};

TEST_F(ConvolutionEnginesTest, ThereAreForWhatTheExamplesCompute) {
  for (const int architecture : architectures()) {
    for (const Layer& layer : kLayers) {
      for (const FluidGpuDirection direction : kDirections) {
        for (const auto number : {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
          expect_one(architecture, layer, convolution_of(layer, direction, number));
        }
      }
    }
  }
}

TEST_F(ConvolutionEnginesTest, ThereAreWithWhatFollows) {
  for (const int architecture : architectures()) {
    for (const Layer& layer : kLayers) {
      for (const auto number : {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
        for (const FluidGpuDirection direction : kDirections) {
          FluidGpuConvolution c = convolution_of(layer, direction, number);
          c.has_addend = 1;
          expect_one(architecture, layer, c);
        }
        FluidGpuConvolution c = convolution_of(layer, fluid_gpu_forward, number);
        c.bias = 1;
        expect_one(architecture, layer, c);
        c.relu = 1;
        expect_one(architecture, layer, c);
      }
    }
  }
}

TEST_F(ConvolutionEnginesTest, ThereAreForGroupsAndDilation) {
  constexpr Layer kLayer = {"64 channels", 16, 64, 28, 64, 3, 1, 2};
  for (const int architecture : architectures()) {
    for (const FluidGpuDirection direction : kDirections) {
      for (const auto number : {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16}) {
        for (const bool last : {false, true}) {
          FluidGpuConvolution c = convolution_of(kLayer, direction, number);
          c.channels_last = last;
          c.groups = 4;
          expect_one(architecture, kLayer, c);
          c.groups = 64;
          expect_one(architecture, kLayer, c);
          c.groups = 1;
          c.dilation[0] = c.dilation[1] = 2;
          c.map_height = c.map_width = 28;
          expect_one(architecture, kLayer, c);
        }
      }
    }
  }
}

/// So that none of them fails on a GPU for want of an engine.
TEST_F(ConvolutionEnginesTest, ThereAreForWhatTestsOnAGpuCompute) {
  for (const int architecture : architectures()) {
    const auto expect_all = [&](const Convolutions& all, int64_t workspace) {
      for (const FluidGpuConvolution& c : all) {
        expect_one(architecture, fluid::task_key(c), c, workspace);
      }
    };
    expect_all(convolutions_of(testing::conformance_sizes()), testing::kConformanceWorkspace);
    expect_all(followed_convolutions(testing::kConformanceFollowed),
               testing::kConformanceWorkspace);
    expect_all(convolutions_of(testing::many_sizes()), testing::kManyWorkspace);
    expect_all(followed_convolutions(testing::kManyFollowed), testing::kManyWorkspace);
    for (const testing::ConvolutionProgram& made : testing::convolution_programs()) {
      made.lay_out();
      const auto c = gpu_convolution(*made.program->chain[0], made.program->epilogue(), 1);
      ASSERT_TRUE(c.has_value()) << made.name;
      expect_one(architecture, made.name, *c, testing::kConformanceWorkspace);
    }
  }
}

/// The number of the engine, and what cuDNN notes of it.
std::vector<cudnnBackendNumericalNote_t> notes_of(const FluidGpuConvolution& c,
                                                  const DnnDevice& machine,
                                                  const FluidGpuAlgorithm& choice) {
  const ConvolutionDescription description(c);
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, description.graph())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
           static_cast<int64_t>(static_cast<uint32_t>(choice.opaque[0])));
  machine.set_device_properties(engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
  engine.finalize();
  EXPECT_EQ(engine.status(), CUDNN_STATUS_SUCCESS);
  const auto notes = engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  EXPECT_TRUE(notes.has_value());
  return notes.value_or(std::vector<cudnnBackendNumericalNote_t>());
}

TEST_F(ConvolutionEnginesTest, OnlyHalvesAndTf32RunOnTensorCores) {
  const Layer& layer = kLayers[1];
  for (const int architecture : architectures()) {
    for (const FluidGpuDirection direction : kDirections) {
      for (const auto& [number, tf32] : {std::pair{fluid_gpu_f32, 0}, std::pair{fluid_gpu_f32, 1},
                                         std::pair{fluid_gpu_bf16, 0}}) {
        FluidGpuConvolution c = convolution_of(layer, direction, number);
        c.tf32 = tf32;
        const auto found = found_for(c, machine(architecture), kWorkspace, 8);
        ASSERT_GE(found.size(), 2U) << text_of(architecture, layer, c);
        bool any = false;
        for (const FluidGpuAlgorithm& choice : found) {
          for (const auto note : notes_of(c, machine(architecture), choice)) {
            any |= note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
            EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
            EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
            EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
          }
        }
        EXPECT_EQ(any, number != fluid_gpu_f32 || tf32 != 0) << text_of(architecture, layer, c);
      }
    }
  }
}

/// Among as many as are timed.
TEST_F(ConvolutionEnginesTest, HalvesHaveTensorCoresInTheExamples) {
  for (const int architecture : architectures()) {
    for (const Layer& layer : kLayers) {
      for (const FluidGpuDirection direction : kDirections) {
        const FluidGpuConvolution c = convolution_of(layer, direction, fluid_gpu_bf16);
        const auto found = found_for(c, machine(architecture), kWorkspace, 8);
        EXPECT_TRUE(std::ranges::any_of(found, [&](const FluidGpuAlgorithm& choice) {
          const auto notes = notes_of(c, machine(architecture), choice);
          return std::ranges::find(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
        })) << text_of(architecture, layer, c);
      }
    }
  }
}

TEST_F(ConvolutionEnginesTest, FitTheWorkspace) {
  const FluidGpuConvolution c = convolution_of(kLayers[1], fluid_gpu_data_gradient, fluid_gpu_bf16);
  int64_t widest = 0;
  for (const FluidGpuAlgorithm& choice : found_for(c, machine(90), kWorkspace, 100)) {
    widest = std::max(widest, choice.workspace);
  }
  ASSERT_GT(widest, 0);
  const auto narrow = found_for(c, machine(90), widest - 1, 100);
  EXPECT_FALSE(narrow.empty());
  for (const FluidGpuAlgorithm& choice : narrow) EXPECT_LT(choice.workspace, widest);
  EXPECT_EQ(found_for(c, machine(90), kWorkspace, 3).size(), 3U);
}

/// Versions of cuDNN for which `workspace_for` was tuned. Another version may prefer other engines,
/// which affects speed only.
constexpr size_t kVersionsLookedAt[] = {91300, 91900, 92600};

/// The planned workspace of a convolution fits at least one of the engines that cuDNN ranks
/// highest.
TEST_F(ConvolutionEnginesTest, FavouritesFitTheWorkspaceThatIsPlanned) {
  std::string misses;
  for (const int architecture : architectures()) {
    for (const Layer& layer : kLayers) {
      for (const FluidGpuDirection direction : kDirections) {
        for (const auto& [number, tf32] : {std::pair{fluid_gpu_f32, 0}, std::pair{fluid_gpu_f32, 1},
                                           std::pair{fluid_gpu_bf16, 0}}) {
          FluidGpuConvolution c = convolution_of(layer, direction, number);
          c.tf32 = tf32;
          const auto all = found_for(c, machine(architecture), kWorkspace, 4);
          const int64_t planned = workspace_for(c, kGpuWorkspace);
          const auto fits = [&](const FluidGpuAlgorithm& way) { return way.workspace <= planned; };
          if (std::ranges::any_of(all, fits)) continue;
          misses += "\n" + text_of(architecture, layer, c) + " has " + std::to_string(planned) +
                    ", and needs " + std::to_string(all.at(0).workspace);
        }
      }
    }
  }
  if (misses.empty()) return;
  const size_t version = cudnnGetVersion();
  misses = "the favourites of cuDNN " + std::to_string(version) +
           " want more than executor/gpu/gpu_workspace plans, so that others compute, which may be "
           "slower: widen it, and note the version here" +
           misses;
  if (std::ranges::find(kVersionsLookedAt, version) == std::end(kVersionsLookedAt)) {
    GTEST_SKIP() << misses;
  }
  ADD_FAILURE() << misses;
}

/// Like the test above, with recorded answers of other cuDNN versions on an RTX 5090.
TEST(ConvolutionWorkspace, FitsTheFavouritesOfOtherVersions) {
  struct Favourite {
    const char* version;
    const char* layer;
    FluidGpuDirection direction;
    int64_t needs;
  };
  for (const Favourite& f :
       {Favourite{"9.26", "mnist_cnn 2", fluid_gpu_filter_gradient, 10'655'187},
        Favourite{"9.13", "ResNet-18 d", fluid_gpu_data_gradient, 6'816'943}}) {
    const auto layer = std::ranges::find(kLayers, std::string_view(f.layer), &Layer::name);
    ASSERT_NE(layer, std::end(kLayers));
    EXPECT_GE(workspace_for(convolution_of(*layer, f.direction, fluid_gpu_bf16), kGpuWorkspace),
              f.needs)
        << f.version << ", " << f.layer;
  }
}

TEST_F(ConvolutionEnginesTest, RejectWhatIsNoneOfTheirs) {
  const FluidGpuConvolution c = convolution_of(kLayers[1], fluid_gpu_forward, fluid_gpu_f16);
  const ConvolutionDescription description(c);
  const DnnDevice no_machine("{}");
  EXPECT_NE(convolution_engines(c, no_machine, kWorkspace, 1).status, CUDNN_STATUS_SUCCESS);
  const FluidGpuAlgorithm no_engine = {.opaque = {9999}};
  const auto category = [&](const FluidGpuAlgorithm& choice) {
    const cudnnStatus_t status =
        create_convolution_plan(description, machine(90), choice).plan.status();
    return CUDNN_STATUS_CATEGORY(status);
  };
  EXPECT_EQ(category(no_engine), CUDNN_STATUS_NOT_SUPPORTED);
  FluidGpuAlgorithm damaged = found_for(c, machine(90), kWorkspace, 1).at(0);
  damaged.opaque[1] = 0x7fff7fff7fff7fff;  // knobs that do not exist
  EXPECT_EQ(category(damaged), CUDNN_STATUS_BAD_PARAM);
}

TEST(ConvolutionFaults, SayWhatThereCannotBe) {
  const auto fault = [](auto change) {
    FluidGpuConvolution c = convolution_of(kLayers[2], fluid_gpu_forward, fluid_gpu_f32);
    change(c);
    return validation_error(c);
  };
  using C = FluidGpuConvolution;
  EXPECT_EQ(fault([](C&) {}), "");
  EXPECT_EQ(fault([](C& c) { c.bias = c.relu = 1; }), "");
  EXPECT_EQ(fault([](C& c) { c.images = 0; }), "an extent is not positive, or too large");
  EXPECT_EQ(fault([](C& c) { c.stride[1] = 0; }), "an extent is not positive, or too large");
  EXPECT_EQ(fault([](C& c) { c.images = int64_t{1} << 31; }),
            "an extent is not positive, or too large");
  EXPECT_EQ(fault([](C& c) { c.direction = static_cast<FluidGpuDirection>(3); }),
            "its direction is invalid");
  EXPECT_EQ(fault([](C& c) { c.dtype = fluid_gpu_f64; }), "its dtype is invalid");
  EXPECT_EQ(fault([](C& c) { c.groups = 5; }), "its groups do not divide its channels or filters");
  EXPECT_EQ(fault([](C& c) { c.padding[0] = -1; }), "its padding is negative");
  EXPECT_EQ(fault([](C& c) { c.relu = 1; }), "it has a relu without a bias");
  EXPECT_EQ(fault([](C& c) { c.bias = c.has_addend = 1; }), "it has an addend and a bias");
  EXPECT_EQ(fault([](C& c) {
              c.direction = fluid_gpu_data_gradient;
              c.bias = 1;
            }),
            "a gradient has a bias");
  EXPECT_EQ(fault([](C& c) { c.map_width -= 1; }), "its feature maps have the wrong size");
}

/// Without a driver nothing is computed, and nothing is left behind.
TEST(Convolutions, SayThatThereIsNoGpu) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) GTEST_SKIP() << "this machine has a GPU";
  FluidGpu gpu = {.device = 0, .architecture = 90};
  const FluidGpuConvolution c = convolution_of(kLayers[2], fluid_gpu_forward, fluid_gpu_f32);
  std::array<FluidGpuAlgorithm, 4> choices = {};
  int32_t count = 4;
  EXPECT_EQ(convolution_algorithms(&gpu, &c, 0, choices.data(), &count), fluid_gpu_unusable);
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(std::string(last_error()).starts_with("choosing a convolution algorithm: cuda"))
      << last_error();
  FluidGpuPlan* gpu_plan = nullptr;
  EXPECT_EQ(convolution_plan_create(&gpu, &c, choices.data(), &gpu_plan), fluid_gpu_unusable);
  EXPECT_EQ(gpu_plan, nullptr);
  EXPECT_EQ(gpu.dnn, nullptr);
}

}  // namespace
}  // namespace fluid::cuda::convolution_engines_test
