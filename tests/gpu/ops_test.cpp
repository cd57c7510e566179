// Every op's samples by the kernels made for GPUs, in every dtype, against the references.

#include "tests/gpu/gpu_test.h"
#include "tests/support/op_harness.h"

namespace fluid::testing {
namespace {

class GpuOps : public GpuTest {
 protected:
  /// Of all ops; for the stand-in of every tenth, as test_ops interprets the same kernels.
  static void expect_none(Faults (*faults_of)(const OpTest& test, Processor processor)) {
    const size_t stride = scaled<size_t>(1, 10);
    for (size_t i = 0; i < op_tests().size(); i += stride) {
      for (const std::string& fault : faults_of(op_tests()[i], Processor::gpu)) {
        ADD_FAILURE() << op_tests()[i].op << ": " << fault;
      }
    }
  }
};

TEST_F(GpuOps, KernelsAgree) { expect_none(check_kernels); }
TEST_F(GpuOps, IntegerKernelsAgree) { expect_none(check_integer_kernels); }

}  // namespace
}  // namespace fluid::testing
