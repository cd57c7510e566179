// Tests `fluidrun devices` with libraries that simulate machines.

#include <regex>

#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::devices_test {
namespace {

class Devices : public FluidrunTest {
 protected:
  /// Returns the output of `command` with a library in gpu_libraries, or with another file.
  std::string on(const std::string& library, const std::string& command = "devices") {
    before_ = "export FLUID_GPU_LIBRARY=" +
              (library.find('/') == std::string::npos
                   ? std::string(FLUID_BINARY_DIR) + "/gpu_libraries/" + library + ".so"
                   : library) +
              "; ";
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << result.output;
    return result.output;
  }
  /// The text behind the CPU's lines.
  static std::string behind_cpu(const std::string& output) {
    EXPECT_TRUE(output.starts_with("cpu     ")) << output;
    return output.substr(output.find("\ncuda") + 1);
  }
};

TEST_F(Devices, ListsCpuAndGpus) {
  const std::string output = on("three_gpus");
  EXPECT_NE(output.find(" threads, "), std::string::npos) << output;
  const std::regex driver("driver [0-9.]+ for");  // the driver of this machine, if any
  EXPECT_EQ(std::regex_replace(behind_cpu(output), driver, "driver for"),
            "cuda:0  Made-up GPU 0, compute capability 9.0, 132 multiprocessors: 79.00 GiB of "
            "80.00 GiB are free\n"
            "cuda:1  Made-up GPU 1, compute capability 7.5, 132 multiprocessors: 79.00 GiB of "
            "80.00 GiB are free\n"
            "        compute capability 7.5 is not supported, 8.0 and newer are\n"
            "cuda:2: cudaErrorMadeUp, as asked\n"
            "        driver for CUDA 13.0, CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0, NCCL 2.28.9, "
            "nvJitLink 13.0\n");
}

TEST_F(Devices, MeasureTheCpuOnceForAllProcesses) {
  const std::string json = kFluidrun + " devices --json";
  const Result both = run_command("unset FLUID_MACHINE; " + json + " > a 2> a.err & " + json +
                                  " > b 2> b.err; wait; cat a.err b.err; ls cache");
  const std::regex expected(
      "measured the CPU in .* s, once for this machine: .* GFLOP/s in f32, .* in bf16, "
      ".* GB/s of memory; kept in .*/cache/(machine-[0-9a-f]+.json); .* repeats it\n\\1\n");
  EXPECT_TRUE(std::regex_match(both.output, expected)) << both.output;
  const auto rates_in = [&](const std::string& file) {  // without the GPUs, whose memory others use
    const std::string json_text = read_file(dir_.file(file));
    return json_text.substr(0, json_text.find("\"machine\""));
  };
  const std::string first = rates_in("a");
  EXPECT_NE(first.find("\"measured\": true"), std::string::npos) << first;
  EXPECT_EQ(first, rates_in("b"));
  const Result again = run_command("unset FLUID_MACHINE; " + kFluidrun + " devices --measure");
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(again.output.find("measured the CPU in "), 0U) << again.output;
  EXPECT_NE(again.output.find("rates, measured, on one core and on "), std::string::npos);
  EXPECT_EQ(run("devices --measure --cache-dir ''").code, 1);
}

TEST_F(Devices, SayInOneLineWhyThereAreNoGpus) {
  EXPECT_EQ(behind_cpu(on("no_driver")),
            "cuda    none: no NVIDIA driver is installed, or this container sees none\n");
  EXPECT_EQ(behind_cpu(on(dir_.file("none.so"))),
            "cuda    none: there is no library '" + dir_.file("none.so") + "'\n");
  const std::string needs = behind_cpu(on("needs_absent"));
  EXPECT_NE(needs.find("needs libfluid_absent.so, which is not found"), std::string::npos) << needs;
}

TEST_F(Devices, SayWhereTheLibraryIsLookedFor) {
  std::filesystem::copy_file(kFluidrun, dir_.file("alone"));
  const Result alone = run_command("LD_LIBRARY_PATH= ./alone devices");
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_EQ(behind_cpu(alone.output),
            "cuda    none: libfluid_cuda.so is not installed: neither beside the program, in lib "
            "or ../lib there, nor where the loader looks; a build makes it where it finds CUDA 13, "
            "cuDNN and NCCL\n");
}

TEST_F(Devices, AreFoundInTheFoldersBesideTheProgram) {
  const std::string made_up = std::string(FLUID_BINARY_DIR) + "/gpu_libraries/three_gpus.so";
  for (const std::string folder : {"bin", "bin/lib", "lib"}) {
    std::filesystem::create_directories(dir_.file("bin/lib"));
    std::filesystem::create_directories(dir_.file("lib"));
    std::filesystem::copy_file(kFluidrun, dir_.file("bin/fluidrun"),
                               std::filesystem::copy_options::skip_existing);
    const std::string file = dir_.file(folder + "/libfluid_cuda.so");
    std::filesystem::copy_file(made_up, file);
    const Result result = run_command("bin/fluidrun devices");
    EXPECT_NE(result.output.find("cuda:0  Made-up GPU 0"), std::string::npos)
        << folder << ": " << result.output;
    std::filesystem::remove(file);
  }
}

/// libfluid_cuda.so itself, on drivers that libraries of ours stand for.
TEST_F(Devices, OfTheRealLibraryDependOnTheDriver) {
  const std::string library = std::string(FLUID_BINARY_DIR) + "/libfluid_cuda.so";
  if (!std::filesystem::exists(library)) {
    GTEST_SKIP() << "libfluid_cuda.so is not built: CUDA, cuDNN or NCCL is not installed here";
  }
  const auto with = [&](const std::string& driver, const std::string& visible = "") {
    const std::string folder = std::string(FLUID_BINARY_DIR) + "/gpu_libraries/" + driver;
    const Result result =
        run_command("LD_LIBRARY_PATH=" + folder + "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} env " +
                    visible + " " + kFluidrun + " devices");
    EXPECT_EQ(result.code, 0) << result.output;
    return behind_cpu(result.output);
  };
  EXPECT_EQ(with("driver_of_cuda_12")
                .find("cuda    none: the NVIDIA driver is too old: it runs "
                      "CUDA 12.4, 13."),
            0U);
  EXPECT_EQ(with("driver_without_gpu", "-u CUDA_VISIBLE_DEVICES"),
            "cuda    none: the NVIDIA driver finds no GPU\n");
  EXPECT_EQ(with("driver_without_gpu", "CUDA_VISIBLE_DEVICES=3"),
            "cuda    none: the NVIDIA driver finds no GPU that CUDA_VISIBLE_DEVICES='3' leaves\n");
  EXPECT_EQ(with("driver_mismatched")
                .find("cuda    none: the NVIDIA driver does not work: counting GPUs: "
                      "cudaErrorSystemDriverMismatch, "),
            0U);
}

TEST_F(Devices, DescribeTheMachineAsJson) {
  const std::string json = on("three_gpus", "devices --json");
  for (const std::string part :
       {R"("threads": )", R"("machine": {)", R"("cores": )", R"("features": [)",
        R"("name": "Made-up GPU 0")", R"("free_memory": 84825604096)",
        R"("compute_capability": "9.0")", R"("problem": "compute capability 7.5 is not)",
        R"("cuDNN": "9.19.0")"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
  const std::string none = on("no_driver", "devices --json");
  EXPECT_NE(none.find(R"("no_gpus": "no NVIDIA driver is installed)"), std::string::npos) << none;
}

/// Runs `command` where it needs a GPU; expects the exit code of a device's failure and one line.
TEST_F(Devices, ThatAreNotThereAreNamedByEveryCommand) {
  const std::string data = " --data synthetic-linear?n=50";
  const auto expect_failure = [&](const std::string& command, const std::string& why) {
    const std::set<std::string> before = files();
    const Result result = run(command);
    EXPECT_EQ(result.code, 3) << command << ": " << result.output;
    EXPECT_EQ(result.output, "fluidrun: " + why + "\n") << command;
    EXPECT_EQ(files(), before) << command;
  };
  on("no_driver");
  for (const std::string& command :
       {"train line.fir" + data + " --save w.safetensors", "eval line.fir" + data,
        "predict line.fir" + data, "bench line.fir" + data, std::string("plan line.fir"),
        std::string("opt line.fir --pass dce"),
        std::string("run line.fir --input x=1x2xf32=1,2")}) {
    expect_failure(command + " --place cuda:0",
                   "there is no cuda:0: no NVIDIA driver is installed, or this container sees "
                   "none; the place cpu needs no GPU");
  }
  on(dir_.file("none.so"));
  expect_failure("plan line.fir --place cuda", "there is no cuda:0: there is no library '" +
                                                   dir_.file("none.so") +
                                                   "'; the place cpu needs no GPU");
  on("three_gpus");
  expect_error("plan line.fir --place cuda:3",
               "there is no GPU cuda:3; this machine's last is cuda:2");
  expect_failure("plan line.fir --place cuda:1",
                 "cuda:1 (Made-up GPU 1): compute capability 7.5 is not supported, 8.0 and newer "
                 "are");
  expect_failure("plan line.fir --place cuda:2", "cuda:2: cudaErrorMadeUp, as asked");
}

/// A command that runs on the CPU because a GPU is unusable says so, unless the user hides the GPU.
TEST_F(Devices, ThatCannotBeUsedAreNotPassedOverInSilence) {
  const auto said = [&](const std::string& library, const std::string& command = "plan line.fir") {
    const std::string output = on(library, command);
    return output.substr(0, output.find('\n'));
  };
  const std::string none = "the place is cpu, no GPU is usable: ";
  EXPECT_EQ(said("no_driver"), none + "no NVIDIA driver is installed, or this container sees none");
  EXPECT_EQ(said("old_driver"),
            none + "the NVIDIA driver is too old: it runs CUDA 12.4, 13.0 is needed");
  EXPECT_NE(said("needs_absent").find("libfluid_absent.so"), std::string::npos);
  EXPECT_EQ(said("two_gpus_old_first").find(none), std::string::npos);
  EXPECT_EQ(said("no_driver", "launch --nproc auto -- true").find("fluidrun: --nproc auto: "), 0U);
  EXPECT_NE(said("no_driver", "launch --nproc auto -- true")
                .find("one per core, as there is no usable GPU: no NVIDIA driver is installed"),
            std::string::npos);
  const std::string cpu = "one step of 'line' (train) on cpu, batch 1";
  EXPECT_EQ(said("no_driver", "plan line.fir --place cpu"), cpu);
  for (const char* hides : {"", "-1", "-1,0", "NoDevFiles"}) {
    setenv("CUDA_VISIBLE_DEVICES", hides, 1);
    EXPECT_EQ(said("no_gpus"), cpu);
  }
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_EQ(said("no_gpus"),
            none + "the NVIDIA driver finds no GPU that CUDA_VISIBLE_DEVICES='7' leaves");
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(said("no_gpus"), none + "the NVIDIA driver finds no GPU");
}

/// Ranks are counted and numbered among the GPUs that programs can run on.
TEST_F(Devices, ThatAreNotSupportedGetNoRank) {
  const std::string one = on("two_gpus_old_first", "launch --nproc auto -- plan line.fir");
  EXPECT_TRUE(one.starts_with("fluidrun: --nproc auto: 1 rank, one per GPU\n")) << one;
  EXPECT_NE(one.find("one step of 'line' (train) on cuda:1, batch 1"), std::string::npos) << one;
  const std::string named = on("two_gpus_old_first", "plan line.fir --place cuda");
  EXPECT_TRUE(named.starts_with("one step of 'line' (train) on cuda:1, batch 1")) << named;
  const std::string two = on("three_gpus", "launch --nproc auto -- true");
  EXPECT_TRUE(two.starts_with("fluidrun: --nproc auto: 2 ranks, one per GPU\n")) << two;
}

/// Nothing but a description of the GPU is needed for that.
TEST_F(Devices, ArePlannedFor) {
  const auto first_line = [&](const std::string& library, const std::string& arguments) {
    const std::string output = on(library, "plan line.fir --batch 8" + arguments);
    return output.substr(0, output.find('\n'));
  };
  const std::string gpu = "one step of 'line' (train) on cuda:0, batch 8";
  const std::string cpu = "one step of 'line' (train) on cpu, batch 8";
  EXPECT_EQ(first_line("three_gpus", ""), gpu);
  EXPECT_EQ(first_line("three_gpus", " --place cuda"), gpu);
  EXPECT_EQ(first_line("three_gpus", " --place cpu"), cpu);
  EXPECT_EQ(first_line("three_gpus", " --world 2"), gpu);
  EXPECT_EQ(first_line("two_gpus_old_first", ""), "one step of 'line' (train) on cuda:1, batch 8");
  EXPECT_EQ(first_line("no_driver", " --place cpu"), cpu);
  EXPECT_NE(on("three_gpus", "plan line.fir --kernels").find("kernels: 0 of libraries"),
            std::string::npos);
}

/// Where indices of 32 bits end before the memory does.
TEST_F(Devices, ArePlannedForAsFarAsTheirKernelsCount) {
  std::ofstream(dir_.file("wide.fir")) << "program @wide {\n"
                                          "  %x = data \"x\" : f32[?, 1048576]\n"
                                          "  %y = relu(%x) : f32[?, 1048576]\n"
                                          "  output \"y\" = %y\n"
                                          "}\n";
  const std::string plan = "plan wide.fir --pipeline eval --place cuda:0 --batch ";
  const std::string output = on("three_gpus", plan + "1 --memory 70GiB");
  EXPECT_NE(output.find("largest batch within 70GiB: 2047\n"), std::string::npos) << output;
  EXPECT_NE(on("three_gpus", plan + "2047").find("batch 2047\n"), std::string::npos);
  expect_error(plan + "2048", "a batch of 2048 samples: GPU kernels take at most 2047 here");
}

/// From a description, on a machine without.
TEST_F(Devices, ArePlannedForElsewhere) {
  on("three_gpus", "devices --json > t.json");
  const std::string plan = "plan line.fir --batch 8 --place cuda:0 --kernels";
  const auto behind_first_line = [](const std::string& text) {
    return text.substr(text.find('\n'));
  };
  const std::string there = on("three_gpus", plan),
                    here = on("no_driver", plan + " --target t.json");
  EXPECT_EQ(behind_first_line(here), behind_first_line(there));
  EXPECT_TRUE(here.starts_with("one step of 'line' (train) on cuda:0, Made-up GPU 0, batch 8\n"))
      << here;

  const std::string planned = "plan line.fir --target t.json --place cuda:";
  expect_error(planned + "1",
               "t.json: cuda:1: compute capability 7.5 is not supported, 8.0 and newer are");
  expect_error(planned + "3", "t.json: describes no cuda:3");
  std::string json;
  const auto replace = [&](const std::string& what, const std::string& with) {
    json = read_file(dir_.file("t.json"));
    const size_t at = json.find(what);
    ASSERT_NE(at, std::string::npos) << json;
    write_plain(dir_.file("t.json"), json.replace(at, what.size(), with));
  };
  replace(R"("multiprocessors": 132)", R"("multiprocessors": -1)");
  expect_error(planned + "0", "t.json: the GPU's entry 'multiprocessors' cannot be -1");
  replace(R"("multiprocessors": -1)", R"("multi": 132)");
  expect_error(planned + "0", "t.json: the GPU's entry 'multiprocessors' is missing");
  replace(R"("compute_capability": "9.0")", R"("compute_capability": "nine")");
  replace(R"("multi": 132)", R"("multiprocessors": 132)");
  expect_error(planned + "0", "t.json: invalid compute capability 'nine'");
  replace("nine", "9.0 or so");
  expect_error(planned + "0", "t.json: invalid compute capability '9.0 or so'");
  replace("9.0 or so", "9.0");
  EXPECT_EQ(on("no_driver", planned + "0").find("does not fit"), std::string::npos);
  replace(R"("memory": 85899345920)", R"("memory": 64)");
  EXPECT_NE(on("no_driver", planned + "0").find("does not fit: cuda:0 has 64 B\n"),
            std::string::npos);
  write_plain(dir_.file("t.json"), "{}");
  expect_error(planned + "0", "t.json: describes no cuda:0");
}

/// `auto` and `cuda` are those of the machine that is described, whatever this one has.
TEST_F(Devices, ArePlannedForWhereTheDescribedMachineHasThem) {
  const auto first_line = [&](const std::string& described, const std::string& flags) {
    on(described, "devices --json > t.json");
    std::string output = on("no_driver", "plan line.fir --target t.json" + flags);
    return output.substr(0, output.find('\n'));
  };
  const std::string start = "one step of 'line' (train) on ";
  for (const std::string flags : {"", " --place auto", " --place cuda"}) {
    EXPECT_EQ(first_line("three_gpus", flags), start + "cuda:0, Made-up GPU 0, batch 1");
    EXPECT_EQ(first_line("two_gpus_old_first", flags), start + "cuda:1, Made-up GPU 1, batch 1");
  }
  const std::string cpu = first_line("three_gpus", " --place cpu");
  EXPECT_EQ(cpu.find("cuda"), std::string::npos) << cpu;
  EXPECT_EQ(first_line("no_driver", ""), cpu);
  EXPECT_EQ(first_line("old_driver", ""), cpu);
  on("no_driver", "devices --json > t.json");
  expect_error("plan line.fir --target t.json --place cuda", "t.json: describes no cuda:0");
}

TEST_F(Devices, AreLeftOutOfWhatTheCpuDoesAlone) {
  const std::string bandwidth = "plan line.fir --world 2 --bandwidth 1";
  ASSERT_NE(on("three_gpus", bandwidth).find("on cpu, batch 1"), std::string::npos);
  expect_error(bandwidth + " --place cuda:0",
               "--bandwidth times the step on the CPU: --place must be cpu");
  on("three_gpus", "train line.fir --data synthetic-linear?n=50 --epochs 1 --verify-plan");
}

}  // namespace
}  // namespace fluid::devices_test
