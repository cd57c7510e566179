// `fluidrun train` in several processes: as one process trains, or none where one of them dies.

#include "tests/support/parallel_test.h"

#include <csignal>
#include <random>
#include <regex>

#include "tests/support/full_run.h"

namespace fluid::parallel_test {
namespace {

using Parallel = ParallelTest;

TEST_F(Parallel, TrainsAsOneProcess) {
  const std::string flags = "--epochs 5 --dtype f64 --val synthetic-linear?limit=37 ";
  const Result one = run(train(flags + "--batch 12 --log-json one.json"));
  ASSERT_EQ(one.code, 0) << one.output;
  for (const int ranks : {2, 3}) {
    const std::string log = std::to_string(ranks) + ".json";
    const Result several =
        run(launch(ranks, flags + "--batch " + std::to_string(12 / ranks) + " --log-json " + log));
    ASSERT_EQ(several.code, 0) << several.output;
    EXPECT_EQ(losses(log).size(), 45U);
    expect_losses(log, "one.json");
    // The epoch and the losses of the last line of the table, without its times.
    const auto figures = [](const std::string& text) {
      constexpr size_t kBeforeTimes = 26;
      return text.substr(text.rfind("5/5"), kBeforeTimes);
    };
    EXPECT_EQ(figures(several.output), figures(one.output));
  }
}

TEST_F(Parallel, TakesTheMemoryThatIsPlanned) {
  const auto number_after = [](const std::string& said, const std::string& before) {
    const size_t at = said.find(before, said.find("arena"));
    return at == std::string::npos ? "none"
                                   : std::to_string(std::stoll(said.substr(at + before.size())));
  };
  for (const std::string slices : {"", " --micro-batches 3"}) {
    // As many samples in every step, so that no smaller one has a plan of its own.
    const Result trained =
        run("launch --nproc 2 -- train line.fir --batch 32 --cache-dir cache "
            "--data synthetic-linear?limit=64" +
            slices);
    ASSERT_EQ(trained.code, 0) << trained.output;
    const std::string plan = run("plan line.fir --json --batch 32 --world 2" + slices).output;
    EXPECT_NE(number_after(plan, "_bytes\": "), "none") << plan;
    EXPECT_EQ(number_after(trained.output, " ("), number_after(plan, "_bytes\": "))
        << trained.output << plan;
  }
}

TEST_F(Parallel, RanksTakeThePrecisionThatRankZeroChooses) {
  const Result result = run(launch(3, "--batch 4 --amp auto"));
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("\n--amp auto selects "), std::string::npos) << result.output;
}

TEST_F(Parallel, TheRankWhoseSamplesOverflowSaysSo) {
  std::ofstream csv(dir_.file("rows.csv"));
  csv << "a,b,y\n";
  for (int row = 0; row < 12; ++row) csv << (row == 9 ? "3e38,1,1\n" : "1,2,3\n");
  csv.close();
  const std::string flags =
      " --nproc 2 --log-dir logs -- train line.fir --data 'csv:rows.csv?label=y&shuffle=0' "
      "--batch 2 --check-finite --cache-dir cache ";
  const Result half = run("launch" + flags + "--amp o1 --amp-dtype f16");
  EXPECT_EQ(half.code, 0) << half.output;
  EXPECT_NE(half.output.find("\nstep 3 skipped: rank 0: "), std::string::npos) << half.output;
  EXPECT_EQ(half.output.find("skipped: ", half.output.find("skipped: ") + 1), std::string::npos)
      << "said once: " << half.output;
  const Result full = run("launch" + flags);
  EXPECT_EQ(full.code, 1) << full.output;
  EXPECT_NE(full.output.find("'loss' is inf (rank 0: square: element 1 of its result "),
            std::string::npos)
      << full.output;
}

TEST_F(Parallel, GradientsTravelInAHalfDtypeOnly) {
  expect_error(train("--reduce-dtype f32"), "--reduce-dtype is bf16 or f16, not 'f32'");
  EXPECT_EQ(run(launch(2, "--reduce-dtype bf16 --bucket 1KiB --first-bucket 64")).code, 0);
}

TEST_F(Parallel, ADyingRankNeverLeavesATornCheckpointOrARunThatHangs) {
  std::mt19937 random(7);
  const int count = testing::is_full_run() ? 50 : 3;
  // A rank sends itself a signal at some moment: it dies, stands still, or is only delayed and dies
  // later. EARLY: not after the first step, but after the start.
  std::ofstream(dir_.file("mortal"))
      << "mortally() {\n"
         "  for i in $(seq 400); do { [ -n \"$EARLY\" ] || [ -s $LOG ]; } && break; sleep 0.05; "
         "done\n"
         "  sleep $DELAY\n"
         "  if [ $SIGNAL = DELAY ]; then\n"
         "    kill -STOP $$; sleep 0.7; kill -CONT $$; sleep 0.5; SIGNAL=KILL\n"
         "  fi\n"
         "  date +%s.%N > fallen; kill -$SIGNAL $$\n"
         "}\n"
         "if [ $RANK = $VICTIM ]; then mortally & fi\n"
         "exec "
      << kFluidrun << " "
      << train(
             "--batch 5 --epochs 100000 --checkpoint-dir ck --checkpoint-every 20 --resume "
             "--comm-timeout 2 --log-json $LOG")
      << "\n";
  for (int i = 0; i < count; ++i) {
    const std::string signal = std::array{"KILL", "STOP", "DELAY"}[static_cast<size_t>(i % 3)];
    const std::string victim = std::to_string((i + 1) % 2);
    const double delay = static_cast<double>(random() % 1000) / 1000;
    const std::string environment = "LOG=log" + std::to_string(i) +
                                    " DELAY=" + std::to_string(delay) + " SIGNAL=" + signal +
                                    " VICTIM=" + victim + " EARLY=" + (i % 6 == 0 ? "1" : "") + " ";
    SCOPED_TRACE(environment);
    const Result result = run("launch --nproc 2 -- env " + environment + "sh mortal");
    const double over = std::stod(run_command("date +%s.%N").output);
    double fallen = 0;
    std::ifstream(dir_.file("fallen")) >> fallen;
    EXPECT_NE(result.code, 0) << result.output;
    // No rank gives up on a rank that is late by less than the timeout.
    const std::string said = signal == "STOP" ? "" : " was killed by signal 9";
    EXPECT_NE(result.output.find("rank " + victim + said), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("passed over"), std::string::npos) << result.output;
    const bool after_a_step = i % 6 != 0;
    if (after_a_step) {
      EXPECT_TRUE(std::regex_search(result.output, std::regex("fluidrun: after step [0-9]+: ")))
          << result.output;
    }
    // 2 s until one that stands still is late, 3 s for the others to end; a loaded machine.
    EXPECT_LT(over - fallen, signal == "STOP" ? 10 : 8) << result.output;
  }
  const Result last = run(launch(2, "--batch 5 --checkpoint-dir ck --resume --max-steps 1"));
  EXPECT_EQ(last.code, 0) << last.output;
  EXPECT_EQ(last.output.find("passed over"), std::string::npos) << last.output;
  EXPECT_NE(last.output.find("going on from"), std::string::npos) << last.output;
}

}  // namespace
}  // namespace fluid::parallel_test
