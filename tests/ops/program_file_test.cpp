#include "ops/program_file.h"

#include <gtest/gtest.h>

#include "ir/atomic_file.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::program_file_test {
namespace {

constexpr const char* kNet = R"(program @net {
  %x = data "x" : f32[?, 4]
  %w = param "w" : f32[4, 3]
  %y = matmul(%x, %w) : f32[?, 3]  @ "net.cpp:9"
  output "y" = %y
}
)";

void expect_rejection(const std::string& contents, const std::string& message) {
  expect_user_error([&] { read_program(contents, "p.fir"); }, "p.fir" + message);
}

TEST(ProgramFile, BothFormatsKeepTheProgram) {
  TempDir dir;
  const auto program = read_program(kNet, "net.fir");
  for (const char* name : {"net.fir", "net.fluid"}) {
    save_program(*program, dir.file(name));
    EXPECT_EQ(ir::print(*load_program(dir.file(name))), ir::print(*program)) << name;
  }
  EXPECT_EQ(read_file(dir.file("net.fir")), ir::print(*program));
  EXPECT_EQ(read_file(dir.file("net.fluid")).substr(4, 4), "FLPG");
  EXPECT_EQ(read_file(dir.file("net.fir")).find("net.fir"), std::string::npos)
      << "lines of the file are for messages alone";
}

TEST(ProgramFile, NoticesAFlippedBit) {
  TempDir dir;
  const std::string path = dir.file("net.fluid");
  save_program(*read_program(kNet, "net.fir"), path);
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  write_plain(path, bytes);
  expect_user_error([&] { load_program(path); },
                    "net.fluid: the file is damaged or cut off: its checksum is wrong");
}

TEST(ProgramFile, FillsInDefaults) {
  const auto program = read_program(kNet, "net.fir");
  const ir::Op& matmul = *program->main().ops[2];
  EXPECT_FALSE(matmul.attrs.empty());
}

/// The stream becomes part of the program's text, and so of its hash in checkpoints.
TEST(ProgramFile, GivesRandomOpsStreams) {
  const auto program = read_program(R"(program @net {
  %x = data "x" : f32[?, 4]
  %rng = state "rng" : i64[3]
  %a = dropout(%x, %rng) : f32[?, 4]  [#7]
  %b = dropout(%a, %rng) {stream = 3} : f32[?, 4]
  output "b" = %b
}
)",
                                    "net.fir");
  EXPECT_EQ(program->main().ops[2]->attrs.get<int64_t>("stream"), 7);
  EXPECT_EQ(program->main().ops[3]->attrs.get<int64_t>("stream"), 3);
}

