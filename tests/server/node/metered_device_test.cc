#include "server/node/metered_device.h"

#include <gtest/gtest.h>

#include "server/scsi/sense.h"
#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using web::ScsiOp;
using web::ScsiOutcome;

// Answers each command when it is told to.
class Device final : public scsi::TargetDevice {
 public:
  std::shared_ptr<scsi::Nexus> attach(const scsi::NexusId&) override { return nullptr; }
  [[nodiscard]] scsi::Transfer transfer_of(std::uint64_t,
                                           std::span<const std::uint8_t, 16>) const override {
    return {};
  }
  void execute(scsi::Command, scsi::CommandDone done) override { done_ = std::move(done); }
  void manage(scsi::TaskManagementFunction, std::uint64_t, const std::shared_ptr<scsi::Nexus>&,
              UniqueFunction<void()> done) override {
    done();
  }
  [[nodiscard]] bool has_lun(std::uint64_t lun) const override { return lun == 0; }

  scsi::CommandDone done_;
};

class MeteredDeviceTest : public ::testing::Test {
 protected:
  void run(std::uint8_t opcode, std::size_t bytes_out, std::size_t bytes_in, scsi::Status status) {
    scsi::Command command;
    command.cdb[0] = opcode;
    command.data_out = Payload::zeroed(bytes_out);
    metered_.execute(std::move(command), [this](const scsi::Response&) { ++answered_; });
    executor_.advance(std::chrono::microseconds(5));
    scsi::Response response;
    response.status = status;
    if (bytes_in > 0) response.data_in.push_back({Payload::zeroed(bytes_in), 0, bytes_in});
    device_->done_(std::move(response));
  }
  std::uint64_t commands(ScsiOp op, ScsiOutcome outcome) {
    return metered_.metrics().op(op).commands[static_cast<std::size_t>(outcome)];
  }

  test::ManualExecutor executor_;
  std::shared_ptr<Device> device_ = std::make_shared<Device>();
  MeteredDevice metered_{device_, executor_};
  int answered_ = 0;
};

TEST_F(MeteredDeviceTest, CountsByOperationAndOutcome) {
  run(0x28, 0, 4096, scsi::Status::kGood);
  run(0x88, 0, 512, scsi::Status::kGood);
  run(0x2a, 8192, 0, scsi::Status::kGood);
  run(0x2a, 8192, 0, scsi::Status::kCheckCondition);
  run(0x42, 24, 0, scsi::Status::kGood);
  run(0x93, 512, 0, scsi::Status::kTaskAborted);
  run(0x89, 1024, 0, scsi::Status::kReservationConflict);
  run(0x35, 0, 0, scsi::Status::kBusy);
  run(0x12, 0, 36, scsi::Status::kGood);
  EXPECT_EQ(answered_, 9);
  EXPECT_EQ(commands(ScsiOp::kRead, ScsiOutcome::kGood), 2u);
  EXPECT_EQ(metered_.metrics().op(ScsiOp::kRead).bytes, 4608u);
  EXPECT_EQ(metered_.metrics().op(ScsiOp::kRead).duration.sum(), 10'000u);
  EXPECT_EQ(commands(ScsiOp::kWrite, ScsiOutcome::kGood), 1u);
  EXPECT_EQ(commands(ScsiOp::kWrite, ScsiOutcome::kCheckCondition), 1u);
  EXPECT_EQ(metered_.metrics().op(ScsiOp::kWrite).bytes, 8192u) << "of those that went well";
  EXPECT_EQ(commands(ScsiOp::kUnmap, ScsiOutcome::kGood), 1u);
  EXPECT_EQ(commands(ScsiOp::kWriteSame, ScsiOutcome::kAborted), 1u);
  EXPECT_EQ(commands(ScsiOp::kCompareAndWrite, ScsiOutcome::kReservationConflict), 1u);
  EXPECT_EQ(commands(ScsiOp::kFlush, ScsiOutcome::kBusy), 1u);
  EXPECT_EQ(commands(ScsiOp::kOther, ScsiOutcome::kGood), 1u);
}

TEST_F(MeteredDeviceTest, AUnitAttentionIsNoFailure) {
  const auto answer = [this](std::vector<std::uint8_t> sense) {
    scsi::Command command;
    command.cdb[0] = 0x2a;
    metered_.execute(std::move(command), [](const scsi::Response&) {});
    scsi::Response response;
    response.status = scsi::Status::kCheckCondition;
    response.sense = std::move(sense);
    device_->done_(std::move(response));
  };
  scsi::Sense attention;
  attention.key = scsi::SenseKey::kUnitAttention;
  scsi::Sense full;
  full.key = scsi::SenseKey::kDataProtect;
  for (const auto format : {scsi::SenseFormat::kFixed, scsi::SenseFormat::kDescriptor}) {
    answer(scsi::encode(attention, format));
    answer(scsi::encode(full, format));
  }
  answer({});
  EXPECT_EQ(commands(ScsiOp::kWrite, ScsiOutcome::kUnitAttention), 2u);
  EXPECT_EQ(commands(ScsiOp::kWrite, ScsiOutcome::kCheckCondition), 3u);
}

TEST_F(MeteredDeviceTest, PassesTheRestOn) {
  EXPECT_TRUE(metered_.has_lun(0));
  EXPECT_FALSE(metered_.has_lun(1));
  bool done = false;
  metered_.manage(scsi::TaskManagementFunction::kTargetReset, 0, nullptr, [&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(MeteredDevice, ACommandMayOutliveIt) {
  test::ManualExecutor executor;
  const auto device = std::make_shared<Device>();
  int answered = 0;
  {
    MeteredDevice metered(device, executor);
    metered.execute({}, [&](const scsi::Response&) { ++answered; });
  }
  device->done_({});
  EXPECT_EQ(answered, 1);
}

}  // namespace
}  // namespace mariner::node
