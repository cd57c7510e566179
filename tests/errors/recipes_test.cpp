// `fluidrun` with a program of several recipes: --recipes of train and bench, --recipe of plan and
// opt.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "tests/support/event_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::recipes_test {
namespace {

class RecipesOfAProgram : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    std::ofstream(dir_.file("two.fir")) << kTwo;
  }

  static constexpr const char* kTwo = R"(program @two {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %s = square(%e) : f32[?, 1]
  %squares = mean(%s) : f32[]
  %a = abs(%e) : f32[?, 1]
  %distances = mean(%a) : f32[]
  train(%squares) {recipe = "squares", optimizer = "adam", lr = 0.01}
  train(%distances) {recipe = "distances", trains = ["w"], optimizer = "sgd", lr = 0.02}
  output "squares" = %squares
  output "distances" = %distances
}
)";
};

const std::string kTrain = "train two.fir --data synthetic-linear?n=50 --batch 10 ";

TEST_F(RecipesOfAProgram, TrainInACycle) {
  const Result result =
      run(kTrain + "--recipes s:2,dist --log-json log.json --save two.safetensors");
  ASSERT_EQ(result.code, 0) << result.output;
  std::vector<std::string> recipes;
  for (const auto& line : logged(dir_.file("log.json"))) {
    const std::string recipe = line.at("recipe");
    EXPECT_TRUE(line.contains(recipe));
    EXPECT_FALSE(line.contains(recipe == "squares" ? "distances" : "squares"));
    EXPECT_EQ(line.at("lr"), recipe == "squares" ? 0.01 : 0.02);
    recipes.push_back(recipe);
  }
  const std::vector<std::string> expected = {"squares", "squares", "distances", "squares",
                                             "squares"};
  EXPECT_EQ(recipes, expected);
}

TEST_F(RecipesOfAProgram, HaveTheirOwnLearningRatesInTensorBoard) {
  ASSERT_EQ(run(kTrain + "--recipes s,d --tensorboard board").code, 0);
  const ReadEvents events = read_events(event_files(dir_.file("board")).at(0));
  EXPECT_TRUE(events.scalars.contains("optimizer/squares/learning_rate"));
  EXPECT_TRUE(events.scalars.contains("optimizer/distances/learning_rate"));
}

TEST_F(RecipesOfAProgram, WithoutAStepAreNamed) {
  const Result result = run(kTrain + "--recipes s:5,d --recipe-option s:swa=6");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_NE(
      result.output.find("recipe 'distances' runs no step: the cycle squares:5,distances:1 is "
                         "longer than the 5 steps of training\n"),
      std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("recipe 'squares': averages (--swa) start at update 6, but the "
                               "training has 5\n"),
            std::string::npos)
      << result.output;
  expect_error(kTrain +
                   "--recipes s,d --recipe-option "
                   "d:lr=1,schedule=piecewise,schedule-boundaries=5,schedule-values=0.1,0.2",
               "--lr 1: the schedule 'piecewise' replaces the learning rate");
}

TEST_F(RecipesOfAProgram, AreTimedEachByADryRun) {
  const Result result = run(kTrain + "--recipes s:2,dist --dry-run");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(states(result.output, "squares 10 4 distances 10 1")) << result.output;
}

