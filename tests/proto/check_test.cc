#include "proto/check.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

TEST(Check, TrueEvaluatesOnceAndGoesOn) {
  int evaluated = 0;
  CHECK(++evaluated == 1);
  CHECK_MSG(++evaluated == 2, "counted");
  EXPECT_EQ(evaluated, 2);
}

TEST(CheckDeath, FalseNamesPlaceExpressionAndMessage) {
  EXPECT_DEATH(CHECK(1 + 1 == 3), "check_test.cc:[0-9]+: 1 \\+ 1 == 3");
  EXPECT_DEATH(CHECK_MSG(false, "the reason"), "the reason");
}

}  // namespace
}  // namespace mariner
