#include "ir/serialize.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "program_generated.h"
#include "tests/ir/random_program.h"
#include "tests/support/errors.h"

namespace fluid::ir::serialize_test {
namespace {

int version_2(std::string_view op) { return op == "missing" ? 0 : 2; }

std::string bytes_of(const fbs::ProgramT& file) {
  flatbuffers::FlatBufferBuilder builder;
  fbs::FinishProgramBuffer(builder, fbs::Program::Pack(builder, &file));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

/// A small file of valid tables, that `spoil` changes before it is written.
std::string spoilt(const std::function<void(fbs::ProgramT&)>& spoil) {
  const auto program = parse(
      "program @p { %x = a {f = 1.0, t = f32[]} : f32[?]  %y = b(%x) : f32[2] output \"o\" = %y "
      "graph @g { } }",
      "t.fir");
  const std::string bytes = serialize(*program, version_2);
  const std::unique_ptr<fbs::ProgramT> file(fbs::GetProgram(bytes.data())->UnPack());
  spoil(*file);
  return bytes_of(*file);
}

void expect_rejection(const std::function<void(fbs::ProgramT&)>& spoil,
                      const std::string& message) {
  const std::string bytes = spoilt(spoil);
  expect_user_error([&] { deserialize(bytes, "p.fluid", version_2); }, "p.fluid: " + message);
}

fbs::OpT& op(fbs::ProgramT& file, size_t i) { return *file.graphs[0]->ops[i]; }

TEST(Serialize, ReadsBackWhatItWrote) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const auto program = random_program(seed, *rc::gen::inRange(0, 25));
    const std::string bytes = serialize(*program, version_2);
    const auto back = deserialize(bytes, "p.fluid", version_2);
    RC_ASSERT(print(*back) == print(*program));
    RC_ASSERT(serialize(*back, version_2) == bytes);
  }));
}

TEST(Serialize, OnlyProgramsWithALengthNeedTheLatestFormat) {
  const auto bytes = [](const std::string& type) {
    return serialize(*parse("program @p { %x = a : " + type + " }", "t.fir"), version_2);
  };
  EXPECT_EQ(fbs::GetProgram(bytes("f32[?, 4]").data())->format(), kOldestFileFormat);
  EXPECT_EQ(fbs::GetProgram(bytes("f32[?, 4L]").data())->format(), kFileFormat);
  const auto back = deserialize(bytes("f32[?, 4L]"), "p.fluid", version_2);
  EXPECT_EQ(back->main().ops[0]->results[0].type.str(), "f32[?, 4L]");
}

/// The byte of the length power was padding in format 2.
TEST(Deserialize, FilesOfTheOldestFormatHaveNoLength) {
  const auto type_in = [](uint32_t format) {
    const std::string bytes = spoilt([&](auto& f) {
      f.format = format;
      op(f, 0).results[0]->type->dims = {fbs::Dim(5, false, 1)};
    });
    return deserialize(bytes, "p.fluid", version_2)->main().ops[0]->results[0].type.str();
  };
  EXPECT_EQ(type_in(kOldestFileFormat), "f32[5]");
  EXPECT_EQ(type_in(kFileFormat), "f32[5L]");
}

TEST(Serialize, KeepsLargeProgramsLinear) {
  const auto program = random_program(7, 5000);
  const std::string bytes = serialize(*program, version_2);
  EXPECT_EQ(print(*deserialize(bytes, "p.fluid", version_2)), print(*program));
}

TEST(Serialize, KeepsNoDirectoryOfTheMachine) {
  Program p("p");
  p.main().append("a", {}, {}, {}, Loc{"/secret/dir/net.cpp", 3});
  const std::string bytes = serialize(p, version_2);
  EXPECT_EQ(bytes.find("secret"), std::string::npos);
  EXPECT_EQ(deserialize(bytes, "p.fluid", version_2)->main().ops[0]->loc, (Loc{"net.cpp", 3}));
}

TEST(Serialize, RejectsToSaveAnOpThatDoesNotExist) {
  Program p("p");
  p.main().append("missing", {}, {}, {});
  expect_user_error([&] { serialize(p, version_2); },
                    "cannot save the program: there is no op 'missing'");
}