/// A gradient is written for the steps of the recipe that trains the parameter.
TEST_F(RecipesOfAProgram, HaveGradientsOfTheirOwn) {
  std::string text = kTwo;
  text.insert(text.find("  train(%squares)"),
              R"(  %v = param "v" {init = "constant", value = 1.0} : f32[]
  %scaled = mul(%squares, %v) : f32[]
)");
  text.replace(text.find("train(%squares)"), 15, "train(%scaled)");
  std::ofstream(dir_.file("three.fir")) << text;
  const Result result =
      run("train three.fir --data synthetic-linear?n=50 --batch 10 --recipes s:1,d:1 --dump "
          "v.grad,w.grad --dump-steps 4 --tensorboard board --tensorboard-histograms 1");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto steps = [&](const std::string& name) {
    std::string found;
    for (const std::string step : {"1", "2", "3", "4"}) {
      if (std::filesystem::exists(dir_.file("dump/step-000" + step + "." + name + ".npy"))) {
        found += step;
      }
    }
    return found;
  };
  EXPECT_EQ(steps("w.grad"), "1234");
  EXPECT_EQ(steps("v.grad"), "13");
  const ReadEvents events = read_events(event_files(dir_.file("board")).at(0));
  EXPECT_EQ(events.other_tags.at("gradient/w").size(), 5u);
  EXPECT_EQ(events.other_tags.at("gradient/v").size(), 3u);
}

/// A value that any step computes, an output that one recipe computes, and a parameter.
TEST_F(RecipesOfAProgram, WriteTheirValues) {
  const Result result = run(kTrain + "--recipes s:2,d --dump a,squares,distances,w --dump-steps 3");
  ASSERT_EQ(result.code, 0) << result.output;
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(dir_.file("dump"))) {
    names.insert(file.path().filename().string());
  }
  const std::string step = "step-000";
  EXPECT_EQ(names,
            (std::set<std::string>{step + "1.a.npy", step + "1.squares.npy", step + "1.w.npy",
                                   step + "2.a.npy", step + "2.squares.npy", step + "2.w.npy",
                                   step + "3.a.npy", step + "3.distances.npy", step + "3.w.npy"}));
  const auto value = [&](const std::string& name) {
    return read_npy(dir_.file("dump/" + step + name + ".npy"));
  };
  double sum = 0;
  for (int64_t i = 0; i < 10; ++i) sum += value("3.a").at(i);
  EXPECT_NEAR(value("3.distances").item(), sum / 10, 1e-5 * sum);
  // The first step of Adam moves a parameter by lr.
  EXPECT_NEAR(std::abs(value("1.w").at(0)), 0.01, 1e-6);
}

TEST_F(RecipesOfAProgram, TrainAdapters) {
  const std::string base = "--params base.safetensors ";
  ASSERT_EQ(run(kTrain + "--recipes s,d --save base.safetensors").code, 0);
  const auto adapters = [&](const std::string& steps) {
    const std::string file = "adapters" + steps + ".safetensors";
    const Result result = run(kTrain + base + "--recipes s:2,d --lora w:rank=1 --max-steps " +
                              steps + " --save " + file);
    EXPECT_EQ(result.code, 0) << result.output;
    return read_safetensors(dir_.file(file));
  };
  const TensorFile two = adapters("2"), three = adapters("3");
  ASSERT_EQ(three.tensors.size(), 2u) << "saves the adapters alone";
  EXPECT_NE(two.find("w.lora_b")->item(), 0) << "trained by the first recipe";
  EXPECT_NE(three.find("w.lora_b")->item(), two.find("w.lora_b")->item()) << "and by the second";
  ASSERT_EQ(run("merge two.fir " + base + "--adapters adapters3.safetensors --save merged").code,
            0);
  const Tensor w = *read_safetensors(dir_.file("base.safetensors")).find("w");
  const Tensor merged = *read_safetensors(dir_.file("merged")).find("w");
  for (int64_t i = 0; i < 2; ++i) {
    const double change = 8 * three.find("w.lora_a")->at(i) * three.find("w.lora_b")->item();
    EXPECT_NEAR(merged.at(i), w.at(i) + change, 1e-6);
  }
}

TEST_F(RecipesOfAProgram, WithoutATrainableParameterAreNamed) {
  expect_late_error(kTrain + "--recipes s,d --freeze w",
                    "recipe 'squares': the loss does not depend on any trainable parameter");
}

/// kTwo with a recipe that trains a parameter `v` of its own.
std::string with_two_parameters(std::string text) {
  text.insert(text.find("  train(%squares)"),
              R"(  %v = param "v" {init = "constant", value = 1.0} : f32[]
  %fixed = stop_gradient(%squares) : f32[]
  %scaled = mul(%fixed, %v) : f32[]
)");
  return text.replace(text.find("train(%squares)"), 15, "train(%scaled)");
}

