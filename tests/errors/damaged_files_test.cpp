// Truncated, changed and malicious files of every format, read by fluidrun.

#include <gtest/gtest.h>

#include "executor/cpu/cpu_target.h"
#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "ir/parse.h"
#include "ir/serialize.h"
#include "ops/program_file.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::damaged_files_test {
namespace {

class DamagedFiles : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("digits.fir"), R"(program @digits {
  %x = data "image" : f32[?, 1, 28, 28]
  %y = data "label" : i64[?]
  %m = max(%x) {axes = [1, 2, 3]} : f32[?]
  %loss = mean(%m) : f32[]
  output "loss" = %loss
})");
  }

  /// Writes the damaged file under `name` and expects that `command` names it, or `place`.
  void expect_damage_error(const std::string& name, const std::string& bytes, size_t flip,
                           const std::string& command, std::string place = "", bool longer = true) {
    if (place.empty()) place = name;
    std::string flipped = bytes;
    flipped.at(flip) ^= 0x40;
    std::vector<std::string> all = {
        "",      bytes.substr(0, bytes.size() / 2), bytes.substr(0, bytes.size() - 1),
        flipped, "XXXXXXXX" + bytes.substr(8),      std::string(bytes.size(), '\0')};
    if (longer) all.push_back(bytes + "x");
    write_plain(dir_.file(name), bytes);
    const Result good = run(command);
    ASSERT_EQ(good.code, 0) << good.output;
    for (const std::string& damaged : all) {
      write_plain(dir_.file(name), damaged);
      expect_error(command, place);
    }
  }
};

const std::string kData = " --data synthetic-linear?n=50";

TEST_F(DamagedFiles, Programs) {
  const auto program = load_program(dir_.file("line.fir"));
  save_program(*program, dir_.file("net.fluid"));
  expect_damage_error("net.fluid", read_file(dir_.file("net.fluid")), 60, "verify net.fluid");
  std::string text = kLine;
  text.pop_back();
  expect_damage_error("net.fir", text, 9, "verify net.fir");
}

TEST_F(DamagedFiles, ProgramsOfANewerFluid) {
  const auto program = load_program(dir_.file("line.fir"));
  const auto newer = [](std::string_view op) { return op == "matmul" ? 99 : 1; };
  write_plain(dir_.file("newer.fluid"), ir::append_checksum(ir::serialize(*program, newer)));
  expect_error("train newer.fluid" + kData,
               "newer.fluid: op 'matmul' has version 99, written by a newer Fluid; this one knows");
  const auto unknown = ir::parse("program @p { dream }", "p.fir");
  write_plain(dir_.file("unknown.fluid"),
              ir::append_checksum(ir::serialize(*unknown, [](std::string_view) { return 1; })));
  expect_error("train unknown.fluid" + kData, "unknown.fluid: unknown op 'dream'");
}

TEST_F(DamagedFiles, Parameters) {
  const std::string command = "eval line.fir --params p.safetensors" + kData;
  write_safetensors(dir_.file("p.safetensors"), {{"w", Tensor(f32, {2, 1})}});
  const std::string bytes = read_file(dir_.file("p.safetensors"));
  expect_damage_error("p.safetensors", bytes, 9, command);
  expect_damage_error("p.safetensors", bytes, bytes.size() - 2, command);
  std::string flipped = bytes;
  flipped.back() ^= 1;
  write_plain(dir_.file("p.safetensors"), flipped);
  expect_error(command, "p.safetensors: damaged: its checksum differs");
  const auto expect_header_error = [&](const std::string& header, const std::string& message) {
    write_plain(dir_.file("p.safetensors"), safetensors_bytes(header, std::string(12, '\0')));
    expect_error(command, "p.safetensors: " + message);
  };
  expect_header_error(
      R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,12]}})",
      "tensor 'w' has 12 bytes, which its shape does not take");
  expect_header_error("{\"w\":" + std::string(1'000'000, '['), "tensor 'w' has a list where");
  expect_header_error(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
                      "'w' is given as f32[3], but the parameter is f32[2, 1]");
  expect_header_error(R"({"v":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
                      "parameter 'w' is missing");
  expect_header_error(R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                      R"("a\nb":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                      "the program has no parameter 'a\\nb'");
}

