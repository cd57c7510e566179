#include <gtest/gtest.h>

#include <regex>

#include "codegen/compiler.h"
#include "codegen/gpu.h"
#include "tests/support/kir_builder.h"
#include "tests/support/kir_samples.h"

namespace fluid::testing::assembly_test {
namespace {

bool calls_something(const std::string& assembly) {
  return std::regex_search(assembly,
                           std::regex(R"(\n\s*(call|callq|bl|jmp)\s+\*?[a-zA-Z_][\w.]*@?)"));
}

kir::Kernel vector_kernel(int64_t n, Expr value) {
  return one_block({input("x", f32, n), output("y", f32, n)},
                   {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(n),
                         {store(1, Expr::var(0), std::move(value))})});
}

#if defined(__x86_64__)
// The x86-64 level with registers of 512 bits.
const std::string kAvx512 = "x86-64-v4";

/// A hint per vector, for the line that its first lane names.
TEST(Assembly, PrefetchesIntoTheL2Cache) {
  const kir::Kernel kernel =
      one_block({input("x", f32, 1024), output("y", f32, 1024)},
                {loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(1024),
                      {prefetch(0, Expr::var(0) + Expr::index(256)),
                       store(1, Expr::var(0), load(0, f32, Expr::var(0)))})});
  EXPECT_TRUE(std::regex_search(emit_assembly(kernel, kAvx512), std::regex(R"(\n\s+prefetcht1\s)")))
      << emit_assembly(kernel, kAvx512);
}

TEST(Assembly, UsesWholeRegisters) {
  const Expr x = load(0, f32, Expr::var(0));
  for (ScalarOp op :
       {ScalarOp::exp, ScalarOp::exp2, ScalarOp::log, ScalarOp::log2, ScalarOp::tanh,
        ScalarOp::sinh, ScalarOp::cosh, ScalarOp::asin, ScalarOp::acos, ScalarOp::atan,
        ScalarOp::erf, ScalarOp::sigmoid, ScalarOp::expm1, ScalarOp::log1p, ScalarOp::sqrt}) {
    const std::string text = emit_assembly(vector_kernel(1024, scalar::unary(op, x)), kAvx512);
    EXPECT_NE(text.find("zmm"), std::string::npos) << text;
    EXPECT_FALSE(std::regex_search(text, std::regex(R"(v(add|sub|mul|div|sqrt|fn?m\w+)ss\s)")))
        << text;
  }
}

/// erf and its derivative compute exp(-x^2) once, and scale it by a power of 2 in one instruction.
TEST(Assembly, ErfSharesTheExponentialOfItsDerivative) {
  const Expr x = load(0, f32, Expr::var(0));
  const Expr erf = scalar::unary(ScalarOp::erf, x), slope = scalar::unary(ScalarOp::exp, -(x * x));
  const std::string text = emit_assembly(vector_kernel(1024, erf + slope), kAvx512);
  const std::regex scale(R"(\n\s+vscalefps\s)");
  EXPECT_EQ(
      std::distance(std::sregex_iterator(text.begin(), text.end(), scale), std::sregex_iterator()),
      1)
      << text;
}

TEST(Assembly, MultiplesOfTheWidthNeedNoMask) {
  const Expr twice = load(0, f32, Expr::var(0)) * 2.0;
  EXPECT_EQ(emit_assembly(vector_kernel(1024, twice), kAvx512).find("%k"), std::string::npos);
  EXPECT_NE(emit_assembly(vector_kernel(1023, twice), kAvx512).find("%k"), std::string::npos);
}

TEST(Assembly, GuardsOnTheLaneAreConstants) {
  const Expr i = Expr::var(0);
  const Expr inside = scalar::compare(ScalarOp::ge, i - Expr::index(2), Expr::index(0));
  const kir::Kernel kernel = vector_kernel(16, load(0, f32, i - Expr::index(2), inside));
  for (const std::string& cpu : {kAvx512, std::string("x86-64-v3")}) {
    const std::string text = emit_llvm(kernel, cpu);
    EXPECT_EQ(text.find("icmp sge"), std::string::npos) << text;
    EXPECT_NE(text.find("x i1> <i1 false, i1 false, i1 true"), std::string::npos) << text;
  }
}
#endif

TEST(Assembly, ErrorWordsAreStoredWhole) {
  const Expr x = load(0, i64, Expr::var(0));
  kir::Kernel kernel = vector_kernel(1024, x);
  kernel.buffers = {input("x", i64, 1024), {"error", i64, 1, kir::Buffer::Role::error}};
  kernel.body = {
      loop(kir::For::Kind::vector, 0, Expr::index(0), Expr::index(1024),
           {store(1, Expr::index(0), x, scalar::compare(ScalarOp::lt, x, Expr::index(0)))})};
  const std::string text = emit_llvm(kernel);
  EXPECT_NE(text.find("store atomic i64"), std::string::npos) << text;
  EXPECT_EQ(text.find("scatter"), std::string::npos) << text;
  // Defined for lanes that are all good, too: LLVM may compute it before it looks.
  EXPECT_NE(text.find("vector.reduce.smax"), std::string::npos) << text;
  for (const char* partial : {"ctlz", "cttz", "extractelement"}) {
    EXPECT_EQ(text.find(partial), std::string::npos) << text;
  }
  EXPECT_NE(compile_ptx({&kernel, 1}, "sm_90").ptx.find("st.relaxed.sys.global.b64"),
            std::string::npos);
}

TEST(Assembly, NothingIsCalled) {
  for (const kir::Kernel& kernel : every_scalar_kernels()) {
    const std::string text = emit_assembly(kernel);
    EXPECT_FALSE(calls_something(text.substr(0, text.find(".Lfunc_end0")))) << text;
  }
}

TEST(Assembly, LlvmContractsNothing) {
  const Expr x = load(0, f32, Expr::var(0));
  const kir::Kernel apart = vector_kernel(64, x * x + x);
  const kir::Kernel fused = vector_kernel(64, Expr::make(ScalarOp::fma, f32, {x, x, x}));
  const std::string text = emit_llvm(apart);
  for (const char* flag :
       {"contract", "fmuladd", "nnan", "ninf", "afn", "reassoc", "nsz", "arcp", " fast "}) {
    EXPECT_EQ(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_NE(emit_llvm(fused).find("fmuladd"), std::string::npos);
  // Without a rounding in its name ptxas may contract an instruction itself.
  const std::string ptx = compile_ptx({&apart, 1}, "sm_90").ptx;
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("add.rn.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("fma"), std::string::npos) << ptx;
  EXPECT_NE(compile_ptx({&fused, 1}, "sm_90").ptx.find("fma.rn.f32"), std::string::npos);
}

}  // namespace
}  // namespace fluid::testing::assembly_test
