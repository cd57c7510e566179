// The harness itself: it must miss no op, and find each thing that is broken on purpose.

#include <gtest/gtest.h>

#include <set>

#include "tests/support/broken_ops.h"

namespace fluid::testing {
namespace {

TEST(Harness, FindsWhatIsBroken) {
  for (const OpTest& test : op_tests()) {
    for (const Break kind :
         {Break::gradient, Break::forward, Break::infer, Break::cost, Break::in_place}) {
      const std::optional<OpDef> def = broken(test, kind);
      if (!def) continue;
      EXPECT_FALSE(check_for(kind, test, *def).empty())
          << test.op << ": a broken " << name_of(kind) << " is not found";
    }
  }
}

}  // namespace
}  // namespace fluid::testing
