// Command lines that are wrong before any file is read, and options out of range.

#include <gtest/gtest.h>

#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::command_line_test {
namespace {

using CommandLine = FluidrunTest;

struct Case {
  const char* arguments;
  const char* message;
};

TEST_F(CommandLine, IsRejected) {
  const Case cases[] = {
      {"trai", "'trai' is not expected (did you mean 'train'?); see fluidrun --help"},
      {"train line.fir", "--data is required; see fluidrun train --help"},
      {"train line.fir --data digits --epoch 3",
       "'--epoch' is not expected (did you mean '--epochs'?)"},
      {"train line.fir --data digits --unknown", "'--unknown' is not expected; see"},
      {"train line.fir --data digits --data digits", "--data: At Most 1 required but received 2"},
      {"train line.fir --data digits extra", "'extra' is not expected"},
      {"train line.fir --data digits --find-lr rates.svg",
       "'rates.svg' is not expected: write --find-lr=rates.svg"},
      {"train line.fir --data digits --profile trace.json",
       "'trace.json' is not expected: write --profile=trace.json"},
      {"eval --report r.json line.fir --data digits",
       "'line.fir' is not expected: write --report=r.json"},
      {"train line.fir --data synthetic-linear --place gpu",
       "no place 'gpu' (did you mean 'cpu'?); places are auto, cpu and cuda:N"},
      {"train line.fir --data synthetic-linear --dtype f16", "--dtype f16: must be f32 or f64"},
      {"train line.fir --data synthetic-linear --amp o3", "--amp o3: must be o1, o2, auto or off"},
      {"train line.fir --data synthetic-linear --amp o1 --amp-dtype u8",
       "--amp-dtype u8: must be bf16 or f16"},
      {"train line.fir --data synthetic-linear --amp o1 --dtype f64",
       "mixed precision and a whole program in f64 exclude each other"},
      {"train line.fir --data synthetic-linear --amp-dtype f16", "--amp-dtype f16: needs --amp o1"},
      {"train line.fir --data synthetic-linear --amp-f32 mean", "--amp-f32 mean: needs --amp o1"},
      {"train line.fir --data synthetic-linear --amp o1 --amp-half men",
       "'men' is neither an op nor a layer of the program (did you mean 'mean'?)"},
      {"summary line.fir --amp o1 --amp-f32 men", "'men' is neither an op nor a layer"},
      {"plan line.fir --amp auto",
       "--amp auto: this machine has no measurement of this program and batch: run train or bench "
       "with --amp auto first, or choose o1, o2 or off"},
      {"eval line.fir --data synthetic-linear --amp auto",
       "--amp auto: train and bench time steps to choose; say o1, o2 or off here"},
      {"train line.fir --data synthetic-linear --amp o1 --loss-scale 8",
       "--loss-scale: the loss is scaled with --amp-dtype f16 only"},
      {"train line.fir --data synthetic-linear --loss-scale-growth 4",
       "--loss-scale-growth: the loss is scaled with --amp-dtype f16 only"},
      {"opt line.fir --pass dce --report", "--report: amp_cast is not among the passes"},
      {"quantize line.fir --weight-only -o q.fluid --save-params q.safetensors",
       "quantize needs the trained weights, --params"},
      {"quantize line.fir --params p.safetensors -o q.fluid --save-params q.safetensors",
       "quantize needs --data or --weight-only"},
      {"quantize line.fir --params p.safetensors --weight-only -o same --save-params same",
       "quantize: --output and --save-params name the same file, same"},
      {"quantize line.fir --params p.safetensors --weight-only --calibration-batches 2 -o q.fluid "
       "--save-params q.safetensors",
       "--weight-only excludes --calibration-batches"},
      {"train line.fir --data digts", "no kind of data 'digts' (did you mean 'digits'?)"},
      {"train lne.fir --data digits", "no program 'lne.fir'"},
      {"verify .", "cannot read '.': Is a directory"},
      {"opt line.fir --pipeline train --slice last", "--slice: needs --micro-batches"},
      {"opt line.fir --pipeline train --micro-batches 2 --slice tail",
       "no micro-batch 'tail'; --slice is first, middle or last"},
      {"opt line.fir --pipeline train --batch 2 --micro-batches 2 --slice middle",
       "a batch of 2 in 2 micro-batches has no middle one"},
      {"opt line.fir --pipeline train --amp o1 --dtype f64",
       "mixed precision and a whole program in f64 exclude each other"},
      {"opt line.fir --pipeline eval --micro-batches 2",
       "--micro-batches: only the train pipeline has micro-batches"},
      {"opt line.fir --pipeline train --world 2 --rank 2", "--rank 2: the last rank of 2 is 1"},
      {"opt line.fir", "opt needs --pass a,b, --pipeline train, or -o FILE to convert the program"},
      {"opt line.fir --pass dce --pipeline train", "--pass and --pipeline exclude each other"},
      {"opt line.fir -o x.fir --report", "--report needs --pass or --pipeline"},
      {"opt line.fir -o x.fir --time-passes", "--time-passes needs --pass or --pipeline"},
      {"opt line.fir -o x.json", "-o x.json: a program is written as .fir or .fluid, not as .json"},
      {"opt", "opt needs a program, or --list"},
      {"opt line.fir --pass dc", "no pass 'dc' (did you mean 'dce'?)"},
      {"opt line.fir --pass dec", "no pass 'dec' (did you mean 'dce'?)"},
      {"opt line.fir --pass fuse", "pass fuse needs 'typed': run infer_types before it"},
      {"opt line.fir --pass infer_types,plan_memory",
       "pass plan_memory needs 'scheduled': run schedule before it"},
      {"opt line.fir --pipeline tran", "no pipeline 'tran'; there are train, eval, predict, init"},
      {"show line.fir --format svgg", "must be text, json, dot or svg (did you mean 'svg'?)"},
      {"plan line.fir --pipeline init", "no pipeline 'init'; there are train, eval, predict"},
      {"plan line.fir --memory many", "'many' is not a size in bytes; write 512MiB or 8GiB"},
      {"plan line.fir --memory 1B", "not even a batch of 1 fits 1B"},
      {"plan line.fir --target absent.json", "cannot read 'absent.json'"},
      {"plan line.fir --target absent.json --tune",
       "--tune times kernels on this machine: it cannot be given with --target"},
      {"predict line.fir --data synthetic-linear?n=5 --output line",
       "--output line: write FILE.npy, FILE.csv, NAME=@FILE.npy or NAME=@FILE.csv"},
      {"predict line.fir --data synthetic-linear?n=5 --output line.tsv",
       "cannot write 'line.tsv': outputs are written as .npy or .csv, not as .tsv"},
      {"predict line.fir --data synthetic-linear?n=5 --output o.CSV --output line=@./o.CSV",
       "--output writes './o.CSV' twice"},
      {"predict line.fir --data synthetic-linear?n=5 --output line=@o.txt",
       "cannot write 'o.txt': outputs are written as .npy or .csv, not as .txt"},
      {"predict line.fir --data synthetic-linear?n=5 --output lne=@o.npy",
       "no output 'lne' (did you mean 'line'?)"},
      {"show line.fir -o x.pdf",
       "-o x.pdf: the ending must be .svg, .dot, .json, .txt or .fir, or --format must say the "
       "format"},
      {"opt line.fir --pass dce -o x.svg",
       "-o x.svg: a program is written as .fir or .fluid, not as .svg"},
      {"eval line.fir --data synthetic-linear --params-layout pytorch",
       "--params-layout requires --params"},
      {"eval line.fir --data synthetic-linear --params w --params-layout torch",
       "--params-layout: must be pytorch or fluid, not torch"},
      {"predict line.fir --data synthetic-linear?n=5 --output loss=@o.npy",
       "output 'loss' is f32[], not one row per sample"},
      {"verify 'two\nlines'", "no program 'two\\nlines'"},
  };
  for (const Case& c : cases) expect_error(c.arguments, c.message);
}

TEST_F(CommandLine, IsRejectedForEmptyValues) {
  const std::string train = "train line.fir --data synthetic-linear?n=50 ";
  for (const std::string flag : {"--save", "--history", "--log-json", "--tensorboard", "--dump",
                                 "--val", "--params", "--checkpoint-dir", "--optimizer"}) {
    expect_error(train + flag + " ''", flag + ": the value is empty");
  }
  expect_error("eval line.fir --data synthetic-linear --params ''", "--params: the value is empty");
  expect_error("opt line.fir --pass dce -o ''", "-o: the value is empty");
  expect_error(train + "--find-lr=", "--find-lr: the value is empty");
  expect_error("--config '' " + train, "--config: the value is empty");
  std::ofstream(dir_.file("run.toml")) << "[train]\nsave = \"\"\n";
  expect_error(train + "--config run.toml", "--save: the value is empty");
  EXPECT_EQ(run(train + "--cache-dir ''").code, 0);
}

TEST_F(CommandLine, IsRejectedForOptionsThatChangeNothing) {
  const std::string train = "train line.fir --data synthetic-linear?n=50 ";
  const Case cases[] = {
      {"--find-lr --lr 0.1", "--find-lr excludes --lr"},
      {"--find-lr --max-steps 9", "--find-lr needs 10 steps or more: --max-steps is 9"},
      {"--find-lr --epochs 2", "--epochs excludes --find-lr"},
      {"--find-lr --warmup 5", "--find-lr excludes --warmup"},
      {"--find-lr --patience 5", "--find-lr excludes --patience"},
      {"--find-lr --schedule-end 0.1", "--find-lr excludes --schedule-end"},
      {"--find-lr --swa 2", "--find-lr excludes --swa"},
      {"--find-lr --ema 0.9", "--find-lr excludes --ema"},
      {"--find-lr --profile", "--find-lr excludes --profile"},
      {"--lr 0.5 --schedule piecewise --schedule-boundaries 5 --schedule-values 0.1,0.2",
       "--lr 0.5: the schedule 'piecewise' replaces the learning rate: --schedule-values"},
      {"--freeze w --param w:lr=10", "--param 'w:lr=10': changes nothing: 'w' is frozen"},
      {"--param w:train=0 --param w:decay=0", "--param 'w:decay=0': changes nothing: 'w' is"},
  };
  for (const Case& c : cases) expect_error(train + c.arguments, c.message);
  for (const std::string flags : {"--param w:train=0,init=ones --param w:train=1,lr=10",
                                  "--freeze w --param '*:train=1,lr=10'"}) {
    EXPECT_EQ(run(train + flags).code, 0) << flags;
  }
}

TEST_F(CommandLine, SaysWhatDoesNotTakePlaceInItsSteps) {
  const std::string train = "train line.fir --data synthetic-linear?n=50 --batch 10 --epochs 2 ";
  const Case cases[] = {
      {"--swa 11", "averages (--swa) start at update 11, but the training has 10\n"},
      {"--lookahead 11",
       "lookahead (--lookahead) first moves the slow weights at update 11, but the training has "
       "10\n"},
      {"--swa 4 --max-steps 3", "averages (--swa) start at update 4, but the training has 3\n"},
      {"--overfit 200 --max-steps 1", "--overfit 200: the data has 50 samples\n"},
  };
  for (const Case& c : cases) {
    const Result result = run(train + c.arguments);
    EXPECT_NE(result.output.find(c.message), std::string::npos) << result.output;
  }
  const Result fits = run(train + "--swa 10 --lookahead 10");
  EXPECT_EQ(fits.code, 0) << fits.output;
  EXPECT_EQ(fits.output.find("at update"), std::string::npos) << fits.output;
}

/// The number of steps, epochs times batches, is larger than 64 bits.
TEST_F(CommandLine, CountsStepsOfAnyNumberOfEpochs) {
  const Result result =
      run("train line.fir --data synthetic-linear?n=50 --batch 10 --epochs 9223372036854775807 "
          "--max-steps 2 --schedule cosine --log-json log --log-every 1");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto steps = logged(dir_.file("log"));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_NEAR(steps[1].at("lr").get<double>(), 0.005, 1e-6) << "half of the cosine";
}

TEST_F(CommandLine, TimesValidationIfThereIsAny) {
  const std::string train = "train line.fir --data synthetic-linear?n=50 ";
  EXPECT_EQ(run(train).output.find("with validation"), std::string::npos);
  EXPECT_NE(run(train + "--val synthetic-linear?n=50").output.find(" s with validation\n"),
            std::string::npos);
}

TEST_F(CommandLine, TimesPasses) {
  const Result timed = run("opt line.fir --pipeline train --time-passes -o step.fir");
  EXPECT_EQ(timed.code, 0);
  for (const char* row : {"pass ", "append_backward ", "fuse ", "total "}) {
    EXPECT_NE(("\n" + timed.output).find(std::string("\n") + row), std::string::npos) << row;
  }
}

TEST_F(CommandLine, IsRejectedForALossScaleThatCannotMove) {
  const std::string train = "train line.fir --data synthetic-linear --amp o1 --amp-dtype f16 ";
  const Case cases[] = {
      {"--loss-scale static", "--loss-scale: must be dynamic or a positive number, not static"},
      {"--loss-scale 0", "--loss-scale: must be dynamic or a positive number, not 0"},
      {"--loss-scale 1e39", "a loss scale of 1e+39 is outside the range of f32"},
      {"--loss-scale 8 --loss-scale-interval 5",
       "--loss-scale-interval: the loss scale 8 is constant"},
      {"--loss-scale-growth 0.5", "--loss-scale-growth: must be a number of at least 1, not 0.5"},
      {"--loss-scale-backoff 2", "--loss-scale-backoff: must be above 0 and at most 1, not 2"},
      {"--loss-scale-interval 0", "--loss-scale-interval: must be a positive integer, not 0"},
      {"--loss-scale-floor 0", "--loss-scale-floor: must be a positive number, not 0"},
      {"--loss-scale-init 0.5",
       "a loss scale from 0.5 in [1, 16777216], x 2 after 2000 good steps and x 0.5 after a bad "
       "one, needs 0 < floor <= initial <= ceiling within the range of f32"},
      {"--loss-scale-ceiling 1024", "a loss scale from 65536 in [1, 1024]"},
  };
  for (const Case& c : cases) expect_error(train + c.arguments, c.message);
}

TEST_F(CommandLine, IsRejectedForProcessesThatNobodyCanPlanFor) {
  std::ofstream(dir_.file("fixed.fir")) << "program @fixed {\n"
                                           "  %x = data \"x\" : f32[?, 2]\n"
                                           "  output \"x\" = %x\n"
                                           "}\n";
  const Case cases[] = {
      {"line.fir --world 0", "--world: must be a positive integer, not 0"},
      {"line.fir --world 99999999", "--world: Value 99999999 not in range 1 to 1048576"},
      {"line.fir --bandwidth 1", "--bandwidth: needs --world"},
      {"line.fir --world 2 --bandwidth 0", "--bandwidth: must be a positive number, not 0"},
      {"line.fir --world 2 --bandwidth inf", "--bandwidth: must be a positive number, not inf"},
      {"line.fir --world 2 --latency 5", "--latency: needs --bandwidth"},
      {"line.fir --world 2 --bandwidth 1 --latency -1",
       "--latency: must be a number of at least 0, not -1"},
      {"line.fir --world 2 --bandwidth 1 --target absent.json", "cannot read 'absent.json'"},
      {"line.fir --world 2 --pipeline eval", "--world: only the train pipeline has several ranks"},
      {"fixed.fir --world 2", "--world: program 'fixed' minimizes nothing"},
      {"line.fir --world 2 --bucket many", "'many' is not a size in bytes"},
      {"line.fir --world 2 --reduce-dtype f32", "--reduce-dtype is bf16 or f16, not 'f32'"},
  };
  for (const Case& c : cases) expect_error(std::string("plan ") + c.arguments, c.message);
  ASSERT_EQ(run("devices --json > t.json").code, 0);
  expect_error("plan line.fir --world 2 --bandwidth 1 --target t.json",
               "--bandwidth times the step on this machine: --target is invalid with it");
}

TEST_F(CommandLine, IsRejectedForNumbersOutOfRange) {
  const std::string train = "train line.fir --data synthetic-linear?n=50 ";
  const Case cases[] = {
      {"--batch 0.5", "--batch: must be a positive integer, not 0.5"},
      {"--batch -1", "--batch: must be a positive integer, not -1"},
      {"--batch 010", "--batch: must be a positive integer, not 010"},
      {"--batch 9223372036854775808", "must be a positive integer, not 9223372036854775808"},
      {"--epochs 99999999999999999999", "must be a positive integer, not 99999999999999999999"},
      {"--epochs 0", "--epochs: must be a positive integer"},
      {"--max-steps x", "--max-steps: must be a positive integer, not x"},
      {"--seed -1", "--seed: must be an integer of at least 0, not -1"},
      {"--seed 18446744073709551616", "--seed: must be an integer of at least 0"},
      {"--lr 0", "--lr: must be a positive number, not 0"},
      {"--lr nan", "--lr: must be a positive number, not nan"},
      {"--ema 1", "--ema: must be above 0 and below 1, not 1"},
      {"--workers 1025", "--workers: must be 1024 at most, not 1025"},
      {"--workers 0", "--workers: must be a positive integer, not 0"},
      {"--threads -1", "--threads: Value -1 not in range 0 to 4096"},
      {"--threads 99999999999", "--threads: Value 99999999999 not in range"},
      {"--memory 1e300GiB", "'1e300GiB' is not a size in bytes"},
  };
  for (const Case& c : cases) expect_error(train + c.arguments, c.message);
  expect_error("data synthetic-linear --workers 10000", "--workers: must be 1024 at most");
  expect_error("plan line.fir --batch 9223372036854775807",
               "a value f32[?, 2] with a batch of 9223372036854775807 is larger than any memory");
  expect_error("summary line.fir --batch 9223372036854775807",
               "a value f32[?, 2] with a batch of 9223372036854775807 is larger than any memory");
}

TEST_F(CommandLine, IsRejectedForOptimizers) {
  std::ofstream(dir_.file("bare.fir")) << "program @bare {\n"
                                          "  %x = data \"x\" : f32[?, 2]\n"
                                          "  %w = param \"w\" : f32[2]\n"
                                          "  %y = mul(%x, %w) : f32[?, 2]\n"
                                          "  %m = mean(%y) : f32[]\n"
                                          "  output \"y\" = %y\n"
                                          "  output \"m\" = %m\n"
                                          "}\n";
  const Case cases[] = {
      {"line.fir --optimizer adm", "--optimizer adm: there are adadelta, adagrad, adam, adamax"},
      {"line.fir --optimizer adm", "(did you mean 'adam'?)"},
      {"line.fir --optimizer nesterov", "(did you mean '--optimizer momentum --nesterov'?)"},
      {"line.fir --optimizer amsgrad", "(did you mean '--optimizer adam --amsgrad'?)"},
      {"line.fir --optimizer lion --nesterov",
       "--nesterov: no setting of lion, which has --lr, --beta1, --beta2, --weight-decay"},
      {"line.fir --rho 0.9", "--rho 0.9: no setting of sgd, which has --lr, --weight-decay"},
      {"line.fir --optimizer adam --beta1 1.5",
       "--beta1 1.5: adam: attribute 'beta1' must lie in [0.0, 1.0), not be 1.5"},
      {"line.fir --weight-decay -1",
       "--weight-decay -1: sgd: attribute 'weight_decay' must be a number of 0.0 or more, not "
       "-1.0"},
      {"line.fir --optimizer adam --eps tiny", "--eps: must be a number, not tiny"},
      {"line.fir --optimizer muon --ns-steps 2.5", "--ns-steps: must be an integer, not 2.5"},
      {"line.fir --optimizer muon --adjust-lr rms",
       "--adjust-lr rms: muon: attribute 'adjust_lr' must be one of original, match_rms_adamw, "
       "spectral_unclamped, not 'rms'"},
      {"line.fir --optimizer lion --no-nesterov", "--no-nesterov: no setting of lion"},
      {"line.fir --optimizer momentum --nesterov --dampening 0.5",
       "--nesterov: momentum: attribute 'nesterov' needs a 'momentum' above 0 and no 'dampening'"},
      {"line.fir --swa 0", "--swa: must be a positive integer, not 0"},
      {"line.fir --swa-every 2", "--swa-every requires --swa"},
      {"line.fir --swa 2 --ema 0.9", "--ema excludes --swa"},
      {"line.fir --lookahead-alpha 0.5", "--lookahead-alpha requires --lookahead"},
      {"line.fir --optimizer adam --minimize loss",
       "--minimize loss: program 'line' has a loss that it minimizes"},
      {"bare.fir --minimize m", "--minimize needs --optimizer"},
      {"bare.fir",
       "program 'bare' cannot be trained: it minimizes nothing; give --optimizer NAME and "
       "--minimize OUTPUT, such as its output 'm'"},
      {"bare.fir --optimizer adam",
       "--optimizer: program 'bare' has no output 'loss' to minimize; --minimize names one of its "
       "outputs: y, m"},
      {"bare.fir --optimizer adam --minimize z",
       "--minimize: program 'bare' has no output 'z' to minimize"},
      {"bare.fir --optimizer adam --minimize y",
       "--minimize y: the output is f32[?, 2], not a float scalar"},
  };
  for (const Case& c : cases) {
    expect_error(std::string("train --data synthetic-linear?n=50 ") + c.arguments, c.message);
  }
  for (const std::string flags :
       {"--optimizer adam --beta1 1.5", "--warmup -1", "--weight-decay -1"}) {
    const Result result = run("train line.fir --data synthetic-linear?n=50 " + flags);
    EXPECT_EQ(result.code, 1) << flags;
    EXPECT_EQ(result.output.find("line.fir:"), std::string::npos) << result.output;
  }
}

TEST_F(CommandLine, OfBenchAndPlanTakesAnOptimizer) {
  std::string text = kLine;
  text.erase(text.find("  train("), text.find("  output") - text.find("  train("));
  std::ofstream(dir_.file("bare.fir")) << text;
  const std::string bench = "bench bare.fir --data synthetic-linear?n=50 --batch 10 --steps 2 ";
  expect_error(bench, "program 'line' cannot be trained: --optimizer its output 'loss'");
  EXPECT_EQ(run(bench + "--optimizer adam --lr 0.1").code, 0);
  const auto state_bytes = [&](const std::string& arguments) {
    const Result result = run("plan " + arguments + " --json");
    EXPECT_EQ(result.code, 0) << result.output;
    const size_t at = result.output.find("\"state_bytes\": ");
    return std::stoll(result.output.substr(at + sizeof "\"state_bytes\": " - 1));
  };
  EXPECT_GT(state_bytes("line.fir --optimizer adam"), state_bytes("line.fir"));
  EXPECT_EQ(state_bytes("bare.fir --optimizer adam"), state_bytes("line.fir --optimizer adam"));
  expect_error("plan line.fir --nesterov", "--nesterov: no setting of sgd");
}

TEST_F(CommandLine, IsRejectedForSchedules) {
  const Case cases[] = {
      {"--schedule cosin", "--schedule cosin: there are constant, cosine, cosine_restarts"},
      {"--schedule cosin", "(did you mean 'cosine'?)"},
      {"--schedule restarts", "(did you mean 'cosine_restarts'?)"},
      {"--schedule step", "--schedule step needs --schedule-every"},
      {"--schedule noam --warmup 10", "--schedule noam needs --schedule-d-model"},
      {"--schedule step --schedule-every 5 --schedule-steps 9",
       "--schedule-steps 9: no setting of step, which has --schedule-every, --schedule-factor, "
       "--warmup, --warmup-start, --constant-warmup"},
      {"--schedule-steps 9", "--schedule-steps 9: no setting of constant, which has --warmup"},
      {"--schedule cosine --schedule-steps 9 --warmup 9",
       "--schedule cosine --schedule-steps 9 --warmup 9: cosine_schedule: attribute 'steps' must "
       "be above 'warmup', 9, not 9"},
      {"--warmup -1", "--warmup -1: constant_schedule: attribute 'warmup' must be 0 or more"},
      {"--warmup 5 --constant-warmup",
       "constant_schedule: attribute 'constant_warmup' needs a 'warmup_start' above 0"},
      {"--warmup many", "--warmup: must be an integer, not many"},
      {"--schedule multistep --schedule-milestones 5,x",
       "--schedule-milestones: must be integers with commas between them, not 5,x"},
      {"--schedule multistep --schedule-milestones 5,5",
       "multistep_schedule: attribute 'milestones' must rise from above 'warmup', 0, but 5 follows "
       "5"},
      {"--schedule piecewise --schedule-boundaries 5 --schedule-values 0.1,",
       "--schedule-values: must be numbers with commas between them, not 0.1,"},
      {"--schedule piecewise --schedule-boundaries 5 --schedule-values 0.1",
       "piecewise_schedule: needs 2 'values' for its 'boundaries', not 1"},
  };
  for (const Case& c : cases) {
    expect_error(std::string("train line.fir --data synthetic-linear?n=50 ") + c.arguments,
                 c.message);
  }
}

TEST_F(CommandLine, IsRejectedForNoBatchAndNoPlaceEverywhere) {
  const std::string data = " --data synthetic-linear?n=50";
  for (const std::string& command :
       {"train line.fir" + data, "eval line.fir" + data, "predict line.fir" + data,
        "bench line.fir" + data, std::string("plan line.fir"),
        std::string("opt line.fir --pass dce"), std::string("summary line.fir")}) {
    expect_error(command + " --batch 0",
                 "--batch: must be a positive integer, not 0; see fluidrun ");
    expect_error(command + " --unknown", "'--unknown' is not expected");
    if (command.starts_with("summary")) continue;
    expect_error(command + " --place cuda:x", "no place 'cuda:x'");
  }
  expect_error("run line.fir --input x=1x2xf32=1,2 --place gpu:0", "no place 'gpu:0'");
}

TEST_F(CommandLine, IsRejectedForWrongOptionFiles) {
  const auto expect_options_error = [&](const std::string& text, const std::string& message) {
    std::ofstream(dir_.file("run.toml")) << text;
    expect_error("train line.fir --data synthetic-linear?n=50 --config run.toml", message);
  };
  expect_options_error("[train]\nepoch = 3\n",
                       "--config: train.epoch is not expected (did you mean '--epochs'?)");
  expect_options_error("epoch = 3\n", "--config: epoch is not expected (did you mean '--epochs'?)");
  expect_options_error("[eval]\nbatchs = 3\n",
                       "--config: eval.batchs is not expected (did you mean '--batch'?)");
  expect_options_error("[trian]\nlr = 3\n",
                       "--config: no command for the section [trian] (did you mean 'train'?)");
  expect_options_error("[train]\nhelp = true\n", "not allowed in a configuration file");
  expect_options_error("[train]\nbatch = 0\n", "--batch: must be a positive integer, not 0");
  expect_options_error("[train\nepochs = 3\n", "--config: [train is not expected");
  expect_options_error(std::string("\x7f"
                                   "ELF\0\1\2",
                                   7),
                       "ELF");
  expect_error("verify line.fir --config absent.toml", "absent.toml was not readable");
}

TEST_F(CommandLine, TakesPrecedenceOverTheOptionFile) {
  std::ofstream(dir_.file("run.toml"))
      << "batch = 10\n[train]\nlr = 0.1\nepochs = 2\nsave = \"w.safetensors\"\n"
         "schedule = \"linear\"\nschedule-end = 0.1\nswa = 2\n"
         "checkpoint-dir = \"run\"\ncheckpoint-every = 2\n";
  const std::string train =
      "train line.fir --data synthetic-linear?n=50 --config run.toml --cache-dir '' ";
  const std::set<std::string> before = files();
  const Result found = run(train + "--find-lr");
  EXPECT_EQ(found.code, 0) << found.output;
  for (const std::string option : {"lr", "epochs", "save", "schedule", "schedule-end", "swa",
                                   "checkpoint-dir", "checkpoint-every"}) {
    EXPECT_TRUE(states(found.output, "--config: " + option + " is ignored: --find-lr excludes it"))
        << found.output;
  }
  EXPECT_EQ(found.output.find("--config: batch"), std::string::npos) << found.output;
  EXPECT_EQ(files(), before);
  const Result averaged = run(train + "--ema 0.9 --save w.safetensors");
  EXPECT_EQ(averaged.code, 0) << averaged.output;
  EXPECT_TRUE(states(averaged.output, "--config: swa is ignored: --ema excludes it"));
  std::ofstream(dir_.file("run.toml")) << "[train]\nswa-every = 2\nswa = 2\n"
                                          "checkpoint-dir = \"run\"\nresume = true\n"
                                          "checkpoint-every = 2\nkeep = 1\n";
  const Result alone = run(train + "--ema 0.9 --overfit 4 --max-steps 2");
  for (const std::string note :
       {"swa is ignored: --ema excludes it", "swa-every is ignored: it needs --swa",
        "checkpoint-dir is ignored: --overfit excludes it",
        "checkpoint-every is ignored: --overfit excludes it",
        "keep is ignored: --overfit excludes it", "resume is ignored: --overfit excludes it"}) {
    EXPECT_TRUE(states(alone.output, "--config: " + note)) << alone.output;
  }
  EXPECT_TRUE(states(alone.output, "after")) << "it has trained: " << alone.output;
  std::ofstream(dir_.file("run.toml")) << "[train]\nfind-lr = true\nlr = 0.1\n";
  expect_error(train, "--find-lr excludes --lr");
}

TEST_F(CommandLine, OfRunIsRejected) {
  const Case cases[] = {
      {"--input x=1x2xf32=1,2 --input x=1x2xf32=1,2", "--input x is given twice"},
      {"", "run needs --input: the program has a feed 'x'"},
      {"--input x=4294967296x4294967296xf32=1", "is larger than a 64-bit size"},
      {"--input x=-1x2xf32=1", "has a negative extent"},
      {"--input x=1x2xf32=", "f32[1, 2] takes 2 values, not 0"},
      {"--input x=1x2xf32=1e999,1", "1e999 does not fit f32"},
      {"--input =1", "--input =1: write NAME=..."},
      {"--input x=@absent.npy", "cannot read 'absent.npy': No such file or directory"},
      {"--input x=1x2xf32=1,2 --output line=o.npy", "write NAME=@FILE.npy"},
      {"--input x=1x2xf32=1,2 --output line=@a.npy --output lin=@b.npy", "no output 'lin'"},
      {"--input x=1x2xf32=1,2 --output line=@a.json",
       "cannot write 'a.json': outputs are written as .npy or .csv, not as .json"},
      {"--input x=1x2xf32=1,2 --expected line=@absent.npy", "cannot read 'absent.npy'"},
      {"--input x=1x2xf32=1,2 --tolerance -1", "--tolerance: Value -1 not in range"},
  };
  for (const Case& c : cases) expect_error(std::string("run line.fir ") + c.arguments, c.message);
}

}  // namespace
}  // namespace fluid::command_line_test
