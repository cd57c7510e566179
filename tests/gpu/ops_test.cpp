// Every op's samples by the kernels made for GPUs, in every dtype, against the references.

#include "ir/error.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/op_harness.h"

namespace fluid::testing::ops_test {
namespace {

constexpr size_t kGroups = 16;

/// In groups, as a GPU that has failed computes nothing more for this process.
class GpuOps : public GpuTest, public ::testing::WithParamInterface<size_t> {
 protected:
  /// Checks every 16th op; a tenth of these on the stand-in, because test_ops interprets the same
  /// kernels.
  static void expect_none(Faults (*faults_of)(const OpTest& test, Processor processor)) {
    const size_t stride = kGroups * scaled<size_t>(1, 10);
    for (size_t i = GetParam(); i < op_tests().size(); i += stride) {
      const OpTest& test = op_tests()[i];
      try {
        for (const std::string& fault : faults_of(test, Processor::gpu)) {
          ADD_FAILURE() << test.op << ": " << fault;
        }
      } catch (const DeviceError& error) {
        FAIL() << test.op << ": " << error.what();
      }
    }
  }
};

TEST_P(GpuOps, KernelsAgree) { expect_none(check_kernels); }
TEST_P(GpuOps, IntegerKernelsAgree) { expect_none(check_integer_kernels); }

INSTANTIATE_TEST_SUITE_P(Group, GpuOps, ::testing::Range(size_t{0}, kGroups));

}  // namespace
}  // namespace fluid::testing::ops_test
