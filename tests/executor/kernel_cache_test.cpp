#include "executor/device/kernel_cache.h"

#include <gtest/gtest.h>

#include "executor/cpu/cpu_device.h"
#include "executor/cpu/cpu_target.h"
#include "ops/loops.h"
#include "passes/pass.h"
#include "tests/support/small_programs.h"

namespace fluid::kernel_cache_test {
namespace {

/// The step of the seed network, compiled up to its memory plan.
struct Step {
  Options options;
  std::unique_ptr<ir::Program> program = testing::conv_net({.size = 20});
  MemoryPlan plan;

  Step(const Target& target, Options o) : options(std::move(o)) {
    run_passes(*program, pipeline(options), options, target);
    plan = memory_plan(*program, options);
  }
  std::unique_ptr<Executable> build(Device& device) const {
    return device.compile(*program, plan, options);
  }
};

TEST(KernelCache, SchedulesABodyOnceForAllBatches) {
  const CpuTarget target(describe_host(2));
  const Step full(target, {.batch = 32, .use_libraries = false});
  const int once = target.kernels().size();
  EXPECT_GT(once, 0);
  const Step rest(target, {.batch = 31, .use_libraries = false});
  EXPECT_EQ(target.kernels().size(), once);
  const Step wide(target, {.batch = 32, .dtype = DType::f64, .use_libraries = false});
  EXPECT_GT(target.kernels().size(), once) << "other types are other kernels";
}

/// A fused group whose body computes `op` of its argument.
ir::Op& group_of(ir::Program& program, const std::string& op, const std::string& name) {
  const Type type{f32, {kBatch, 3}, {}};
  ir::Graph& body = program.add_graph(name);
  ir::Op* arg = body.append("arg", {}, {{"index", int64_t{0}}}, {type}, {name.c_str(), 1});
  body.outputs.push_back({"0", body.append(op, {arg->result()}, {}, {type})->result()});
  ir::Op* x = program.main().append("data", {}, {}, {type});
  x->symbol = name;
  return *program.main().append("fused", {x->result()}, {{"body", GraphRef{name}}}, {type});
}

TEST(KernelCache, TellsBodiesByWhatTheyCompute) {
  ir::Program program("p");
  KernelCache memo(kMaxCpuAccumulators);
  const kir::Kernel& kernel = memo.kernel_of(group_of(program, "exp", "a"));
  EXPECT_EQ(&memo.kernel_of(group_of(program, "exp", "b")), &kernel);
  EXPECT_NE(&memo.kernel_of(group_of(program, "neg", "c")), &kernel);
}

TEST(CpuExecutable, RejectsAPlanWithTooLittleWorkspace) {
  for (const bool libraries : {true, false}) {
    const auto device = cpu_device({.threads = 2});
    Step step(device->target(), {.batch = 32, .use_libraries = libraries});
    EXPECT_NO_THROW(step.build(*device));
    bool shrunk = false;
    for (auto& [op, range] : step.plan.workspaces) {
      if (op->attrs.has("kernel") != libraries) continue;
      --range.bytes;
      shrunk = true;
    }
    if (!shrunk) GTEST_SKIP() << "no kernel of the step has a workspace";
    try {
      step.build(*device);
      ADD_FAILURE() << "no error";
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find("needs a workspace of"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace fluid::kernel_cache_test
