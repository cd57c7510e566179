#include "tests/support/fused_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "codegen/schedule.h"
#include "ir/print.h"
#include "ops/group.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "tests/support/gpu_emulator.h"
#include "tests/support/kernel_buffers.h"
#include "tests/support/plain_target.h"

namespace fluid::testing {
namespace {

constexpr int64_t kGroups = 5;  // launched thread groups, fewer than blocks: a group runs several

class Runner {
 public:
  Runner(const ir::Program& program, const FusedOptions& options)
      : program_(program), options_(options), compiler_(CompilerOptions{}) {}

  FusedRun run(const NamedTensors& sources) {
    const ir::Graph& main = program_.main();
    for (const auto& op : main.ops) {
      if (op->name == "fused") {
        run_kernel(*op);
      } else if (is_alias(*op)) {
        const Type& type = op->results[0].type;
        Tensor& from = values_.at(op->operands[0]);
        values_[op->result()] = Tensor::view(type.dtype, shape_of(type), from.data());
      } else {
        values_[op->result()] = sources.at(op->symbol).copy();
      }
    }
    for (const ir::Output& o : main.outputs) result_.outputs[o.name] = values_.at(o.value).copy();
    return std::move(result_);
  }

 private:
  std::vector<int64_t> shape_of(const Type& type) const {
    std::vector<int64_t> shape;
    for (const Dim& d : type.shape) shape.push_back(d.at(options_.batch));
    return shape;
  }

  void run_kernel(ir::Op& op) {
    const ir::Graph& body = *program_.find(op.attrs.get<GraphRef>("body").name);
    std::vector<kir::Kernel> passes;
    if (options_.gpu) {
      passes = schedule_gpu(body, "k");
    } else {
      passes.push_back(schedule(body, "k"));
    }
    const kir::Kernel& kernel = passes.front();
    std::vector<Tensor> operands;
    for (const Value& v : op.operands) {
      Tensor& t = values_.at(v);
      operands.push_back(options_.in_place ? t.copy() : t);
    }
    std::vector<void*> buffers;
    for (Tensor& t : operands) buffers.push_back(t.data());
    for (size_t i = 0; i < op.results.size(); ++i) {
      const Value v = op.result(static_cast<int>(i));
      values_[v] = Tensor(v.dtype(), shape_of(v.type()));
      buffers.push_back(values_[v].data());
    }
    copy_to_overwriting_results(in_place_pairs(body), operands, buffers);
    std::vector<std::pair<int, size_t>> shared;
    if (options_.in_place) share(body, buffers, operands.size(), shared);
    std::vector<Tensor> others;
    for (size_t i = buffers.size(); i < kernel.buffers.size(); ++i) {
      others.push_back(memory_of(kernel, kernel.buffers[i], options_.batch));
      buffers.push_back(others.back().data());
    }
    if (options_.gpu) {
      gpu_.run(passes, buffers, options_.batch, kGroups, options_.backwards);
      result_.passes += static_cast<int>(passes.size());
    } else {
      call(kernel, buffers);
    }
    for (const auto& [result, operand] : shared) {
      Tensor& t = values_.at(op.result(result));
      std::memcpy(t.data(), operands[operand].data(), static_cast<size_t>(t.bytes()));
    }
    ++result_.kernels;
  }

  /// Puts each result in the place of an operand, where that is allowed and still free.
  static void share(const ir::Graph& body, std::vector<void*>& buffers, size_t operands,
                    std::vector<std::pair<int, size_t>>& shared) {
    std::set<int> outs, ins;
    for (const InPlace& pair : in_place_pairs(body)) {
      if (outs.contains(pair.out) || ins.contains(pair.in)) continue;
      outs.insert(pair.out);
      ins.insert(pair.in);
      const auto in = static_cast<size_t>(pair.in);
      buffers[operands + static_cast<size_t>(pair.out)] = buffers[in];
      shared.push_back({pair.out, in});
    }
  }

  void call(const kir::Kernel& kernel, const std::vector<void*>& buffers) {
    const CompiledKernel code = compiler_.compile(kernel);
    const int64_t blocks = kir::evaluate(kernel.blocks, options_.batch);
    if (!options_.block_by_block) {
      code.body(buffers.data(), options_.batch, 0, blocks);
    } else {
      for (int64_t b = blocks; b-- > 0;) code.body(buffers.data(), options_.batch, b, b + 1);
    }
    if (code.finish != nullptr) code.finish(buffers.data(), options_.batch, 0, 0);
  }

