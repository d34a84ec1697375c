#include "server/iscsi/data_out.h"

#include <gtest/gtest.h>

namespace mariner::iscsi {
namespace {

class DataOutTest : public testing::Test {
 protected:
  DataOutTest() {
    parameters.initial_r2t = false;
    parameters.burst_bytes_max = 4096;
    parameters.first_burst_bytes_max = 2048;
  }
  Result<void> begin(std::uint32_t expected, std::uint32_t immediate, bool final) {
    return begin_wanting(expected, expected, immediate, final);
  }
  Result<void> begin_wanting(std::uint32_t wanted, std::uint32_t expected, std::uint32_t immediate,
                             bool final) {
    return data.begin({.final = final, .write = true, .expected_bytes = expected}, immediate,
                      wanted, parameters);
  }
  Result<void> solicited(std::uint32_t data_sn, std::uint32_t offset, std::uint32_t bytes,
                         bool final) {
    return accept({.final = final, .ttt = 1, .data_sn = data_sn, .offset = offset}, bytes, true);
  }
  Result<void> unsolicited(std::uint32_t data_sn, std::uint32_t offset, std::uint32_t bytes,
                           bool final) {
    return accept({.final = final, .data_sn = data_sn, .offset = offset}, bytes, false);
  }
  Result<void> accept(const DataOut& pdu, std::uint32_t bytes, bool solicited, bool good = true) {
    const auto use = data.check(pdu, bytes, solicited);
    if (!use) return use.error();
    data.arrived(pdu, bytes, solicited, good);
    return {};
  }
  void damaged(std::uint32_t data_sn, std::uint32_t offset, std::uint32_t bytes, bool final) {
    ASSERT_TRUE(accept({.final = final, .ttt = 1, .data_sn = data_sn, .offset = offset}, bytes,
                       true, false));
  }