/// A recipe outside the cycle may have nothing to train, such as a frozen discriminator.
TEST_F(RecipesOfAProgram, OutsideTheCycleMayBeFrozen) {
  write_plain(dir_.file("three.fir"), with_two_parameters(kTwo));
  const std::string frozen =
      "train three.fir --data synthetic-linear?n=50 --batch 10 --freeze v --recipes ";
  const Result whole = run(frozen + "d --save whole.safetensors");
  ASSERT_EQ(whole.code, 0) << whole.output;
  ASSERT_EQ(run(frozen + "d --max-steps 2 --checkpoint-dir run").code, 0);
  const Result resumed = run(frozen + "d --checkpoint-dir run --resume --save part.safetensors");
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read_safetensors(dir_.file("part.safetensors")).find("w")->at(i),
              read_safetensors(dir_.file("whole.safetensors")).find("w")->at(i));
  }
  const Result auto_amp = run(frozen + "d --amp auto --cache-dir kernels");
  EXPECT_EQ(auto_amp.code, 0) << auto_amp.output;
  const Result planned = run("plan three.fir --freeze v");
  EXPECT_EQ(planned.code, 0) << planned.output;
  expect_error(frozen + "d,s",
               "recipe 'squares': the loss does not depend on any trainable parameter: nothing to "
               "train");
}

TEST_F(RecipesOfAProgram, KeepTheirCountersWhileFrozen) {
  std::string text = with_two_parameters(kTwo);
  text.replace(text.find("adam"), 4, "sgd");  // no state that freezing drops
  write_plain(dir_.file("three.fir"), text);
  const std::string train =
      "train three.fir --data synthetic-linear?n=50 --batch 10 --epochs 2 --checkpoint-dir run "
      "--recipes ";
  const auto updates = [&] {
    const TensorFile state = read_safetensors(dir_.file("run/last/training.safetensors"));
    return std::pair(state.find("squares:update")->item(), state.find("distances:update")->item());
  };
  ASSERT_EQ(run(train + "s,d --max-steps 4").code, 0);
  EXPECT_EQ(updates(), std::pair(2.0, 2.0));
  ASSERT_EQ(run(train + "d --max-steps 7 --resume --freeze v").code, 0);
  EXPECT_EQ(updates(), std::pair(2.0, 5.0));
  ASSERT_EQ(run(train + "s,d --max-steps 9 --resume").code, 0);
  EXPECT_EQ(updates(), std::pair(3.0, 6.0));
}

/// Of 14 steps, recipe "distances" runs 2 in the first cycle and 9 of the other 10.
TEST_F(RecipesOfAProgram, EndTheirSchedulesAfterAnotherCycle) {
  const std::string train =
      kTrain +
      "--epochs 9 --amp o1 --amp-dtype f16 --checkpoint-dir run --log-json log "
      "--recipe-option d:schedule=linear,schedule_end=0.25,lr=0.5 --recipes ";
  ASSERT_EQ(run(train + "s,d --max-steps 4").code, 0);
  const Result result = run(train + "d:9,s --max-steps 14 --resume");
  ASSERT_EQ(result.code, 0) << result.output;
  std::vector<double> rates;
  for (const auto& line : logged(dir_.file("log"))) {
    if (line.at("recipe") == "distances") rates.push_back(line.at("lr"));
  }
  ASSERT_EQ(rates.size(), 11U);
  for (size_t i = 2; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], 0.5 - 0.25 * static_cast<double>(i) / 11, 1e-6) << "update " << i;
  }
  EXPECT_TRUE(states(result.output, "distances: loss scale 65536; 0 of 11 steps skipped"))
      << result.output;
  EXPECT_TRUE(states(result.output, "squares: loss scale 65536; 0 of 3 steps skipped"))
      << result.output;
}

