#include "server/scsi/reply.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

std::string told(ErrorCode code, Access access) {
  const Error error{code, "test"};
  return testing::outcome_of(layer_failure(error, access, 9, SenseFormat::kFixed)).verdict();
}

TEST(LayerFailure, FullLogIsAFailedSpaceAllocation) {
  EXPECT_EQ(told(ErrorCode::kNoSpace, Access::kWrite), "7/27/07");
}
TEST(LayerFailure, ReadOnlyIsWriteProtected) {
  EXPECT_EQ(told(ErrorCode::kReadOnly, Access::kWrite), "7/27/00");
}
TEST(LayerFailure, DamageIsAnUnrecoveredReadErrorAtItsLba) {
  EXPECT_EQ(told(ErrorCode::kCorrupt, Access::kRead), "3/11/00i9");
}
TEST(LayerFailure, AFailedReadIsAnUnrecoveredReadError) {
  EXPECT_EQ(told(ErrorCode::kIo, Access::kRead), "3/11/00i9");
}
TEST(LayerFailure, AFailedWriteIsAWriteError) {
  EXPECT_EQ(told(ErrorCode::kIo, Access::kWrite), "3/0C/00i9");
}
TEST(LayerFailure, UnavailableIsBecomingReady) {
  EXPECT_EQ(told(ErrorCode::kUnavailable, Access::kRead), "2/04/01");
}
TEST(LayerFailure, AFencedCoordinatorIsBecomingReady) {
  EXPECT_EQ(told(ErrorCode::kStaleEpoch, Access::kWrite), "2/04/01");
}
TEST(LayerFailure, BusyAndLimitAreStatusBusyWithoutSense) {
  EXPECT_EQ(told(ErrorCode::kBusy, Access::kRead), "busy");
  EXPECT_EQ(told(ErrorCode::kLimit, Access::kWrite), "busy");
}
TEST(LayerFailure, AbortedIsAbortedCommand) {
  EXPECT_EQ(told(ErrorCode::kAborted, Access::kWrite), "B/00/00");
}
TEST(LayerFailure, AnythingElseIsAnInternalFailure) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kAlreadyExists,
        ErrorCode::kOutsideWindow, ErrorCode::kProtocol, ErrorCode::kMiscompare}) {
    EXPECT_EQ(told(code, Access::kRead), "4/44/00");
  }
}

TEST(ParameterData, IsCutToTheAllocationLength) {
  const auto data = testing::bytes("01 02 03");
  EXPECT_EQ(testing::outcome_of(parameter_data(data, 2)).hex_data(), "01 02");
  EXPECT_EQ(testing::outcome_of(parameter_data(data, 4)).hex_data(), "01 02 03");
  EXPECT_TRUE(parameter_data(data, 0).data_in.empty());
}

}  // namespace
}  // namespace mariner::scsi
