// fluidrun on data that is read from disk: image folders, damaged images, workers, `data`.

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/fluidrun_test.h"
#include "tests/support/image_files.h"

namespace fluid::reading_test {
namespace {

constexpr const char* kTint = R"(program @tint {
  %x = data "image" : f32[?, 3, 8, 8]
  %w = param "w" {init = "constant", value = 0.0} : f32[8]
  %p = mul(%x, %w) : f32[?, 3, 8, 8]
  %l = mean(%p) : f32[]
  train(%l) {optimizer = "sgd", lr = 0.01}
  output "loss" = %l
}
)";

class ImageData : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("tint.fir"), kTint);
    for (const char* name : {"images/cats", "images/dogs"}) {
      std::filesystem::create_directories(dir_.file(name));
    }
    for (int i = 0; i < 6; ++i) {
      const std::string path = dir_.file("images/" + std::string(i % 2 == 0 ? "cats/" : "dogs/"));
      write_plain(path + std::to_string(i) + ".jpg", golden_image_file("420.jpg"));
    }
  }
  void damage(const std::string& image) const {
    write_plain(dir_.file(image), golden_image_file("420.jpg").substr(0, 400));
  }
  const std::string spec_ = "'folder:images|resized_crop=8|flip' ";
};

TEST_F(ImageData, TrainsTheSameWithAnyNumberOfWorkers) {
  for (const std::string workers : {"1", "3"}) {
    const Result result =
        run("train tint.fir --batch 2 --epochs 3 --workers " + workers + " --save w" + workers +
            ".safetensors --data " + spec_ + "--val " + spec_);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_TRUE(states(result.output, "'label'")) << result.output;
  }
  EXPECT_EQ(run_command("cmp w1.safetensors w3.safetensors").code, 0);
}

TEST_F(ImageData, RandomStagesOfHeldOutDataAreNamed) {
  const auto notes = [&](const std::string& arguments) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.output;
    std::string notes;
    for (size_t at = 0; (at = result.output.find("the random stage", at)) != std::string::npos;) {
      const size_t begin = result.output.rfind('\n', at) + 1, end = result.output.find(';', at);
      notes += result.output.substr(begin, end - begin) + "\n";
      at = end;
    }
    return notes;
  };
  const std::string plain = "'folder:images|resize=9|center_crop=8' ";
  const std::string train = "train tint.fir --batch 2 --data " + spec_ + "--val ";
  EXPECT_EQ(notes(train + plain), "");
  EXPECT_EQ(notes(train + spec_),
            "--val: the random stages resized_crop, flip change the samples\n");
  EXPECT_EQ(notes(train + "'folder:images|resized_crop=8' "),
            "--val: the random stage resized_crop changes the samples\n");
  const std::string note = "--data: the random stages resized_crop, flip change the samples\n";
  EXPECT_EQ(notes("eval tint.fir --data " + spec_), note);
  EXPECT_EQ(notes("eval tint.fir --data " + plain), "");
  write_plain(dir_.file("shade.fir"), R"(program @shade {
  %x = data "image" : f32[?, 3, 8, 8]
  %s = neg(%x) : f32[?, 3, 8, 8]
  output "shade" = %s
}
)");
  EXPECT_EQ(notes("predict shade.fir --data " + spec_), note);
}

TEST_F(ImageData, BadRecordsStopOrAreSkipped) {
  damage("images/dogs/3.jpg");
  const std::string train = "train tint.fir --batch 6 --epochs 2 --workers 2 --data " + spec_;
  expect_late_error(train, "'images/dogs/3.jpg': damaged JPEG image");
  const Result skipped = run(train + "--on-bad-record skip");
  ASSERT_EQ(skipped.code, 0) << skipped.output;
  EXPECT_TRUE(states(skipped.output, "skipped 1 bad record; the first: 'images/dogs/3.jpg'"))
      << skipped.output;
  expect_late_error("eval tint.fir --batch 6 --data " + spec_, "'images/dogs/3.jpg'");
  const Result evaluated = run("eval tint.fir --on-bad-record skip --batch 6 --data " + spec_);
  EXPECT_EQ(evaluated.code, 0) << evaluated.output;
  EXPECT_TRUE(states(evaluated.output, "1 bad record; 'images/dogs/3.jpg'")) << evaluated.output;
  expect_error(train + "--on-bad-record ignore", "--on-bad-record: must be stop or skip");
  expect_error(train + "--workers 0", "--workers: must be a positive integer, not 0");
}