TEST_F(RecipesOfAProgram, ChooseTheirPrecisionTogether) {
  const std::string train = kTrain + "--recipes s,d --amp auto --cache-dir kernels ";
  const Result first = run(train), again = run(train);
  for (const Result& result : {first, again}) {
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_TRUE(states(result.output, "--amp auto")) << result.output;
  }
  EXPECT_EQ(first.output.find("(measured before)"), std::string::npos) << first.output;
  EXPECT_NE(again.output.find("(measured before)"), std::string::npos) << again.output;
}

/// Each recipe follows its own loss, with its own patience. No loss is a thousandth of the one
/// before: each epoch but the first is a bad one.
TEST_F(RecipesOfAProgram, HavePlateausOfTheirOwn) {
  std::string text = kTwo;
  const auto add = [&](const std::string& rate, const std::string& patience) {
    text.insert(text.find(rate) + rate.size(),
                ", schedule = \"plateau\", schedule_patience = " + patience +
                    ", schedule_factor = 0.5, schedule_threshold = 0.999");
  };
  add("lr = 0.01", "1");
  add("lr = 0.02", "2");
  std::ofstream(dir_.file("flat.fir")) << text;
  const std::string train =
      "train flat.fir --data synthetic-linear?n=20 --batch 10 --epochs 7 --recipes s,d ";
  const auto rates = [&](const std::string& log) {
    std::map<std::string, std::vector<double>> rates;
    for (const auto& line : logged(dir_.file(log))) {
      rates[line.at("recipe").get<std::string>()].push_back(line.at("lr").get<double>());
    }
    return rates;
  };
  const Result result = run(train + "--log-json whole");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::map<std::string, std::vector<double>> expected = {
      {"squares", {0.01, 0.01, 0.01, 0.005, 0.005, 0.0025, 0.0025}},
      {"distances", {0.02, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01}}};
  EXPECT_EQ(rates("whole"), expected);
  for (const std::string steps : {"5", "100"}) {
    ASSERT_EQ(
        run(train + "--checkpoint-dir run --resume --log-json part --max-steps " + steps).code, 0);
  }
  EXPECT_EQ(rates("part"), expected) << "interrupted in an epoch";
}

TEST_F(RecipesOfAProgram, AreRejectedWithoutACycle) {
  const std::string cycle = "--recipes squares:1,distances:1";
  expect_error(kTrain, "program 'two' has the recipes squares, distances");
  expect_error(kTrain, cycle);
  expect_error("bench two.fir --data synthetic-linear", cycle);
  expect_error(kTrain + "--recipes s:2,g:1",
               "--recipes s:2,g:1: program 'two' has no recipe 'g'; there are squares, distances");
  expect_error(kTrain + "--recipes squares:0", "the steps of 'squares' must be a positive integer");
  expect_error(kTrain + "--recipes s,squares", "recipe 'squares' is twice in the cycle");
  std::string text = kTwo;
  text.replace(text.find("\"distances\", trains"), 11, "\"squared\"");
  std::ofstream(dir_.file("alike.fir")) << text;
  expect_error(
      "train alike.fir --data synthetic-linear --recipes sq:1,squared:1",
      "program 'two' has several recipes that begin with 'sq'; there are squares, squared");
  expect_error("train line.fir --data synthetic-linear --recipes loss:1",
               "program 'line' does not have several recipes");
}

TEST_F(RecipesOfAProgram, KeepTheSettingsOfTheProgram) {
  for (const char* flag : {"--lr 0.5", "--optimizer sgd", "--schedule constant", "--ema 0.5"}) {
    expect_error(kTrain + "--recipes s,d " + flag, std::string(flag) + ": changes the only recipe");
  }
  expect_late_error(kTrain + "--recipes s:2,d --find-lr",
                    "--find-lr finds the learning rate of one recipe: give --recipes NAME, not "
                    "squares:2,distances:1");
  expect_late_error(kTrain + "--recipes s,d --overfit 2",
                    "--overfit needs one recipe, whose loss is an output; --recipes NAME selects");
}