TEST(ProgramFile, GivesRandomOpsDifferentStreams) {
  const auto program = read_program(R"(program @net {
  %x = data "x" : f32[?, 4]
  %rng = state "rng" : i64[3]
  %a = dropout(%x, %rng) : f32[?, 4]  [#7]
  %b = dropout(%a, %rng) {stream = 7} : f32[?, 4]  [#5]
  %c = dropout(%b, %rng) : f32[?, 4]  [#8]
  %d = dropout(%c, %rng) : f32[?, 4]  [#9]
  %e = dropout(%d, %rng) {stream = 9} : f32[?, 4]  [#10]
  output "e" = %e
}
)",
                                    "net.fir");
  std::vector<int64_t> streams;
  for (size_t i = 2; i < 7; ++i) {
    streams.push_back(program->main().ops[i]->attrs.get<int64_t>("stream"));
  }
  EXPECT_EQ(streams, (std::vector<int64_t>{10, 7, 8, 11, 9}));
}

TEST(ProgramFile, RejectsWhatIsNoProgram) {
  expect_rejection("", ": the file is empty");
  expect_rejection(std::string("\x1f\x8b\0\0", 4), ": neither a .fluid file nor a program's text");
  TempDir dir;
  expect_user_error([&] { load_program(dir.file("absent.fir")); }, "absent.fir");
}

TEST(ProgramFile, RejectsProgramsThatMeanNothing) {
  expect_rejection("program @p { %x = dat \"x\" : f32[] }",
                   ":1: no op 'dat' (did you mean 'data'?)");
  expect_rejection("program @p { a {body = @g} }", ":1: a: there is no graph @g");
  std::string wrong = kNet;
  wrong.replace(wrong.find("f32[?, 3]"), 9, "f32[?, 5]");
  expect_rejection(wrong, ": net.cpp:9: matmul: results are given as (f32[?, 5])");
}

TEST(ProgramFile, RejectsSourcesThatAreNone) {
  expect_rejection("program @p { %x = data : f32[] }", ":1: data: has no name");
  expect_rejection("program @p { %x = data \"x\" : f32[]  %y = relu \"y\"(%x) : f32[] }",
                   ":1: relu: cannot have the name 'y'");
  expect_rejection("program @p { %w = param \"w\" : f32[?] }",
                   ":1: param: the shape of a variable, [?], cannot depend on the batch");
  expect_rejection("program @p { %x, %y = data \"x\" : f32[], f32[] }",
                   ":1: data: has 2 results instead of one");
}

TEST(ProgramFile, RejectsSettingsThatNobodyReads) {
  const auto source = [](const std::string& op) {
    return "program @p {\n  // a comment\n  %x = " + op + " : f32[2, 2]\n}\n";
  };
  expect_rejection(source("data \"x\" {scal = 0.5}"),
                   ":3: data: no attribute 'scal' (did you mean 'scale'?)");
  expect_rejection(source("data \"x\" {scale = inf}"),
                   ":3: data: attribute 'scale' must be finite");
  expect_rejection(source("data \"x\" {mean = [0.5, nan]}"),
                   ":3: data: attribute 'mean' must be finite");
  expect_rejection(source("data \"x\" {std = [0.0]}"),
                   ":3: data: attribute 'std' must be positive and finite");
  expect_rejection(source("data \"x\" {std = 0.5}"),
                   ":3: data: attribute 'std' must be of kind list of floats, not float");
  EXPECT_NO_THROW(read_program(source("data \"x\" {mean = [1, 2], std = [0.5]}"), "p.fir"));
  expect_rejection(source("param \"x\" {init = \"normal\", stdd = 5.0}"),
                   ":3: initialiser 'normal' of 'x' has no setting 'stdd' (did you mean 'std'?)");
  expect_rejection(source("param \"x\" {inti = \"normal\"}"),
                   ":3: initialiser 'zeros' of 'x' has no setting 'inti' (did you mean 'init'?)");
  expect_rejection(source("param \"x\" {init = \"normal\", std = -1}"),
                   ":3: normal: attribute 'std' must not be negative");
  expect_rejection(source("state \"x\" {init = \"kaiming_unifrom\"}"),
                   ":3: 'x' asks for an unknown initialiser 'kaiming_unifrom'");
  EXPECT_NO_THROW(read_program(source("param \"x\" {trainable = false}"), "p.fir"));
}

TEST(ProgramFile, RejectsFusedOpsThatDoNotFitTheirBody) {
  const auto program_of = [](const std::string& call, const std::string& argument) {
    return "program @p {\n  %x = data \"x\" : f32[2]\n  graph @g {\n    " + argument +
           "\n    %b = relu(%a) : f32[2]\n    output \"b\" = %b\n  }\n  " + call + "\n}\n";
  };
  const std::string argument = "%a = arg {index = 0} : f32[2]";
  EXPECT_NO_THROW(
      read_program(program_of("%y = fused(%x) {body = @g} : f32[2]", argument), "p.fir"));
  expect_rejection(program_of("%y = fused(%x) {body = @g} : f32[3]", argument),
                   ":8: fused: results are given as (f32[3]) but its body makes (f32[2])");
  expect_rejection(program_of("%y = fused() {body = @g} : f32[2]", argument),
                   ":8: fused: its body reads operand 0 of 0");
  expect_rejection(
      program_of("%y = fused(%x) {body = @g} : f32[2]", "%a = arg {index = 0} : f64[2]"),
      ":8: fused: its body takes operand 0 as f64[2], which is f32[2]");
  expect_rejection(program_of("%y = fused(%x) {body = @g} : f32[2]", "%a = data \"a\" : f32[2]"),
                   ":8: fused: its body holds data");
  expect_rejection(R"(program @p {
  %x = data "x" : f32[2]
  %y = fused(%x) {body = @g} : f32[2]
  output "y" = %y
  graph @g {
    %a = arg {index = 0} : f32[2]
    %b = fused(%a) {body = @h} : f32[2]
    output "b" = %b
  }
  graph @h {
    %c = arg {index = 0} : f32[2]
    output "c" = %c
  }
})",
                   ":3: fused: its body holds a fused op");
}

/// A scan over three elements, as text. Each argument replaces a part of it.
struct ScanText {
  std::string attrs = "carries = 1, sequences = 1, steps = 3";
  std::string results = "f32[2], f32[3, 2]";
  std::string sequence = "f32[3, 2]";
  std::string carry = "%a = arg {index = 0} : f32[2]";
  std::string next = "%c = add(%a, %b) : f32[2]";
  std::string outputs = "output \"0\" = %c output \"1\" = %c";

  std::string str() const {
    const std::string names = results.find("],") == std::string::npos ? "%y" : "%y, %z";
    return "program @p {\n  %h = data \"h\" : f32[2]\n  %x = data \"x\" : " + sequence + "\n  " +
           names + " = scan(%h, %x) {body = @g, " + attrs + "} : " + results +
           "\n  graph @g {\n    " + carry + "\n    %b = arg {index = 1} : f32[2]\n    " + next +
           "\n    " + outputs + "\n  }\n}\n";
  }
};

TEST(ProgramFile, RejectsScansThatDoNotFitTheirBody) {
  const std::string scan = ":4: scan: ";
  EXPECT_NO_THROW(read_program(ScanText{}.str(), "p.fir"));
  EXPECT_NO_THROW(read_program(
      ScanText{.attrs = "carries = 1, sequences = 1, steps = 3, reverse = true"}.str(), "p.fir"));
  expect_rejection(ScanText{.attrs = "carries = 1, sequences = 1, steps = 0"}.str(),
                   scan + "takes 1 to 1000000 steps, not 0");
  expect_rejection(ScanText{.carry = "%a = arg {index = 1} : f32[2]"}.str(),
                   scan + "two arguments of its body stand for operand 1");
  expect_rejection(ScanText{.attrs = "carries = 2, sequences = 1, steps = 3"}.str(),
                   scan + "2 carries and 1 sequences are not the first of 2 operands");
  expect_rejection(ScanText{.attrs = "carries = -1, sequences = 1, steps = 3"}.str(),
                   scan + "-1 carries and 1 sequences are not the first of 2 operands");
  expect_rejection(
      ScanText{.attrs = "carries = 1, sequences = 1, steps = 4"}.str(),
      scan + "sequence 0 is f32[3, 2]: its first dimension is not the number of steps, 4");
  expect_rejection(
      ScanText{.attrs = "carries = 1, sequences = 0, steps = 3", .sequence = "f32[]"}.str(),
      scan + "its body takes operand 1 as f32[2], which is f32[]");
  expect_rejection(ScanText{.sequence = "f32[]"}.str(), scan + "sequence 0 is f32[]: its first");
  expect_rejection(ScanText{.carry = "%a = arg {index = 2} : f32[2]"}.str(),
                   scan + "its body reads operand 2 of 2");
  expect_rejection(ScanText{.carry = "%a = arg {index = -1} : f32[2]"}.str(),
                   scan + "its body reads operand -1 of 2");
  expect_rejection(ScanText{.sequence = "f32[3, 4]"}.str(),
                   scan + "its body takes operand 1 as f32[2], which is f32[4]");
  expect_rejection(ScanText{.attrs = "carries = 2, sequences = 0, steps = 3"}.str(),
                   scan + "its body takes operand 1 as f32[2], which is f32[3, 2]");
  expect_rejection(ScanText{.results = "f32[2]", .outputs = ""}.str(),
                   scan + "its body computes 0 values for 1 carries");
  expect_rejection(ScanText{.next = "%c = concat(%a, %b) {axis = 0} : f32[4]"}.str(),
                   scan + "carry 0 begins as f32[2], but a step makes it f32[4]");
  expect_rejection(ScanText{.results = "f32[2], f32[4, 2]"}.str(),
                   scan + "results are given as (f32[2], f32[4, 2])");
  expect_rejection(ScanText{.results = "f32[2]"}.str(),
                   scan + "results are given as (f32[2]) but its body makes (f32[2], f32[3, 2])");
}

TEST(ProgramFile, RejectsScansWhoseBodyHasSideEffects) {
  const std::string holds = ":4: scan: its body holds ";
  for (const std::string op : {"data", "param", "state"}) {
    expect_rejection(ScanText{.next = "%c = " + op + " \"d\" : f32[2]"}.str(),
                     holds + op + " of p.fir:8, which has side effects or is an input");
  }
  expect_rejection(ScanText{.next = "%c = add(%a, %b) : f32[2] store \"v\"(%c)"}.str(),
                   holds + "store of p.fir:8, which has side effects");
  expect_rejection(
      ScanText{.next = "%r = state \"rng\" : i64[3] %c = dropout(%a, %r) : f32[2]"}.str(),
      holds + "state of p.fir:8, which has side effects");
}

TEST(ProgramFile, RejectsToSaveABrokenProgram) {
  TempDir dir;
  const auto program = ir::parse("program @p { %x = dat \"x\" : f32[] }", "p.fir");
  expect_user_error([&] { save_program(*program, dir.file("p.fluid")); }, "no op 'dat'");
  expect_user_error([&] { read_file(dir.file("p.fluid")); }, "p.fluid");
}

TEST(ProgramFile, RejectsOperandsThatDoNotAddUp) {
  expect_rejection(R"(program @p {
  %x = data "x" : f32[]
  train(%x, %x) {optimizer = "sgd", lr = 0.1}
})",
                   ":3: train: needs a seed, and one gradient for each of its parameters");
  expect_rejection(R"(program @p {
  %x = data "x" : f32[]
  train(%x) {optimizer = "sgd", lr = 0.1, cuts = [0, 1]}
})",
                   ":3: train: needs cuts and a bucket for each of its parameters, or for none");
  expect_rejection(R"(program @p {
  %x = data "x" : f32[]
  train(%x) {optimizer = "sgd", lr = 0.1, waits = [0]}
})",
                   ":3: train: needs waits for each of its parameters, or none");
  expect_rejection(R"(program @p {
  %x = data "x" : f32[]
  train(%x) {optimizer = "sgd", lr = 0.1, schedule_steps = 3}
})",
                   ":3: train: has settings of a schedule, but no attribute 'schedule'");
  expect_rejection(R"(program @p {
  %x = data "x" : u8[5000000000000000000]
  %y = concat(%x, %x) {axis = 0} : u8[10]
  output "y" = %y
})",
                   ":3: concat: the joined extents overflow a 64-bit integer");
}

}  // namespace
}  // namespace fluid::program_file_test
