#include "proto/sequence_text.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

TEST(SequenceText, IsWhatASpecHas) {
  EXPECT_EQ(sequence_text(SequenceNumber{0}), "#0");
  EXPECT_EQ(sequence_text(SequenceNumber{1'234'567}), "#1234567");
}

}  // namespace
}  // namespace mariner