TEST_F(RecipesOfAProgram, HaveALearningRateOfTheirOwnToFind) {
  for (const std::string option : {"lr=0.1", "schedule=cosine", "ema=0.9", "swa=2"}) {
    const std::string flag = option.substr(0, option.find('='));
    expect_error(kTrain + "--find-lr --recipes squares --recipe-option squares:" + option,
                 "--recipe-option 'squares:" + option + "': --find-lr excludes --" + flag);
  }
  for (const char* recipe : {"squares", "distances"}) {
    const Result result = run(kTrain + "--find-lr --recipes " + recipe);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(result.output.find("suggested learning rate: "), std::string::npos) << result.output;
  }
}

TEST_F(RecipesOfAProgram, AreChangedOneByOne) {
  const Result result =
      run(kTrain +
          "--epochs 2 --max-steps 9 --recipes s:2,d --log-json log --recipe-option "
          "d:optimizer=momentum,lr=0.5,momentum=0.25,schedule=linear,schedule_end=0.25");
  ASSERT_EQ(result.code, 0) << result.output;
  std::vector<double> rates;
  for (const auto& line : logged(dir_.file("log"))) {
    const bool is_changed = line.at("recipe") == "distances";
    EXPECT_TRUE(is_changed || line.at("lr") == 0.01) << line;
    if (is_changed) rates.push_back(line.at("lr").get<double>());
  }
  ASSERT_EQ(rates.size(), 3U) << "of 9 steps";
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(rates[i], 0.5 - 0.25 * static_cast<double>(i) / 3, 1e-6) << "update " << i;
  }
}

/// Validation, --save and later runs take the averages of the recipe that keeps some.
TEST_F(RecipesOfAProgram, KeepAveragesOneByOne) {
  const Result result = run(kTrain +
                            "--recipes s,d --recipe-option s:ema=0.5 --val synthetic-linear?n=50 "
                            "--dump w --dump-steps 5 --log-json log --save averaged.safetensors");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto after = [&](int64_t step, int64_t i) {
    return read_npy(dir_.file("dump/step-000" + std::to_string(step) + ".w.npy")).at(i);
  };
  const TensorFile file = read_safetensors(dir_.file("averaged.safetensors"));
  for (int64_t i = 0; i < 2; ++i) {
    const double average = 0.25 * after(1, i) + 0.25 * after(3, i) + 0.5 * after(5, i);
    EXPECT_NEAR(file.find("w")->at(i), average, 1e-6) << "of the steps 1, 3 and 5 of the recipe";
  }
  const Result eval =
      run("eval two.fir --params averaged.safetensors --data synthetic-linear?n=50");
  const size_t at = eval.output.find("squares ");
  ASSERT_NE(at, std::string::npos) << eval.output;
  const double squares = logged(dir_.file("log"), "validation").at(0).at("squares");
  EXPECT_NEAR(std::stod(eval.output.substr(at + 8)), squares, 1e-5 * squares);
}

/// A step of plain gradient descent moves the parameters by lr times the clipped norm. After two of
/// them, lookahead takes half of their way.
TEST_F(RecipesOfAProgram, AreClippedOneByOne) {
  const Result result = run(
      kTrain + "--recipes d --recipe-option d:clip-norm=0.01,lookahead=2 --dump w --dump-steps 2");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto norm = [&](const std::string& step) {
    const Tensor w = read_npy(dir_.file("dump/step-000" + step + ".w.npy"));
    return std::hypot(w.at(0), w.at(1));
  };
  constexpr double kStep = 0.02 * 0.01;
  EXPECT_NEAR(norm("1"), kStep, 1e-4 * kStep);
  EXPECT_LE(norm("2"), 1.001 * kStep);
}