TEST(Sealed, NoticesEveryTruncationAndEveryBitFlip) {
  const std::string bytes = serialize(*random_program(3, 10), version_2);
  const std::string file = append_checksum(bytes);
  EXPECT_EQ(strip_checksum(file, "p.fluid"), bytes);
  const auto expect_error = [](const std::string& damaged) {
    EXPECT_THROW(strip_checksum(damaged, "p.fluid"), UserError);
  };
  for (size_t size = 0; size < file.size(); ++size) expect_error(file.substr(0, size));
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    expect_error(flipped);
  }
}

TEST(Deserialize, RejectsOtherFiles) {
  for (const std::string bytes : {"", "FLPG", "program @p {}", "\x10\0\0\0FLPX\0\0\0\0"}) {
    expect_user_error([&] { deserialize(bytes, "p.fluid", version_2); },
                      "p.fluid: not a .fluid file");
  }
}

TEST(Deserialize, RejectsEveryTruncation) {
  const std::string bytes = spoilt([](fbs::ProgramT&) {});
  deserialize(bytes, "p.fluid", version_2);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    try {
      verify(*deserialize(part, "p.fluid", version_2));
      // The last bytes may be padding that nothing refers to.
      EXPECT_GT(size + 8, bytes.size());
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()).find("p.fluid: "), 0u) << e.what();
    }
  }
  expect_user_error([&] { deserialize(bytes.substr(0, bytes.size() / 2), "p.fluid", version_2); },
                    "p.fluid: the file is damaged: its structure is broken");
}

TEST(Deserialize, RejectsFilesThatAreTooLarge) {
  std::string bytes = spoilt([](fbs::ProgramT&) {});
  bytes.resize((size_t{64} << 20) + 1);
  expect_user_error([&] { deserialize(bytes, "p.fluid", version_2); },
                    "p.fluid: too large for a program: over 64 MiB");
}

TEST(Deserialize, NamesOtherVersions) {
  expect_rejection([](auto& f) { f.format = 9; },
                   "written in format 9 by a newer Fluid; this one reads formats 2 to 3");
  expect_rejection(
      [](auto& f) { f.format = 1; },
      "written in format 1 by an older Fluid; this one reads formats 2 to 3: build the program "
      "again from its source");
  expect_rejection([](auto& f) { f.kinds[1]->version = 7; },
                   "op 'b' has version 7, written by a newer Fluid; this one knows version 2");
  expect_rejection([](auto& f) { f.kinds[1]->version = 0; },
                   "the file is damaged: op 'b' has no version");
  expect_rejection([](auto& f) { f.kinds[1]->name = "missing"; }, "unknown op 'missing'");
  expect_rejection([](auto& f) { f.kinds[1]->name = "a\nb"; },
                   "the file is damaged: \"a\\nb\" cannot name an op");
}

TEST(Deserialize, ReadsOlderVersionsOfAnOp) {
  const std::string bytes = spoilt([](auto& f) { f.kinds[1]->version = 1; });
  EXPECT_EQ(deserialize(bytes, "p.fluid", version_2)->main().ops.size(), 2u);
}

TEST(Deserialize, RejectsDanglingReferences) {
  expect_rejection([](auto& f) { op(f, 0).kind = 2; },
                   "the file is damaged: op 0 of graph @main has no name");
  expect_rejection([](auto& f) { op(f, 1).file = 5; },
                   "the file is damaged: op 1 of graph @main has no such source file");
  expect_rejection([](auto& f) { op(f, 1).operands[0] = fbs::Operand(1, 0); },
                   "the file is damaged: op 1 of graph @main reads a later op's result");
  expect_rejection([](auto& f) { op(f, 1).operands[0] = fbs::Operand(0, 1); },
                   "the file is damaged: op 1 of graph @main reads a result that does not exist");
  for (const fbs::Operand bad : {fbs::Operand(9, 0), fbs::Operand(0, 9)}) {
    expect_rejection([&](auto& f) { *f.graphs[0]->outputs[0]->value = bad; },
                     "the file is damaged: an output of graph @main is not there");
  }
}

