// The best epoch by the figures of --val: marked, kept, and waited for.

#include <gtest/gtest.h>

#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::best_epoch_test {
namespace {

/// The loss falls from epoch to epoch: with max the first one is the best.
class BestCommand : public FluidrunTest {
 protected:
  static std::string train(const std::string& rest) {
    return "train line.fir --data synthetic-linear?n=100 --val synthetic-linear?n=50 --batch 20 " +
           rest;
  }
  /// The numbers of the epochs that are marked.
  static std::vector<int> marked(const std::string& output) {
    std::vector<int> epochs;
    for (size_t at = output.find(" s  best\n"); at != std::string::npos;
         at = output.find(" s  best\n", at + 1)) {
      epochs.push_back(std::stoi(output.substr(output.rfind('\n', at) + 1)));
    }
    return epochs;
  }
};

TEST_F(BestCommand, IsByTheLossUnlessToldOtherwise) {
  Result result = run(train("--epochs 4 --lr 0.001"));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(marked(result.output), (std::vector<int>{1, 2, 3, 4})) << result.output;
  result = run(train("--epochs 4 --lr 0.001 --best loss:max"));
  EXPECT_EQ(marked(result.output), std::vector<int>{1}) << result.output;
  EXPECT_NE(result.output.find("best: val_loss "), std::string::npos);
  result = run("train line.fir --data synthetic-linear?n=100 --epochs 2");
  EXPECT_TRUE(marked(result.output).empty()) << "without --val";
}

TEST_F(BestCommand, IsKept) {
  EXPECT_EQ(run(train("--epochs 1 --save first.safetensors --lr 0.001")).code, 0);
  const Result result =
      run(train("--epochs 5 --lr 0.001 --best loss:max --save-best best.safetensors --save "
                "last.safetensors --checkpoint-dir run --keep 1"));
  EXPECT_EQ(result.code, 0) << result.output;
  const std::string first = read_file(dir_.file("first.safetensors"));
  EXPECT_EQ(read_file(dir_.file("best.safetensors")), first);
  EXPECT_EQ(read_file(dir_.file("run/best/parameters.safetensors")), first);
  EXPECT_NE(read_file(dir_.file("last.safetensors")), first);
  EXPECT_EQ(std::filesystem::read_symlink(dir_.file("run/best")), "step-0000000005");
  EXPECT_EQ(std::filesystem::read_symlink(dir_.file("run/last")), "step-0000000025");
  const Result none = run(train("--max-steps 3 --save-best none.safetensors"));
  EXPECT_NE(none.output.find("no epoch came to its end: not saved none.safetensors"),
            std::string::npos)
      << none.output;
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none.safetensors")));
}

TEST_F(BestCommand, IsNotWaitedForTooLong) {
  const std::string options = "--epochs 9 --lr 0.001 --best loss:max --patience 3 ";
  const Result whole = run(train(options + "--save whole.safetensors"));
  EXPECT_EQ(whole.code, 0) << whole.output;
  EXPECT_NE(whole.output.find("stopped after epoch 4: 3 without a better one\nbest: val_loss "),
            std::string::npos)
      << whole.output;
  const std::string kept = options + "--checkpoint-dir run --save part.safetensors ";
  EXPECT_EQ(run(train(kept + "--max-steps 12")).code, 0);
  for (const char* again : {"goes on", "has nothing left to do"}) {
    const Result part = run(train(kept + "--resume"));
    EXPECT_NE(part.output.find("stopped after epoch 4: 3 without a better one"), std::string::npos)
        << again << part.output;
    EXPECT_EQ(read_file(dir_.file("part.safetensors")), read_file(dir_.file("whole.safetensors")));
  }
  const Result other = run(train("--epochs 9 --lr 0.001 --checkpoint-dir run --resume"));
  EXPECT_NE(other.output.find("best loss:min (was loss:max)"), std::string::npos) << other.output;
  EXPECT_EQ(marked(other.output), (std::vector<int>{5, 6, 7, 8, 9})) << other.output;
}

/// Patience counts from the epoch at which monitoring began.
TEST_F(BestCommand, IsWaitedForFromTheEpochOfItsFirstValue) {
  const std::string checkpoints = "--lr 0.001 --checkpoint-dir run ";
  ASSERT_EQ(
      run("train line.fir --data synthetic-linear?n=100 --batch 20 --epochs 3 " + checkpoints).code,
      0);
  const Result validated =
      run(train(checkpoints + "--resume --epochs 9 --best loss:max --patience 2 --max-steps 17"));
  EXPECT_EQ(validated.code, 0) << validated.output;
  EXPECT_EQ(validated.output.find("nothing to train"), std::string::npos) << validated.output;
  const Result more = run(train(checkpoints + "--resume --epochs 9 --best loss:max --patience 2"));
  EXPECT_EQ(marked(more.output), std::vector<int>{4}) << more.output;
  EXPECT_NE(more.output.find("stopped after epoch 6: 2 without a better one"), std::string::npos)
      << more.output;
  const Result other = run(train(checkpoints + "--resume --epochs 9 --patience 2"));
  EXPECT_EQ(marked(other.output), (std::vector<int>{7, 8, 9})) << other.output;
}

TEST_F(BestCommand, OutlivesARunWithoutValidation) {
  const std::string options = "--lr 0.001 --checkpoint-dir run --resume --keep 1 ";
  const std::string best = "--best loss:max --save-best best.safetensors ";
  ASSERT_EQ(run(train(options + best + "--epochs 2")).code, 0);
  const std::string first = read_file(dir_.file("best.safetensors"));
  ASSERT_EQ(
      run("train line.fir --data synthetic-linear?n=100 --batch 20 --epochs 5 " + options).code, 0);
  const Result result = run(train(options + best + "--epochs 8 --patience 2"));
  EXPECT_TRUE(marked(result.output).empty()) << result.output;
  EXPECT_NE(result.output.find("stopped after epoch 7: 2 without a better one\nbest: val_loss "),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find(" in epoch 1\n"), std::string::npos) << result.output;
  EXPECT_EQ(read_file(dir_.file("best.safetensors")), first);
  EXPECT_EQ(std::filesystem::read_symlink(dir_.file("run/best")), "step-0000000005");
}

TEST_F(BestCommand, IsNotADamagedCheckpoint) {
  const std::string options = "--lr 0.001 --checkpoint-dir run --epochs 3 ";
  ASSERT_EQ(run(train(options)).code, 0);
  ASSERT_EQ(std::filesystem::read_symlink(dir_.file("run/best")), "step-0000000015");
  write_plain(dir_.file("run/step-0000000015/manifest.json"), "{");
  // Without validation no epoch is the best, so only the link keeps the checkpoint.
  const std::string resume = "train line.fir --data synthetic-linear?n=100 --batch 20 --resume ";
  ASSERT_EQ(run(resume + options + "--keep 1 --max-steps 11").code, 0);
  EXPECT_EQ(std::filesystem::read_symlink(dir_.file("run/best")), "step-0000000010");
  EXPECT_TRUE(std::filesystem::exists(dir_.file("run/best/parameters.safetensors")));
  std::filesystem::remove_all(dir_.file("run"));
  ASSERT_EQ(run(train(options + "--keep 2 --checkpoint-every 1")).code, 0);
  ASSERT_EQ(std::filesystem::read_symlink(dir_.file("run/best")), "step-0000000015");
  write_plain(dir_.file("run/step-0000000015/manifest.json"), "{");
  ASSERT_EQ(run(resume + options + "--max-steps 14").code, 0);
  EXPECT_FALSE(std::filesystem::is_symlink(dir_.file("run/best"))) << "none is intact";
}

TEST_F(BestCommand, RejectsWhatMeansNothing) {
  const std::string unvalidated = "train line.fir --data synthetic-linear?n=100 ";
  expect_error(unvalidated + "--best loss", "--best needs --val");
  expect_error(unvalidated + "--patience 2", "--patience needs --val");
  expect_error(unvalidated + "--save-best w.safetensors", "--save-best needs --val");
  expect_error(train("--best los"),
               "--best: no scalar output has the name 'los' (did you mean 'loss'?)");
  expect_error(train("--best line:max"),
               "--best: no scalar output has the name 'line'; there are 'loss'");
  expect_error(train("--best loss:mi"), "--best: write loss:min or loss:max, not loss:mi");
  expect_error(train("--save-best no/such/file"), "cannot write 'no/such/file'");
  std::string silent = kLine;
  silent.erase(silent.find("  output \"loss\""), sizeof "  output \"loss\" = %loss");
  write_plain(dir_.file("silent.fir"), silent);
  expect_error("train silent.fir --data synthetic-linear --val synthetic-linear --patience 1",
               "patience needs an output to compare (best): the loss is not an output");
}

}  // namespace
}  // namespace fluid::best_epoch_test