TEST_F(RecipesOfAProgram, NeedAStepThatComputesTheMetricOfAPlateau) {
  const std::string train =
      kTrain + "--recipes s --recipe-option s:schedule=plateau,schedule-metric=distances ";
  expect_error(train,
               "the schedule 'plateau' monitors 'distances', which no training step "
               "computes: it needs validation data");
  EXPECT_EQ(run(train + "--val synthetic-linear?n=50").code, 0);
}

TEST_F(RecipesOfAProgram, RejectOptionsThatDoNotFit) {
  const auto rejects = [&](const std::string& option, const std::string& message) {
    expect_error(kTrain + "--recipes s,d --recipe-option " + option,
                 "--recipe-option '" + option + "': " + message);
  };
  rejects("d", "must be NAME:FLAG=VALUE,...");
  rejects("g:lr=1", "program 'two' has no recipe 'g'; there are squares, distances");
  rejects("d:rate=1", "no flag --rate of a recipe");
  rejects("d:ema=0.5,swa=2", "--ema excludes --swa");
  rejects("d:clip-norm=-1", "--clip-norm: must be a positive number, or 0 for no clipping, not -1");
  rejects("d:lr=fast", "--lr");
  rejects("d:nesterov", "--nesterov: no setting of sgd");
  rejects("d:minimize=squares", "--minimize squares: program 'two' has a loss that it minimizes");
  rejects("d:schedule=cosin", "--schedule cosin: there are");
  expect_error(kTrain +
                   "--recipes s,d --recipe-option d:lr=0.5 --recipe-option s:lr=0.5 "
                   "--recipe-option d:ema=0.5,lr=0.25",
               "--recipe-option 'd:ema=0.5,lr=0.25': --lr of recipe 'distances' is given twice");
  expect_error(kTrain + "--recipes s --recipe-option d:lr=1",
               "recipe 'distances' is not in the cycle squares:1");
  expect_error("train line.fir --data synthetic-linear --recipe-option loss:lr=1",
               "program 'line' does not have several recipes");
}

TEST_F(RecipesOfAProgram, ArePlannedTogetherOrOne) {
  const auto state_bytes = [&](const std::string& flags) {
    const Result result = run("plan two.fir --json " + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    return nlohmann::json::parse(result.output).at("state_bytes").get<int64_t>();
  };
  EXPECT_GT(state_bytes(""), state_bytes("--recipe squares"));
  EXPECT_GT(state_bytes("--recipe squares"), state_bytes("--recipe distances"));
  expect_error("plan two.fir --recipe circles", "program 'two' has no recipe 'circles'");
  expect_error("opt two.fir --pipeline train", "give --recipe squares");
  expect_error("opt two.fir --pass infer_types,append_backward", "the program has two train ops");
  const Result step = run("opt two.fir --pipeline train --recipe dist");
  EXPECT_NE(step.output.find("\"distances:update\""), std::string::npos) << step.output;
  const Result pass = run("opt two.fir --pass infer_types --recipe dist");
  EXPECT_EQ(pass.output.find("train(%squares)"), std::string::npos) << pass.output;
  expect_error("opt two.fir --pipeline eval --recipe dist",
               "--recipe: pipeline eval compiles no recipe");
  expect_error("plan two.fir --pipeline eval --recipe dist",
               "--recipe: a step of mode eval compiles no recipe");
}

TEST_F(RecipesOfAProgram, AreVerified) {
  EXPECT_EQ(run("verify two.fir").code, 0);
  std::string text = kTwo;
  text.replace(text.find("\"distances\", trains"), 11, "\"squares\"");
  std::ofstream(dir_.file("same.fir")) << text;
  expect_error("verify same.fir", "already has a recipe 'squares'");
  text = kTwo;
  text.replace(text.find("[\"w\"]"), 5, "[\"v\"]");
  std::ofstream(dir_.file("other.fir")) << text;
  expect_error("verify other.fir",
               "recipe 'distances' trains 'v', which is no parameter of the program");
}

}  // namespace
}  // namespace fluid::recipes_test