TEST_F(DamagedFiles, Arrays) {
  const std::string command = "run line.fir --input x=@x.npy";
  write_npy(dir_.file("x.npy"), Tensor(f32, {2, 2}));
  expect_damage_error("x.npy", read_file(dir_.file("x.npy")), 9, command);
  const auto expect_shape_error = [&](const std::string& shape, const std::string& message) {
    write_plain(dir_.file("x.npy"),
                npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", ""));
    expect_error(command, message);
  };
  expect_shape_error("(4294967296, 4294967296)", "x.npy: the shape is larger than a 64-bit size");
  expect_shape_error("(1000000000000, 2)",
                     "x.npy: holds 0 bytes of data, but f32[1000000000000, 2]");
  expect_shape_error(std::string(60'000, '('), "x.npy: the shape is malformed");
  expect_shape_error("(0, 2)", "--input holds no sample: a batch has at least one");
}

TEST_F(DamagedFiles, Targets) {
  const std::string json = to_json(describe_host(1));
  const std::string command = "plan line.fir --target t.json";
  expect_damage_error("t.json", json.substr(0, json.size() - 1), 9, command);
  write_plain(dir_.file("t.json"), std::string(1'000'000, '['));
  expect_error(command, "t.json: not a JSON object that describes a target");
}

TEST_F(DamagedFiles, Idx) {
  const std::string command = "eval digits.fir --data mnist:d?split=train";
  std::filesystem::create_directory(dir_.file("d"));
  expect_error(command, "MNIST: 'd' has no train-images-idx3-ubyte, with or without .gz");
  const std::string labels = "d/train-labels-idx1-ubyte", images = "d/train-images-idx3-ubyte";
  write_plain(dir_.file(labels), idx_labels("\1\2"));
  expect_damage_error(images, idx_images(2), 3, command);
  write_plain(dir_.file(images),
              big_endian(0x803) + std::string(12, '\xff') + std::string(100, '\0'));
  expect_error(command, "'d/train-images-idx3-ubyte' has extents whose product overflows");
  write_plain(dir_.file(images), idx_images(2));
  expect_damage_error(labels, idx_labels("\1\2"), 3, command);
  write_plain(dir_.file(labels), idx_labels("\1\12"));
  expect_error(command, "'d': label 10 of sample 1 is not a digit");
  expect_error("eval digits.fir --data mnist:absent", "MNIST: 'absent' is not a directory");
}

TEST_F(DamagedFiles, Gz) {
  const std::string command = "eval digits.fir --data mnist:d?split=train";
  std::filesystem::create_directory(dir_.file("d"));
  const std::string labels = "d/train-labels-idx1-ubyte.gz",
                    images = "d/train-images-idx3-ubyte.gz";
  write_gz(dir_.file(labels), idx_labels("\1\2"));
  write_gz(dir_.file(images), idx_images(2));
  const std::string bytes = read_file(dir_.file(images));
  // Data after a complete gzip stream is padding and ignored, as in gzip.
  expect_damage_error(images, bytes, bytes.size() - 6, command, images, /*longer=*/false);
}

TEST_F(DamagedFiles, Cifar10) {
  write_plain(dir_.file("colour.fir"), R"(program @colour {
  %x = data "image" : f32[?, 3, 32, 32]
  %m = mean(%x) : f32[]
  output "m" = %m
})");
  const std::string command = "eval colour.fir --data cifar10:d?split=train";
  expect_error(command, "CIFAR-10: 'd' is not a directory that can be read");
  std::filesystem::create_directory(dir_.file("d"));
  expect_error(command,
               "CIFAR-10: 'd' has no data_batch_1.bin to data_batch_5.bin, with or without .gz");
  expect_error("eval colour.fir --data cifar10:d",
               "CIFAR-10: 'd' has no test_batch.bin, with or without .gz");
  const std::string name = "d/data_batch_2.bin", bytes = cifar10_record(1) + cifar10_record(9);
  write_plain(dir_.file(name), bytes);
  const Result good = run(command);
  ASSERT_EQ(good.code, 0) << good.output;
  write_plain(dir_.file(name), bytes + "x");
  expect_error(
      command,
      "'d/data_batch_2.bin' holds 6147 bytes, not records of 3073: CIFAR-10's binary version is "
      "needed");
  write_plain(dir_.file(name), "");
  expect_error(command, "'d/data_batch_2.bin' holds 0 bytes, not records of 3073");
  write_plain(dir_.file(name), cifar10_record(9) + cifar10_record(10));
  expect_error(command, "'d/data_batch_2.bin': label 10 of record 1 is not below 10");
  std::filesystem::remove(dir_.file(name));
  write_gz(dir_.file(name + ".gz"), bytes);
  const std::string packed = read_file(dir_.file(name + ".gz"));
  expect_damage_error(name + ".gz", packed, packed.size() - 6, command, "", /*longer=*/false);
}

TEST_F(DamagedFiles, Json) {
  std::string image = "[0";
  for (int i = 1; i < 784; ++i) image += ",0";
  const std::string split = "[[" + image + "]],[7]]";
  const std::string json = "[" + split + "," + split + "," + split + "]";
  const std::string command = "eval digits.fir --data mnist-json:m.json";
  expect_damage_error("m.json", json, 5, command);
  write_plain(dir_.file("m.json"), std::string(1'000'000, '['));
  expect_error(command, "'m.json' is not MNIST as JSON: the nesting of the lists is wrong");
  expect_error("eval digits.fir --data mnist-json:absent.json", "cannot read 'absent.json'");
  write_gz(dir_.file("m.json.gz"), json);
  const std::string bytes = read_file(dir_.file("m.json.gz"));
  expect_damage_error("m.json.gz", bytes, bytes.size() - 6,
                      "eval digits.fir --data mnist-json:m.json.gz", "m.json.gz", /*longer=*/false);
}

}  // namespace
}  // namespace fluid::damaged_files_test