TEST_F(ImageData, BadRecordsOfAllRanksAreCountedOnce) {
  for (const char* image : {"cats/0", "cats/2", "dogs/3", "dogs/5"}) {
    damage("images/" + std::string(image) + ".jpg");
  }
  const Result result = run("launch --nproc 2 -- " + kFluidrun +
                            " train tint.fir --batch 2 --epochs 3 --on-bad-record skip --data " +
                            spec_ + "--val 'folder:images|resize=9|center_crop=8'");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::string skipped = "skipped 4 bad records; the first: 'images/cats/0.jpg'";
  for (const std::string& data :
       {spec_.substr(1, spec_.size() - 3), std::string("folder:images|resize=9|center_crop=8")}) {
    EXPECT_TRUE(states(result.output, "data '" + data + "': " + skipped)) << result.output;
  }
  size_t notes = 0;
  for (size_t at = 0; (at = result.output.find("bad record", at)) != std::string::npos; ++at) {
    ++notes;
  }
  EXPECT_EQ(notes, 2U) << result.output;
}

TEST_F(ImageData, BadRecordsAreSkippedByDryRunsAndOverfit) {
  damage("images/cats/0.jpg");
  const std::string train = "train tint.fir --batch 2 --data " + spec_;
  expect_late_error(train + "--dry-run", "'images/cats/0.jpg'");
  for (const std::string mode : {"--dry-run", "--find-lr"}) {
    const Result skipped = run(train + mode + " --on-bad-record skip");
    EXPECT_EQ(skipped.code, 0);
    EXPECT_TRUE(states(skipped.output, "skipped 1 bad record")) << mode << skipped.output;
  }
  expect_late_error(train + "--overfit 2", "'images/cats/0.jpg'");
  const Result few = run(train + "--overfit 2 --max-steps 3 --on-bad-record skip");
  EXPECT_TRUE(states(few.output, "skipped 1 bad record")) << few.output;
  const Result all = run(train + "--overfit 9 --max-steps 3 --on-bad-record skip");
  EXPECT_TRUE(states(all.output, "5 samples after")) << all.output;
}

TEST_F(ImageData, IsDescribed) {
  const Result described = run("data folder:images --draw 1");
  ASSERT_EQ(described.code, 0) << described.output;
  for (const std::string part :
       {"6 samples", "image u8[3, 27, 40]", "0 cats: 3 samples", "1 dogs: 3 samples",
        "'images/cats/0.jpg'  [label 0 'cats']", "█", "0 to 1, mean 0.5"}) {
    EXPECT_NE(described.output.find(part), std::string::npos) << part << "\n" << described.output;
  }
  EXPECT_TRUE(states(run("data folder:images --draw 0 --check").output, "0 of 6 samples"));
  damage("images/dogs/3.jpg");
  damage("images/cats/4.jpg");
  const Result checked = run("data folder:images --draw 0 --check");
  EXPECT_EQ(checked.code, 1);
  EXPECT_TRUE(states(checked.output, "'images/cats/4.jpg' 'images/dogs/3.jpg' 2 of 6 samples"))
      << checked.output;
  const Result rate = run("data 'digits?limit=300' --rate --batch 50");
  EXPECT_EQ(rate.code, 0);
  EXPECT_TRUE(states(rate.output, "300 samples in batches of 50")) << rate.output;
  EXPECT_TRUE(states(run("data 'digits?limit=300' --draw 0").output, "values of 'label': x 9"));
  expect_error("data folder:none", "'none' is not a directory that can be read");
  expect_error("data digits --batch 3", "--rate");
}

TEST_F(ImageData, LinesThatCannotBeReadAreListed) {
  write_plain(dir_.file("rows.csv"), "x,y\n1,2\n3\n4,five\n6,7\n");
  write_plain(dir_.file("rows.jsonl"), "{\"x\": 1}\n[2]\n{\"x\": 3}\n{\"y\": 4}\n");
  for (const std::string data : {"rows.csv", "rows.jsonl"}) {
    const Result checked = run("data " + data.substr(5) + ":" + data + " --check");
    EXPECT_EQ(checked.code, 1);
    EXPECT_TRUE(states(checked.output, data == "rows.csv" ? "rows.csv:3 rows.csv:4 2 of 4"
                                                          : "rows.jsonl:2 rows.jsonl:4 2 of 4"))
        << checked.output;
  }
  write_plain(dir_.file("rows.csv"), "x,y\n1,2\n");
  EXPECT_EQ(run("data csv:rows.csv --check").code, 0);
}