TEST(Deserialize, RejectsNumbersOutOfRange) {
  expect_rejection([](auto& f) { op(f, 1).role = static_cast<fbs::Role>(5); },
                   "the file is damaged: op 1 of graph @main has no such role");
  expect_rejection([](auto& f) { op(f, 1).id = -1; },
                   "the file is damaged: op 1 of graph @main has an id out of range");
  expect_rejection([](auto& f) { op(f, 0).results[0]->type->dtype = static_cast<fbs::DType>(9); },
                   "the file is damaged: there is no such dtype");
  expect_rejection([](auto& f) { op(f, 0).attrs[0]->kind = static_cast<fbs::AttrKind>(9); },
                   "the file is damaged: there is no such kind of attribute");
}

TEST(Deserialize, RejectsAttributesWithoutValue) {
  expect_rejection([](auto& f) { op(f, 0).attrs[0]->reals.clear(); },
                   "the file is damaged: an attribute has no value");
  expect_rejection([](auto& f) { op(f, 0).attrs[1]->type.reset(); },
                   "the file is damaged: an attribute has no value");
  expect_rejection([](auto& f) { op(f, 0).attrs[1]->name = "f"; },
                   "the file is damaged: op 0 of graph @main has attribute \"f\" twice");
  expect_rejection(
      [](auto& f) {
        for (int i = 0; i < 257; ++i) {
          op(f, 0).attrs.push_back(std::make_unique<fbs::AttrT>(*op(f, 0).attrs[0]));
          op(f, 0).attrs.back()->name = "a" + std::to_string(i);
        }
      },
      "the file is damaged: op 0 of graph @main has too many attributes");
}

TEST(Deserialize, RejectsBadNamesAndGraphs) {
  const std::string long_name(256, 'a');
  expect_rejection([&](auto& f) { f.kinds[0]->name = long_name; },
                   "the file is damaged: an op has too long a name");
  expect_rejection([&](auto& f) { op(f, 0).attrs[0]->name = long_name; },
                   "the file is damaged: an attribute has too long a name");
  expect_rejection([&](auto& f) { f.files.push_back(long_name); },
                   "the file is damaged: a source file has too long a name");
  expect_rejection([](auto& f) { f.graphs.clear(); }, "the file is damaged: it has 0 graphs");
  expect_rejection([](auto& f) { f.graphs[0]->name = "start"; },
                   "the file is damaged: its first graph is not main");
  expect_rejection([](auto& f) { f.graphs[1]->name = "main"; },
                   "the file is damaged: two graphs are named @main");
}

TEST(Deserialize, RejectsPartsThatOverlap) {
  // 200 attributes that all refer to one list of 40000 integers.
  flatbuffers::FlatBufferBuilder builder;
  const auto list = builder.CreateVector(std::vector<int64_t>(40000));
  std::vector<flatbuffers::Offset<fbs::Attr>> attrs;
  for (int i = 0; i < 200; ++i) {
    const auto name = builder.CreateString("a" + std::to_string(i));
    attrs.push_back(fbs::CreateAttr(builder, name, fbs::AttrKind::integers, list));
  }
  const auto op = fbs::CreateOp(builder, 0, 0, 0, builder.CreateVector(attrs));
  const auto ops = builder.CreateVector(std::vector{op});
  const auto main = fbs::CreateGraph(builder, builder.CreateString("main"), ops);
  const auto kind = fbs::CreateOpKind(builder, builder.CreateString("a"), 1);
  const auto root = fbs::CreateProgram(
      builder, kFileFormat, builder.CreateString("p"), builder.CreateVector(std::vector{kind}),
      builder.CreateVectorOfStrings({""}), builder.CreateVector(std::vector{main}));
  fbs::FinishProgramBuffer(builder, root);
  const std::string bytes(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                          builder.GetSize());
  expect_user_error([&] { deserialize(bytes, "p.fluid", version_2); },
                    "p.fluid: the file is damaged: its parts overlap");
}

}  // namespace
}  // namespace fluid::ir::serialize_test