  SessionParameters parameters;
  DataOutTransfer data;
};

TEST_F(DataOutTest, NothingWantedIsCompleteAtOnce) {
  ASSERT_TRUE(begin(0, 0, true));
  EXPECT_TRUE(data.complete());
  EXPECT_FALSE(data.next_request(1));
}

TEST_F(DataOutTest, ImmediateThenUnsolicitedThenBursts) {
  ASSERT_TRUE(begin(10240, 512, false));
  EXPECT_FALSE(data.next_request(4)) << "while unsolicited data comes";
  ASSERT_TRUE(unsolicited(0, 512, 512, false));
  ASSERT_TRUE(unsolicited(1, 1024, 1024, true));
  const auto first = data.next_request(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->offset, 2048u);
  EXPECT_EQ(first->bytes, 4096u);
  EXPECT_EQ(first->r2t_sn, 0u);
  EXPECT_FALSE(data.next_request(1)) << "one outstanding";
  const auto second = data.next_request(2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->offset, 6144u);
  EXPECT_EQ(second->bytes, 4096u);
  EXPECT_FALSE(data.next_request(4)) << "all is asked for";
  ASSERT_TRUE(solicited(0, 2048, 2048, false));
  ASSERT_TRUE(solicited(1, 4096, 2048, true));
  EXPECT_EQ(data.current_request(), 1u);
  EXPECT_FALSE(data.complete());
  ASSERT_TRUE(solicited(0, 6144, 4096, true));
  EXPECT_TRUE(data.complete());
  EXPECT_FALSE(data.failed());
}

TEST_F(DataOutTest, WhatTheCommandCannotUseIsNotSolicited) {
  ASSERT_TRUE(begin_wanting(512, 4096, 0, true));
  const auto request = data.next_request(1);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->bytes, 512u);
}

TEST_F(DataOutTest, MoreImmediateDataThanWantedIsTaken) {
  ASSERT_TRUE(begin_wanting(512, 1024, 1024, true));
  EXPECT_TRUE(data.complete());
}

TEST_F(DataOutTest, LimitsOfTheFirstBurst) {
  EXPECT_FALSE(begin(10240, 2049, true)) << "FirstBurstLength";
  EXPECT_FALSE(begin(512, 513, true)) << "expected length";
  ASSERT_TRUE(begin(10240, 2048, false));
  EXPECT_FALSE(unsolicited(0, 2048, 4, true));
}

TEST_F(DataOutTest, WhatWasNotAgreed) {
  parameters.immediate_data = false;
  EXPECT_FALSE(begin(512, 512, true));
  parameters.initial_r2t = true;
  EXPECT_FALSE(begin(512, 0, false));
  EXPECT_FALSE(data.begin({.final = true, .read = true, .expected_bytes = 512}, 4, 0, parameters))
      << "immediate data of a read";
}

TEST_F(DataOutTest, DataThatNobodyAskedFor) {
  ASSERT_TRUE(begin(4096, 0, true));
  EXPECT_FALSE(unsolicited(0, 0, 512, true));
  EXPECT_FALSE(solicited(0, 0, 512, true)) << "no R2T yet";
}

TEST_F(DataOutTest, MoreThanTheBurst) {
  ASSERT_TRUE(begin(8192, 0, true));
  ASSERT_TRUE(data.next_request(1));
  EXPECT_FALSE(solicited(0, 0, 4100, true));
}

TEST_F(DataOutTest, ABurstMustSayThatItEnds) {
  ASSERT_TRUE(begin(4096, 0, true));
  ASSERT_TRUE(data.next_request(1));
  EXPECT_FALSE(solicited(0, 0, 4096, false));
}

TEST_F(DataOutTest, OutOfSequenceFailsOnceAllHasCome) {
  for (const auto& [data_sn, offset] : {std::pair(1u, 0u), std::pair(0u, 512u)}) {
    ASSERT_TRUE(begin(8192, 0, true));
    ASSERT_TRUE(data.next_request(2));
    ASSERT_TRUE(data.next_request(2));
    ASSERT_TRUE(solicited(data_sn, offset, 512, false));
    EXPECT_TRUE(data.failed());
    EXPECT_FALSE(data.complete());
    ASSERT_TRUE(solicited(9, 0, 512, true));
    EXPECT_FALSE(data.complete()) << "the other burst is under way";
    ASSERT_TRUE(solicited(0, 4096, 4096, true));
    EXPECT_TRUE(data.complete());
  }
}

TEST_F(DataOutTest, AShortBurstFails) {
  ASSERT_TRUE(begin(8192, 0, true));
  ASSERT_TRUE(data.next_request(1));
  ASSERT_TRUE(solicited(0, 0, 512, true));
  EXPECT_TRUE(data.failed());
  EXPECT_TRUE(data.complete());
  EXPECT_FALSE(data.next_request(1));
}

// Error recovery level 1.
class DataOutRecoveryTest : public DataOutTest {
 protected:
  DataOutRecoveryTest() { parameters.error_recovery_level = 1; }
};

TEST_F(DataOutRecoveryTest, TheRestOfASequenceIsAskedForAgain) {
  ASSERT_TRUE(begin(8192, 0, true));
  const auto first = data.next_request(1);
  ASSERT_TRUE(first);
  ASSERT_TRUE(solicited(0, 0, 1024, false));
  damaged(1, 1024, 1024, false);
  const auto use = data.check({.ttt = 1, .data_sn = 2, .offset = 2048}, 1024, true);
  EXPECT_EQ(*use, DataOutTransfer::Use::kDrop) << "it is asked for with the damaged part";
  ASSERT_TRUE(solicited(2, 2048, 1024, false));
  EXPECT_FALSE(data.next_request(1)) << "the sequence has not ended";
  ASSERT_TRUE(solicited(3, 3072, 1024, true));
  const auto again = data.next_request(1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->r2t_sn, 1u);
  EXPECT_EQ(again->offset, 1024u);
  EXPECT_EQ(again->bytes, 4096u);
  ASSERT_TRUE(solicited(0, 1024, 4096, true)) << "DataSN starts again";
  const auto rest = data.next_request(1);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->offset, 5120u);
  ASSERT_TRUE(solicited(0, 5120, 3072, true));
  EXPECT_TRUE(data.complete());
  EXPECT_FALSE(data.failed());
}

TEST_F(DataOutRecoveryTest, DamagedUnsolicitedDataIsSolicited) {
  ASSERT_TRUE(begin(2048, 512, false));
  ASSERT_TRUE(accept({.final = false, .data_sn = 0, .offset = 512}, 512, false, false));
  ASSERT_TRUE(unsolicited(1, 1024, 1024, true));
  EXPECT_FALSE(data.complete());
  const auto request = data.next_request(1);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->offset, 512u);
  EXPECT_EQ(request->bytes, 1536u);
  EXPECT_EQ(data.repeat_request()->offset, 512u);
  ASSERT_TRUE(solicited(0, 512, 1536, true));
  EXPECT_TRUE(data.complete());
  EXPECT_FALSE(data.repeat_request());
}

TEST_F(DataOutRecoveryTest, ALastPduThatIsDamagedEndsItsSequence) {
  ASSERT_TRUE(begin(1024, 0, true));
  ASSERT_TRUE(data.next_request(1));
  damaged(0, 0, 1024, true);
  const auto again = data.next_request(1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes, 1024u);
}

TEST_F(DataOutRecoveryTest, WhoDamagesEverythingComesToAnEnd) {
  ASSERT_TRUE(begin(1024, 0, true));
  int requests = 0;
  while (const auto request = data.next_request(1)) {
    ASSERT_LT(++requests, 100);
    damaged(0, 0, 1024, true);
  }
  EXPECT_TRUE(data.failed());
  EXPECT_TRUE(data.complete());
}

}  // namespace
}  // namespace mariner::iscsi