TEST_F(ImageData, ChecksumsAreVerifiedByCheck) {
  std::string bytes = bytes_of_hex(image_goldens()["savez"].get<std::string>());
  bytes[bytes.find("PK\1\2") - 1] ^= 1;  // the end of the last member
  write_plain(dir_.file("t.npz"), bytes);
  EXPECT_EQ(run("data npz:t.npz?memory=0").code, 0);
  expect_error("data npz:t.npz?memory=0 --check",
               "'t.npz': member 'z.npy' is damaged: its CRC-32 differs");
}

/// In the cache is that the mean of the column is 2.
TEST_F(ImageData, ScansOfTextFilesAreKept) {
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const std::string data = "data 'csv:rows.csv?normalize=1&memory=0' --draw 1 --cache-dir ";
  write_plain(dir_.file("rows.csv"), "x\n1\n3\n");
  std::filesystem::last_write_time(dir_.file("rows.csv"), old);
  EXPECT_TRUE(states(run(data + "kept").output, "rows.csv:2 [x -1]"));
  write_plain(dir_.file("rows.csv"), "x\n9\n5\n");
  std::filesystem::last_write_time(dir_.file("rows.csv"), old);
  EXPECT_TRUE(states(run(data + "kept").output, "rows.csv:2 [x 7]"));
  EXPECT_TRUE(states(run(data + "''").output, "rows.csv:2 [x 1]"));
}

TEST_F(ImageData, IsDescribedWithoutBadRecords) {
  write_plain(dir_.file("rows.csv"), "x,y\n1,2\n3\n4,five\n6,7\n");
  expect_error("data csv:rows.csv", "rows.csv:3: 1 fields");
  expect_error("data csv:rows.csv --on-bad-record stop", "rows.csv:3: 1 fields");
  for (const std::string check : {"", " --check"}) {
    const Result skipped = run("data csv:rows.csv --on-bad-record skip" + check);
    EXPECT_EQ(skipped.code, 0);
    EXPECT_TRUE(states(skipped.output, "csv:rows.csv: 2 samples rows.csv:3 rows.csv:4 2 of 4"))
        << skipped.output;
  }
  write_plain(dir_.file("rows.csv"), "x,part\n1,train\n2,tset\n3,val\n4,train\n");
  expect_error("data csv:rows.csv?split=part", "rows.csv:3: column 'part' holds 'tset'");
  for (const std::string split : {"train", "val"}) {
    const Result skipped =
        run("data csv:rows.csv?split=part --split " + split + " --on-bad-record skip --check");
    EXPECT_TRUE(states(skipped.output,
                       (split == "train" ? "2" : "1") +
                           std::string(" samples rows.csv:3: column 'part' 1 of 4 samples cannot")))
        << skipped.output;
  }
  std::string rows = "x,y\nno,1\n";
  for (int i = 0; i < 2000; ++i) rows += "1,2\n";
  write_plain(dir_.file("rows.csv"), rows);
  EXPECT_TRUE(states(run("data csv:rows.csv?val=0.5 --on-bad-record skip").output, "1 of 2001"));
  damage("images/dogs/3.jpg");
  EXPECT_EQ(run("data folder:images --draw 0").code, 1);
  const Result described = run("data folder:images --draw 0 --on-bad-record skip");
  EXPECT_EQ(described.code, 0);
  EXPECT_TRUE(states(described.output, "'images/dogs/3.jpg' 1 of 6 samples")) << described.output;
  const Result rate = run("data " + spec_ + "--rate --on-bad-record skip");
  EXPECT_EQ(rate.code, 0);
  EXPECT_TRUE(states(rate.output, "5 samples in batches; skipped 1 bad record")) << rate.output;
  expect_error("data digits --on-bad-record drop", "--on-bad-record: must be stop or skip");
}

}  // namespace
}  // namespace fluid::reading_test
