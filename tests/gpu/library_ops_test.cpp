// Tests that GPU libraries compute ops and their epilogues correctly.

#include <cstring>

#include "executor/gpu/gpu_target.h"
#include "executor/gpu_driver/gpu.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "ops/operators.h"
#include "tests/gpu/library_test.h"
#include "tests/support/gpu_convolution_cases.h"
#include "tests/support/library_program.h"

namespace fluid::library_ops_test {
namespace {

using fluid::testing::ConvolutionProgram;
using fluid::testing::LibraryProgram;

constexpr int64_t kWorkspace = testing::kConformanceWorkspace;

class GpuLibraryOps : public GpuLibraryTest {
 protected:
  /// Computes a program that a library kernel can compute.
  void expect_computed(const ConvolutionProgram& c) {
    LibraryProgram& p = *c.program;
    p.graph.outputs.assign(1, {"y", p.result()});
    const Tensor expected = testing::interpret(p.graph, p.feeds).outputs.at("y");
    c.lay_out();
    const GpuTarget target(describe_gpu(gpu_backend(), 0), {kWorkspace});
    const std::vector<KernelCandidate> offered = target.candidates(*p.chain[0], p.epilogue());
    ASSERT_EQ(offered.size(), 1U);
    KernelCandidate candidate = offered.front();
    if (candidate.overwrites_addend) candidate.operands.push_back(candidate.results[0]);
    const auto make = [&](std::string_view, const ir::Op&, const EpilogueOps&, int64_t) {
      c.lay_out();
      return routine(p, candidate.workspace);
    };
    testing::expect_near(testing::run_candidate(p, make, candidate), expected,
                         testing::library_tolerance(p.dtype));
    c.lay_plain();
  }

 private:
  /// Brings the factors to the GPU and the result back.
  LibraryRoutine routine(const LibraryProgram& p, int64_t planned) {
    const auto product = gpu_matmul(*p.chain[0], p.epilogue(), 1);
    const auto convolution = gpu_convolution(*p.chain[0], p.epilogue(), 1);
    const GpuTask task = product ? GpuTask(*product) : GpuTask(convolution.value());
    std::vector<int64_t> bytes;
    for (const Value& v : p.inputs()) bytes.push_back(v.type().bytes_at(1));
    bytes.push_back(p.result().type().bytes_at(1));
    return {[=, this](void* const* buffers, void*) {
              return LibraryCall{[=, this] { compute(task, bytes, buffers); }};
            },
            planned};
  }

  void compute(const GpuTask& task, const std::vector<int64_t>& bytes, void* const* buffers) {
    std::vector<GpuMemory> here, there;
    for (size_t i = 0; i < bytes.size(); ++i) {
      here.push_back(gpu_->allocate_host(bytes[i]));
      there.push_back(gpu_->allocate(bytes[i]));
      std::memcpy(here[i].data(), buffers[i], static_cast<size_t>(bytes[i]));
      gpu_->copy(stream_, there[i].data(), here[i].data(), bytes[i]);
    }
    const GpuMemory workspace = gpu_->allocate(kWorkspace);
    const bool has_addend = std::visit([](const auto& t) { return t.has_addend != 0; }, task);
    const bool bias = std::visit([](const auto& t) { return t.bias != 0; }, task);
    const size_t last = bytes.size() - 1;
    const GpuPlan gpu_plan = gpu_->create_plan(task, gpu_->algorithms(task, kWorkspace, 1).at(0));
    gpu_->execute_plan(stream_, gpu_plan,
                       {.a = there[0].data(),
                        .b = there[1].data(),
                        .addend = has_addend ? there[2].data() : nullptr,
                        .bias = bias ? there[2].data() : nullptr,
                        .result = there[last].data(),
                        .workspace = workspace.data()});
    gpu_->copy(stream_, here[last].data(), there[last].data(), bytes[last]);
    gpu_->synchronize(stream_);
    std::memcpy(buffers[last], here[last].data(), static_cast<size_t>(bytes[last]));
  }
};

TEST_F(GpuLibraryOps, ConvolutionsOfAllKinds) {
  for (const ConvolutionProgram& c : testing::convolution_programs()) {
    SCOPED_TRACE(c.name);
    expect_computed(c);
  }
}

TEST_F(GpuLibraryOps, ProductsWithWhatFollows) {
  for (const DType dtype : {f32, f16, bf16}) {
    for (const int followed : {0, 1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << name_of(dtype) << ' ' << followed);
      ConvolutionProgram product = {.program = std::make_unique<LibraryProgram>()};
      LibraryProgram& p = *product.program;
      p.dtype = dtype;
      const Value y = matmul(p.feed({19, 33}), p.feed({33, 24}));
      p.then(y);
      if (followed == 3) {
        p.then(y + p.feed({19, 24}));
      } else if (followed > 0) {
        const Value sum = y + p.feed({24});
        p.then(sum);
        if (followed == 2) p.then(relu(sum));
      }
      expect_computed(product);
    }
  }
}

}  // namespace
}  // namespace fluid::library_ops_test
