// The machine that runs PTX stops where a GPU would, or would do anything.

#include "tests/support/ptx_machine.h"

#include <gtest/gtest.h>

#include <array>

#include "ir/error.h"
#include "tests/support/errors.h"

namespace fluid::testing::ptx_machine_test {
namespace {

/// A kernel of 32 threads with an address; %rd2 is that of the thread's own word, %r1 its number.
std::string kernel(const std::string& body) {
  return ".version 8.1\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(\n.param .u64 .ptr .align 16 k_param_0\n)\n.reqntid 32\n{\n"
         ".reg .b64 %rd<9>;\n"
         "ld.param.b64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd2, %rd1, %rd3;\n" +
         body + "ret;\n}\n";
}

/// Runs one group on a word a thread, each 7, after which there is no memory.
std::array<uint32_t, 32> run(const std::string& body) {
  alignas(16) std::array<uint32_t, 32> words;
  words.fill(7);
  const auto* begin = reinterpret_cast<const std::byte*>(words.data());
  const PtxBlock block{begin, begin + sizeof words};
  const uint64_t address = reinterpret_cast<uint64_t>(words.data());
  const auto find = [&](const void* at) {
    return block.begin <= at && at < block.end ? block : PtxBlock();
  };
  PtxMachine(kernel(body)).run("k", 1, 32, {&address, 1}, find, {.must_be_given = true});
  return words;
}

std::string failure(const std::string& body) {
  return error_of<InternalError>([&] { run(body); });
}

TEST(PtxMachine, RunsThreads) {
  EXPECT_EQ(run("st.global.b32 [%rd2], %r1;\n")[31], 31U);
  const auto sums =
      run("ld.global.b32 %r2, [%rd2];\nshfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\n"
          "add.s32 %r4, %r2, %r3;\nst.global.b32 [%rd2], %r4;\n");
  EXPECT_EQ(sums[0], 8U);
  EXPECT_EQ(sums[1], 7U);
}

TEST(PtxMachine, MultipliesIntoTwiceTheWidth) {
  const auto product = [](const std::string& type, const std::string& a, const std::string& b) {
    const bool narrow = type.ends_with("16");
    return run("mul.wide." + type + (narrow ? " %r2, " : " %rd4, ") + a + ", " + b + ";\n" +
               (narrow ? "" : "shr.u64 %rd5, %rd4, 32;\ncvt.u32.u64 %r2, %rd5;\n") +
               "st.global.b32 [%rd2], %r2;\n")[0];
  };
  EXPECT_EQ(product("u16", "-1", "2"), 0x1fffeU);
  EXPECT_EQ(product("s16", "-1", "2"), 0xfffffffeU);
  EXPECT_EQ(product("s16", "-32768", "-32768"), 0x40000000U);
  EXPECT_EQ(product("u32", "-1", "2"), 1U) << "the upper half";
  EXPECT_EQ(product("s32", "-1", "2"), 0xffffffffU) << "the upper half";
}

TEST(PtxMachine, TakesAPredicateByItsLowestBit) {
  EXPECT_EQ(run("mov.pred %p1, -1;\nselp.b32 %r2, 3, 4, %p1;\nst.global.b32 [%rd2], %r2;\n")[0],
            3U);
  EXPECT_EQ(run("mov.pred %p1, 0;\nselp.b32 %r2, 3, 4, %p1;\nst.global.b32 [%rd2], %r2;\n")[0], 4U);
}

/// Compares (-1, 2) with (1, 2), as packed f16 and as 16-bit integers.
TEST(PtxMachine, ComputesPairs) {
  const auto compared = [](const std::string& order) {
    return run("mov.b32 %r2, 0x4000bc00;\nmov.b32 %r3, 0x40003c00;\nsetp." + order +
               ".f16x2 %p1|%p2, %r2, %r3;\nselp.b32 %r4, 1, 0, %p1;\nselp.b32 %r5, 2, 0, %p2;\n"
               "or.b32 %r6, %r4, %r5;\nst.global.b32 [%rd2], %r6;\n")[0];
  };
  EXPECT_EQ(compared("lt"), 1U);
  EXPECT_EQ(compared("ge"), 2U);
  EXPECT_EQ(compared("leu"), 3U);
  const auto combined = [](const std::string& what) {
    return run("mov.b32 %r2, 0x0002ffff;\nmov.b32 %r3, 0x00010002;\n" + what +
               " %r4, %r2, %r3;\nst.global.b32 [%rd2], %r4;\n")[0];
  };
  EXPECT_EQ(combined("add.s16x2"), 0x00030001U);
  EXPECT_EQ(combined("max.s16x2"), 0x00020002U);
  EXPECT_EQ(combined("max.u16x2"), 0x0002ffffU);
}

TEST(PtxMachine, ExtractsFieldsWithTheirSign) {
  const auto field = [](int at, int length) {
    return run("mov.b64 %rd4, 0x7f80;\nbfe.s64 %rd5, %rd4, " + std::to_string(at) + ", " +
               std::to_string(length) +
               ";\ncvt.u32.u64 %r2, %rd5;\nst.global.b32 [%rd2], %r2;\n")[0];
  };
  EXPECT_EQ(field(7, 8), 0xffffffffU);
  EXPECT_EQ(field(7, 9), 255U);
  EXPECT_EQ(field(7, 0), 0U);
  EXPECT_EQ(field(0, 64), 0x7f80U);
}

TEST(PtxMachine, KnowsWhatOfAVectorBehindTheEndIsJunk) {
  const auto words = run(
      "setp.ne.s32 %p1, %r1, 0;\n@%p1 bra $end;\n"
      "ld.global.v2.b32 {%r2, %r3}, [%rd1+120];\nst.global.v2.b32 [%rd1], {%r2, %r3};\n$end:\n");
  EXPECT_EQ(words[1], 7U);
  EXPECT_NE(failure("ld.global.b32 %r2, [%rd2+4];\n").find("memory that is not the GPU's"),
            std::string::npos);
  EXPECT_NE(failure("st.global.v4.b32 [%rd1+112], {%r1, %r1, %r1, %r1};\n"
                    "st.global.b64 [%rd1+128], %rd1;\n")
                .find("memory that is not the GPU's"),
            std::string::npos);
}

TEST(PtxMachine, StopsAtAccessesThatAreNotAligned) {
  EXPECT_NE(failure("ld.global.v2.b32 {%r2, %r3}, [%rd2];\n").find("not at a multiple"),
            std::string::npos);
}

TEST(PtxMachine, StopsWhereThreadsWaitForOthersThatDoNotCome) {
  const std::string some = "setp.ne.s32 %p1, %r1, 3;\n@%p1 bra $end;\n";
  for (const std::string wait :
       {"bar.sync 0;\n", "bar.warp.sync -1;\n", "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\n"}) {
    EXPECT_NE(failure(some + wait + "$end:\n").find("wait for others that do not come"),
              std::string::npos)
        << wait;
  }
}

TEST(PtxMachine, StopsWhereTheOrderOfThreadsMatters) {
  const std::string own = "st.global.b32 [%rd2], %r1;\n";
  const std::string neighbour = "xor.b64 %rd4, %rd2, 4;\nld.global.b32 %r2, [%rd4];\n";
  const std::string adds = "ld.global.b32 %r2, [%rd1];\nadd.s32 %r2, %r2, %r1;\n";
  EXPECT_NE(failure(own + neighbour).find("thread 1 of group 0 writes what to read thread 0"),
            std::string::npos);
  EXPECT_NE(failure(neighbour + own).find("thread 1 of group 0 reads what to write thread 0"),
            std::string::npos);
  EXPECT_NE(failure("st.global.b32 [%rd1], %r1;\n").find("writes what to write thread 0"),
            std::string::npos);
  EXPECT_NE(failure(adds + "st.global.b32 [%rd1], %r2;\n").find("may do at the same time"),
            std::string::npos);
  EXPECT_NE(failure(own + "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\n" + neighbour)
                .find("may do at the same time"),
            std::string::npos);
  EXPECT_EQ(run("st.global.b32 [%rd1], 3;\n")[0], 3U);
  EXPECT_EQ(run("st.relaxed.sys.global.b32 [%rd1], %r1;\n")[0], 31U);
  for (const std::string wait : {"bar.sync 0;\n", "bar.warp.sync -1;\n"}) {
    EXPECT_EQ(run(own + wait + neighbour + wait + "st.global.b32 [%rd2], %r2;\n")[0], 1U) << wait;
  }
}

TEST(PtxMachine, NamesWhatItDoesNotKnow) {
  EXPECT_NE(failure("ex2.approx.f32 %r2, %r1;\n").find("'ex2.approx.f32 %r2, %r1'"),
            std::string::npos);
}

}  // namespace
}  // namespace fluid::testing::ptx_machine_test
