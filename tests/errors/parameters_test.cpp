// Files of parameters: names that differ, and linear layers as PyTorch holds them.

#include <gtest/gtest.h>

#include <cmath>

#include "executor/executor.h"
#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "frontend/layers.h"
#include "tests/support/errors.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::parameters_test {
namespace {

/// y = x u v, with u square and v not: written as [in, out].
constexpr const char* kTwoLayers = R"(program @two {
  %x = data "x" : f32[?, 2]
  %u = param "u.w" : f32[2, 2]
  %v = param "v.w" : f32[2, 1]
  %h = matmul(%x, %u) : f32[?, 2]
  %y = matmul(%h, %v) : f32[?, 1]
  output "y" = %y
}
)";

class Parameters : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("two.fir"), kTwoLayers);
  }

  /// A file as others write it: u.w = [[1, 2], [3, 4]], and v.w = (1, 10) of this shape.
  void write_foreign(const std::string& name, const std::string& v_shape) const {
    const std::vector<float> values = {1, 2, 3, 4, 1, 10};
    write_plain(dir_.file(name),
                safetensors_bytes(R"({"u.w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                                  R"("v.w":{"dtype":"F32","shape":)" +
                                      v_shape + R"(,"data_offsets":[16,24]}})",
                                  std::string(reinterpret_cast<const char*>(values.data()), 24)));
  }

  const std::string run_two_ = "run two.fir --input x=1x2xf32=1,5 --params ";
};

TEST_F(Parameters, ASquareLinearWeightIsAskedAbout) {
  write_foreign("fluid.safetensors", "[2,1]");
  write_foreign("torch.safetensors", "[1,2]");
  expect_late_error(
      run_two_ + "fluid.safetensors",
      "the file does not state its layout, and the linear weight 'u.w' is square, f32[2, "
      "2], which PyTorch stores transposed: give --params-layout pytorch or fluid");
  EXPECT_EQ(run(run_two_ + "fluid.safetensors --params-layout fluid").output, "y f32[1, 1] 236\n");
  // (1, 5) times the transpose of [[1, 2], [3, 4]] is (11, 23).
  EXPECT_EQ(run(run_two_ + "torch.safetensors --params-layout pytorch").output,
            "y f32[1, 1] 241\n");
  expect_late_error(
      run_two_ + "torch.safetensors --params-layout fluid",
      "the linear weight 'v.w' is given as f32[1, 2], the transpose of the program's [2, 1], as "
      "PyTorch stores it: give --params-layout pytorch");
  expect_late_error(
      run_two_ + "fluid.safetensors --params-layout pytorch",
      "the linear weight 'v.w' is given as f32[2, 1], as in the program, and not transposed, as "
      "PyTorch stores it: give --params-layout fluid");
}

TEST_F(Parameters, APathIsNotReadAsAnOption) {
  expect_error(run_two_ + "LoadOptions::maps/absent", "'LoadOptions::maps/absent'");
}

TEST_F(Parameters, AWeightOfOneElementIsItsOwnTranspose) {
  write_plain(dir_.file("one.fir"), R"(program @one {
  %x = data "x" : f32[?, 1]
  %w = param "w" : f32[1, 1]
  %y = matmul(%x, %w) : f32[?, 1]
  output "y" = %y
}
)");
  const float three = 3;
  write_plain(dir_.file("one.safetensors"),
              safetensors_bytes(R"({"w":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}})",
                                std::string(reinterpret_cast<const char*>(&three), sizeof three)));
  const std::string run_one = "run one.fir --input x=1x1xf32=5 --params one.safetensors";
  for (const char* layout : {"", " --params-layout fluid", " --params-layout pytorch"}) {
    EXPECT_EQ(run(run_one + layout).output, "y f32[1, 1] 15\n") << layout;
  }
}

TEST_F(Parameters, WhatFluidWroteIsNotAskedAbout) {
  const Tensor u = Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor v = Tensor::of<float>({2, 1}, std::vector<float>{1, 10});
  write_safetensors(dir_.file("own.safetensors"), {{"u.w", u}, {"v.w", v}});
  EXPECT_EQ(run(run_two_ + "own.safetensors").output, "y f32[1, 1] 236\n");
  expect_late_error(run_two_ + "own.safetensors --params-layout pytorch",
                    "own.safetensors was written by Fluid in its own layout, not that of PyTorch");
}

