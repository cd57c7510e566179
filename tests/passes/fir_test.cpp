// Every tests/passes/*.fir file is a case. Its comments say what happens:
//   // RUN: infer_types, cse        the passes, in order; `pipeline` stands for all
//   // OPTIONS: mode=eval batch=4   Options that differ from the default; target=library, adding,
//                                   packing, integers, repeating
//   // ERROR: text                  the passes must throw a UserError that contains it
//   // CHECK...: text               for FileCheck, on the program that comes out

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "tests/support/plain_target.h"
#include "tests/support/temp_dir.h"

namespace fluid::fir_test {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(FLUID_SOURCE_DIR) / "tests/passes";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".fir") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the text after "// KEY:" on its line; empty if there is none.
std::string comment(const std::string& text, const std::string& key) {
  const std::string mark = "// " + key + ":";
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(' ', at + mark.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::vector<std::string> words(std::string line) {
  std::ranges::replace(line, ',', ' ');
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

Mode mode_named(const std::string& name) {
  static const std::map<std::string, Mode> modes = {{"train", Mode::train},
                                                    {"eval", Mode::eval},
                                                    {"predict", Mode::predict},
                                                    {"init", Mode::init}};
  return modes.at(name);
}

MicroBatchKind slice_named(const std::string& name) {
  static const std::map<std::string, MicroBatchKind> slices = {{"first", MicroBatchKind::first},
                                                               {"middle", MicroBatchKind::middle},
                                                               {"last", MicroBatchKind::last},
                                                               {"empty", MicroBatchKind::empty}};
  return slices.at(name);
}

struct Setting {
  Options options;
  std::string target = "plain";
};

Setting setting_of(const std::string& text) {
  Setting s;
  for (const std::string& word : words(comment(text, "OPTIONS"))) {
    const std::string key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
    if (key == "mode") s.options.mode = mode_named(value);
    if (key == "recipe") s.options.recipe = value;
    if (key == "batch") s.options.batch = std::stoll(value);
    if (key == "length") s.options.sequence_length = std::stoll(value);
    if (key == "amp") s.options.amp = {.dtype = parse_dtype(value).value()};
    if (key == "slice") s.options.micro_batch = slice_named(value);
    if (key == "world") s.options.world = std::stoll(value);
    if (key == "rank") s.options.rank = std::stoll(value);
    if (key == "zero") s.options.shard_optimizer = value == "1";
    if (key == "bucket")
      s.options.buckets = {.first_bytes = std::stoll(value), .bytes = std::stoll(value)};
    if (key == "reduce") s.options.buckets.dtype = parse_dtype(value);
    if (key == "sync_bn") s.options.sync_bn = value == "yes";
    if (key == "weighted") s.options.scale_partial_loss = value == "yes";
    if (key == "loss_scale") s.options.amp->loss_scale.initial = std::stod(value);
    if (key == "level" && value == "o2") s.options.amp->level = AmpLevel::o2;
    if (key == "in_f32") s.options.amp->in_f32.push_back(value);
    if (key == "in_half") s.options.amp->in_half.push_back(value);
    if (key == "dtype") s.options.dtype = parse_dtype(value);
    if (key == "feed") s.options.feeds.insert(value);
    if (key == "check_finite") s.options.check_finite = value == "yes";
    if (key == "fuse") s.options.fuse = value == "yes";
    if (key == "target") s.target = value;
  }
  return s;
}

std::vector<Pass> passes_of(const std::string& text, const Options& options) {
  std::vector<Pass> passes;
  for (const std::string& name : words(comment(text, "RUN"))) {
    if (name == "pipeline") return pipeline(options);
    const auto pass = std::ranges::find(all_passes(), name, &Pass::name);
    if (pass == all_passes().end()) throw InternalError("no pass '" + name + "'");
    passes.push_back(*pass);
  }
  return passes;
}

std::string transform(const std::string& text, const std::string& name) {
  const auto program = ir::parse(text, name + ".fir");
  const Setting s = setting_of(text);
  const PlainTarget plain;
  const LibraryTarget library;
  const AddingTarget adding;
  const PackingTarget packing;
  const IntegerTarget integers;
  const RepeatingTarget repeating;
  const std::map<std::string, const Target*> targets = {
      {"plain", &plain},     {"library", &library},   {"adding", &adding},
      {"packing", &packing}, {"integers", &integers}, {"repeating", &repeating}};
  const Target& target = *targets.at(s.target);
  const std::vector<Pass> passes = passes_of(text, s.options);
  run_passes(*program, passes, s.options, target);
  if (!passes.empty() && passes.back().name == "plan_memory") {
    verify_plan(memory_plan(*program, s.options), *program, s.options);
  }
  return ir::print(*program);
}

class Fir : public ::testing::TestWithParam<std::string> {};

TEST_P(Fir, Check) {
  const fs::path file = kFolder / (GetParam() + ".fir");
  const std::string text = read_text(file), error = comment(text, "ERROR");
  if (!error.empty()) {
    try {
      transform(text, GetParam());
      FAIL() << "no error";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(error), std::string::npos) << e.what();
    }
    return;
  }
  const TempDir dir;
  const fs::path out = fs::path(dir.path()) / "out.fir";
  const std::string result = transform(text, GetParam());
  std::ofstream(out) << result;
  const std::string command = std::string(FLUID_LLVM_TOOLS) +
                              "/FileCheck --input-file=" + out.string() + " " + file.string();
  EXPECT_EQ(std::system(command.c_str()), 0) << result;
}

INSTANTIATE_TEST_SUITE_P(Files, Fir, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fluid::fir_test