  const ir::Program& program_;
  FusedOptions options_;
  Compiler compiler_;
  GpuEmulator gpu_{"sm_100"};  // single ops run on sm_90, in kernel_runner
  std::map<Value, Tensor> values_;
  FusedRun result_;
};

FusedRun run_copy(const ir::Program& program, const NamedTensors& sources,
                  const FusedOptions& options) {
  const std::unique_ptr<ir::Program> copy = program.clone();
  return run_fused(*copy, sources, options);
}

void expect_near(const NamedTensors& expected, const NamedTensors& got, double tolerance,
                 const std::string& how) {
  for (const auto& [name, tensor] : expected) {
    const Tensor& other = got.at(name);
    ASSERT_EQ(tensor.shape(), other.shape()) << name;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double limit = tolerance * (1 + std::fabs(tensor.at(i)));
      ASSERT_NEAR(tensor.at(i), other.at(i), limit) << name << "[" << i << "] " << how;
    }
  }
}

}  // namespace

FusedRun run_fused(ir::Program& program, const NamedTensors& sources, const FusedOptions& options) {
  expand_all(program.main());
  Options how;
  how.batch = options.batch;
  how.fuse = options.fuse;
  dce_pass().run(program, how, PlainTarget());  // fuse relies on it
  fuse_pass().run(program, how, PlainTarget());
  if (how.fuse) recompute_pass().run(program, how, PlainTarget());
  outline_pass().run(program, how, PlainTarget());
  return Runner(program, options).run(sources);
}

NamedTensors random_sources(const ir::Program& program, int64_t batch, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(0.1, 2);
  NamedTensors sources;
  for (const auto& op : program.main().ops) {
    if (op->name != "data") continue;
    const Type& type = op->results[0].type;
    std::vector<int64_t> shape;
    for (const Dim& d : type.shape) shape.push_back(d.at(batch));
    Tensor t(f64, shape);
    for (double& x : t.as<double>()) {
      x = is_float(type.dtype) ? real(random) : static_cast<double>(random() % 2);
    }
    sources[op->symbol] = t.cast(type.dtype);
  }
  return sources;
}

int expect_fused_as_interpreted(const ir::Program& program, int64_t batch, double tolerance,
                                uint64_t seed) {
  const NamedTensors sources = random_sources(program, batch, seed);
  const std::unique_ptr<ir::Program> copy = program.clone();
  InterpretOptions reference;
  reference.batch = batch;
  const NamedTensors expected = interpret(copy->main(), sources, reference).outputs;
  const FusedRun whole = run_copy(program, sources, {.batch = batch});
  expect_near(expected, whole.outputs, tolerance, "fused");
  expect_near(expected, run_copy(program, sources, {.batch = batch, .fuse = false}).outputs,
              tolerance, "alone");
  const FusedRun blocks = run_copy(program, sources, {.batch = batch, .block_by_block = true});
  const FusedRun in_place = run_copy(program, sources, {.batch = batch, .in_place = true});
  for (const auto& [name, tensor] : whole.outputs) {
    const auto bytes = static_cast<size_t>(tensor.bytes());
    EXPECT_EQ(0, std::memcmp(tensor.data(), blocks.outputs.at(name).data(), bytes))
        << name << " differs when run block by block";
    EXPECT_EQ(0, std::memcmp(tensor.data(), in_place.outputs.at(name).data(), bytes))
        << name << " differs in place";
  }
  const FusedRun gpu = run_copy(program, sources, {.batch = batch, .gpu = true});
  expect_near(expected, gpu.outputs, tolerance, "on an emulated GPU");
  const FusedRun backwards = run_copy(
      program, sources, {.batch = batch, .in_place = true, .gpu = true, .backwards = true});
  for (const auto& [name, tensor] : gpu.outputs) {
    EXPECT_EQ(0, std::memcmp(tensor.data(), backwards.outputs.at(name).data(),
                             static_cast<size_t>(tensor.bytes())))
        << name << " differs in place, with the last thread first";
  }
  if (::testing::Test::HasFailure()) std::puts(ir::print(program).c_str());
  return whole.kernels;
}

}  // namespace fluid::testing