TEST_F(Parameters, TheFlagIsThatOfEveryCommand) {
  std::string trained = kLine;  // with a square weight before
  trained.replace(trained.find("  %p = matmul(%x, %w)"), 21,
                  "  %u = param \"u.w\" : f32[2, 2]\n  %h = matmul(%x, %u) : f32[?, 2]\n"
                  "  %p = matmul(%h, %w)");
  trained.replace(trained.find("param \"w\""), 9, "param \"v.w\"");
  write_plain(dir_.file("trained.fir"), trained);
  write_foreign("torch.safetensors", "[1,2]");
  const std::string data = " trained.fir --data synthetic-linear?n=20 --params torch.safetensors";
  for (const std::string command : {"train", "eval", "predict"}) {
    expect_late_error(command + data, "'u.w' is square, f32[2, 2]");
    const Result result = run(command + data + " --params-layout pytorch");
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

/// Weights on the left, transposed on the right, and of no product are as the program says.
TEST_F(Parameters, OnlyLinearWeightsAreTransposed) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2}, f32);
  const auto named = [&](const std::string& name) {
    return net.parameter(name, {2, 2}, Init::zeros());
  };
  const Value left = matmul(named("left"), named("right"));
  const Value turned = matmul(x, named("turned"), {.transpose_b = true});
  net.output("y", add(add(turned, matmul(x, left)), sum(named("other"))));
  const std::vector<float> values = {1, 2, 3, 4};
  std::string header = "{", data;
  for (const std::string name : {"left", "other", "right", "turned"}) {
    header += (data.empty() ? "\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[2,2],)" +
              R"("data_offsets":[)" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + 16) + "]}";
    data += std::string(reinterpret_cast<const char*>(values.data()), 16);
  }
  write_plain(dir_.file("four"), safetensors_bytes(header + "}", data));
  Executor exe(net, cpu());
  exe.prepare({.eval = {1}});
  expect_user_error([&] { exe.load(dir_.file("four")); }, "the linear weight 'right' is square");
  exe.load(dir_.file("four"), {.layout = ParamsLayout::pytorch});
  for (const std::string name : {"left", "other", "turned"}) {
    EXPECT_EQ(exe.parameter(name).at(1), 2) << name;
  }
  EXPECT_EQ(exe.parameter("right").at(1), 3);
}

TEST_F(Parameters, AMissingOneSaysWhatTheFileHolds) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int i = 0; i < 20; ++i) tensors.emplace_back("layer" + std::to_string(i), Tensor(f32, {1}));
  tensors.emplace_back("u.weight", Tensor(f32, {2, 2}));
  write_safetensors(dir_.file("w"), tensors);
  const std::string refused = expect_late_error(
      run_two_ + "w", "w: parameter 'u.w' is missing; the file holds 'u.weight', ");
  EXPECT_NE(refused.find(" and 13 more\n"), std::string::npos) << refused;
  write_safetensors(dir_.file("none"), {});
  expect_late_error(run_two_ + "none", "parameter 'u.w' is missing; the file holds none");
}

TEST(ExecutorThreads, AreRejectedAtOnce) {
  Program net("net");
  net.output("x", relu(net.data("x", {kBatch}, f32)));
  for (const int threads : {-1, 4097}) {
    expect_user_error([&] { Executor(net, cpu(), {.threads = threads}); },
                      "threads = " + std::to_string(threads) +
                          ": must be 1 to 4096, or 0 for the default of OpenMP");
  }
  EXPECT_EQ(Executor(net, cpu(), {.threads = 1}).place().kind, Place::Kind::cpu);
}

TEST_F(Parameters, AreRenamedAndLoadedInPart) {
  write_foreign("torch.safetensors", "[1,2]");
  const std::string load = run_two_ + "torch.safetensors --params-layout pytorch ";
  const Result report = run(load + "--params-map 'v.(*)=other.$1' --params-partial");
  EXPECT_EQ(report.code, 0) << report.output;
  EXPECT_TRUE(states(report.output,
                     "torch.safetensors: 1 parameters loaded 1 missing 'v.w' 1 unused: 'v.w'"))
      << report.output;
  EXPECT_EQ(run(load + "--params-map 'u.(*)=x.$1' --params-map 'x.(.*)=u.$1'").output,
            "torch.safetensors: 2 parameters loaded\ny f32[1, 1] 241\n");
  expect_error(load + "--params-map 'u.w'", "--params-map 'u.w': must be PATTERN=NAME");
  expect_error(load + "--params-map 'u.(*)=v$2'",
               "--params-map 'u.(*)=v$2': '$2' names no capture; the pattern has 1");
  expect_error(load + "--params-map 'uw=v'",
               "--params-map 'uw=v': the pattern matches no tensor of torch.safetensors; there are "
               "'u.w', 'v.w'");
  expect_error(load + "--params-partial --params-map '(*).w=x.$1'",
               "no tensor fits; the file holds 'u.w', 'v.w', by --params-map 'x.u', 'x.v', the "
               "program has 'u.w', 'v.w'");
  expect_error(load + "--params-partial --params-map 'v.w=' --params-map u.w=v.w",
               "no tensor fits; 'u.w' is given as f32[2, 2], but the parameter 'v.w' is f32[2, 1]");
  expect_error(load + "--params-map 'v.w=' ", "parameter 'v.w' is missing; the file holds 'u.w'");
}

TEST_F(Parameters, WithNamesOfPyTorchAreRecognised) {
  const float one = 1;
  write_plain(dir_.file("names.safetensors"),
              safetensors_bytes(R"({"u.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                std::string(reinterpret_cast<const char*>(&one), sizeof one)));
  expect_error(run_two_ + "names.safetensors",
               "parameter 'u.w' is missing; the file holds 'u.weight', PyTorch's name of it: set "
               "--params-layout to pytorch");
}

TEST_F(Parameters, AreBoundedByFlags) {
  ASSERT_EQ(
      run("train line.fir --data synthetic-linear --param w:l2=0.1,max_norm=0.25 --save w").code,
      0);
  const Tensor w = read_safetensors(dir_.file("w")).tensors.at(0).second;
  EXPECT_NEAR(std::hypot(w.at(0), w.at(1)), 0.25, 1e-5);
}

TEST_F(Parameters, AreInitializedByFlags) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=10 --save w --param w:lr=0,init=";
  const auto initial = [&](const std::string& init) {
    EXPECT_EQ(run(train + init).code, 0) << init;
    const Tensor w = read_safetensors(dir_.file("w")).tensors.at(0).second;
    return std::pair(w.at(0), w.at(1));
  };
  EXPECT_EQ(initial("constant,value=0.5"), std::pair(0.5, 0.5));
  EXPECT_EQ(initial("uniform,low=-0.25,high=-0.25"), std::pair(-0.25, -0.25));
  const auto [a, b] = initial("orthogonal,gain=3");
  EXPECT_NEAR(std::hypot(a, b), 3, 1e-5);
  const auto [c, d] = initial("truncated_normal,mean=8,low=7,high=7.5");
  EXPECT_TRUE(c >= 7 && c <= 7.5 && d >= 7 && d <= 7.5) << c << " " << d;
  write_npy(dir_.file("w.npy"), Tensor::of<float>({2, 1}, std::vector<float>{0.25, -4}));
  EXPECT_EQ(initial("w.npy"), std::pair(0.25, -4.0));

  std::filesystem::remove(dir_.file("w"));
  expect_error(train + "normal,sdt=1",
               "--param 'w:lr=0,init=normal,sdt=1': initialiser 'normal' of 'w' has no setting "
               "'sdt' (did you mean 'std'?)");
  expect_error(train + "normla", "'w' asks for an unknown initialiser 'normla' (did you mean");
  expect_error(train + "normal,std=big",
               "initialiser setting 'std' must be a number, not a string");
  expect_error(train + "dirac", "--param 'w:lr=0,init=dirac': dirac");
  expect_error(train + "w.npy,gain=2", "init=w.npy has no setting 'gain'");
  expect_error(train + "absent.npy", "absent.npy");
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3}, {1, 2}, {2}}) {
    const Tensor values(f32, shape);
    write_npy(dir_.file("w.npy"), values);
    expect_error(train + "w.npy", "'w.npy' has shape " + values.str().substr(3) +
                                      ", but parameter 'w' has shape [2, 1]");
  }
}

TEST_F(Parameters, ThatTrainAreChosenByFlags) {
  const std::string train = "train line.fir --data synthetic-linear ";
  expect_error(train + "--freeze b",
               "--freeze 'b': pattern 'b' matches no parameter; there are 'w'");
  expect_error(train + "--freeze-stats w", "--freeze-stats 'w': there are none");
  expect_error(train + "--param w", "--param 'w': must be PATTERN:SETTING=VALUE");
  expect_error(train + "--param w:lr", "--param 'w:lr': 'lr' is not SETTING=VALUE");
  expect_error(train + "--param w:rate=2",
               "--param 'w:rate=2': no setting 'rate'; there are lr, decay, l1, l2, max_norm, "
               "train and init");
  expect_error(train + "--param w:lr=x", "--param 'w:lr=x': 'x'");
  expect_error(train + "--param w:train=2", "--param 'w:train=2': train must be 0 or 1, not '2'");
  expect_error(train + "--param 'w[:lr=2'", "pattern 'w[': '[' has no partner");
  expect_late_error(train + "--freeze '*'", "nothing to train");
}

}  // namespace
}  // namespace fluid::parameters_test
