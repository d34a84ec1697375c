#include "replication/storage_role.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/replication/role_actions.h"

namespace mariner::replication {
namespace {

constexpr VolumeId kVolume{1};
constexpr ConnectionId kFirst{1};
constexpr ConnectionId kSecond{2};

WriteMessage write_of(std::uint64_t sequence, std::uint64_t settled, std::uint64_t epoch = 5) {
  WriteMessage message;
  message.volume = kVolume;
  message.stamp = {{epoch}, {sequence}, {1000 + sequence}};
  message.write.kind = WriteKind::kZero;
  message.write.extent = {{0}, {1}};
  message.settled = {settled};
  return message;
}

class StorageRoleTest : public ::testing::Test {
 protected:
  StorageRole::Actions hear(ConnectionId from, ToStorage message) {
    StorageRole::Actions out;
    role_.received(from, std::move(message), out);
    return out;
  }
  StorageRole::Actions promised(std::uint64_t epoch, const Result<void>& result = {}) {
    StorageRole::Actions out;
    role_.promised({epoch}, result, out);
    return out;
  }
  StorageRole::Actions caught_up(std::uint64_t to) {
    StorageRole::Actions out;
    role_.caught_up({to}, out);
    return out;
  }
  std::optional<StorageProgress> progress() {
    StorageRole::Actions out;
    role_.flush(out);
    return sent<StorageProgress>(out);
  }
  void open(ConnectionId connection, std::uint64_t settled, std::uint64_t epoch = 5) {
    hear(connection, OpenStorage{kVolume, {epoch}});
    promised(epoch);
    hear(connection, Resume{kVolume, {epoch}, {settled}});
  }

  StorageRole role_{{kVolume, {4}, {10}}};
};

TEST_F(StorageRoleTest, AnEpochIsPromisedBeforeItIsOpen) {
  EXPECT_TRUE(only<StorageRole::Promise>(hear(kFirst, OpenStorage{kVolume, {5}})).has_value());
  EXPECT_TRUE(sent<Refused>(hear(kSecond, Resume{kVolume, {5}, {10}})).has_value());
  const auto opened = sent<StorageOpened>(promised(5));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->committed, SequenceNumber{10});
  EXPECT_EQ(opened->durable, SequenceNumber{10});
  const auto stale = sent<Refused>(hear(kSecond, OpenStorage{kVolume, {4}}));
  ASSERT_TRUE(stale.has_value());
  EXPECT_EQ(stale->error.code, ErrorCode::kStaleEpoch);
  const auto displaced = only<StorageRole::Send>(hear(kSecond, OpenStorage{kVolume, {5}}));
  EXPECT_FALSE(displaced.has_value()) << "the one before is told, and the new one answered";
  EXPECT_TRUE(sent<Refused>(hear(kFirst, write_of(11, 10))).has_value());
}

TEST_F(StorageRoleTest, APromiseThatFailsOpensNothingAndIsTriedAgain) {
  hear(kFirst, OpenStorage{kVolume, {5}});
  const auto failed = promised(5, Error{ErrorCode::kIo, "broken"});
  EXPECT_FALSE(sent<StorageOpened>(failed).has_value());
  ASSERT_TRUE(sent<Refused>(failed).has_value()) << "who waits would wait for ever";
  EXPECT_EQ(sent<Refused>(failed)->error.code, ErrorCode::kIo);
  EXPECT_TRUE(only<StorageRole::Promise>(hear(kFirst, OpenStorage{kVolume, {5}})).has_value());
  EXPECT_TRUE(sent<StorageOpened>(promised(5)).has_value());
}

// Its journal tells what came since, and no more.
TEST_F(StorageRoleTest, WithoutTheLoggerAnImageThatLacksWhatThatHasDoesNotGoOn) {
  hear(kFirst, OpenStorage{kVolume, {5}, SequenceNumber{11}});
  const auto actions = promised(5);
  const auto opened = sent<StorageOpened>(actions);
  ASSERT_TRUE(opened.has_value()) << "its coordinator sees what it has";
  EXPECT_EQ(opened->committed, SequenceNumber{10});
  EXPECT_FALSE(only<StorageRole::LogIsAway>(actions).has_value());
  const auto refused = sent<Refused>(hear(kFirst, Resume{kVolume, {5}, {20}}));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->error.code, ErrorCode::kUnavailable);
  hear(kSecond, OpenStorage{kVolume, {6}, SequenceNumber{10}});
  EXPECT_TRUE(sent<StorageOpened>(promised(6)).has_value());
}

TEST_F(StorageRoleTest, WhoMissedNothingGoesOnAtOnce) {
  hear(kFirst, OpenStorage{kVolume, {5}});
  promised(5);
  const auto actions = hear(kFirst, Resume{kVolume, {5}, {10}});
  EXPECT_TRUE(only<StorageRole::Forget>(actions).has_value());
  EXPECT_FALSE(only<StorageRole::CatchUp>(actions).has_value());
  EXPECT_EQ(sent<CaughtUp>(actions)->through, SequenceNumber{10});
  EXPECT_TRUE(only<StorageRole::Prepare>(hear(kFirst, write_of(11, 10))).has_value());
  const auto next = hear(kFirst, write_of(12, 11));
  EXPECT_EQ(only<StorageRole::Commit>(next)->settled, SequenceNumber{11}) << "it rides on the next";
  EXPECT_EQ(only<StorageRole::Commit>(hear(kFirst, CommitMessage{kVolume, {5}, {12}}))->settled,
            SequenceNumber{12});
  EXPECT_EQ(role_.committed(), SequenceNumber{12});
}

TEST_F(StorageRoleTest, WhatWasMissedComesBeforeWhatIsNew) {
  hear(kFirst, OpenStorage{kVolume, {5}});
  promised(5);
  const auto actions = hear(kFirst, Resume{kVolume, {5}, {50}});
  const auto missed = only<StorageRole::CatchUp>(actions);
  ASSERT_TRUE(missed.has_value());
  EXPECT_EQ(missed->from, SequenceNumber{10});
  EXPECT_EQ(missed->to, SequenceNumber{50});
  EXPECT_FALSE(sent<CaughtUp>(actions).has_value());
  hear(kFirst, write_of(51, 50));
  const auto next = hear(kFirst, write_of(52, 51));
  EXPECT_TRUE(only<StorageRole::Prepare>(next).has_value());
  EXPECT_FALSE(only<StorageRole::Commit>(next).has_value());
  EXPECT_EQ(role_.committed(), SequenceNumber{10});
  const auto done = caught_up(50);
  EXPECT_EQ(sent<CaughtUp>(done)->through, SequenceNumber{50});
  EXPECT_EQ(only<StorageRole::Commit>(done)->settled, SequenceNumber{51});
}

TEST_F(StorageRoleTest, WhoeverComesMeanwhileIsCaughtUpWithAsWell) {
  open(kFirst, 50);
  open(kSecond, 80, 6);
  EXPECT_TRUE(role_.catching_up());
  const auto more = only<StorageRole::CatchUp>(caught_up(50));
  ASSERT_TRUE(more.has_value());
  EXPECT_EQ(more->from, SequenceNumber{50});
  EXPECT_EQ(more->to, SequenceNumber{80});
  const auto done = caught_up(80);
  EXPECT_EQ(only<StorageRole::Send>(done)->to, kSecond);
  EXPECT_EQ(sent<CaughtUp>(done)->through, SequenceNumber{80});
}

TEST_F(StorageRoleTest, AHistoryThatLacksWhatIsSettledHereIsRefused) {
  open(kFirst, 10);
  hear(kFirst, write_of(11, 10));
  hear(kFirst, CommitMessage{kVolume, {5}, {11}});
  hear(kSecond, OpenStorage{kVolume, {6}});
  promised(6);
  EXPECT_TRUE(sent<Refused>(hear(kSecond, Resume{kVolume, {6}, {10}})).has_value());
}

TEST_F(StorageRoleTest, WhatARollbackChangedTheHistorySays) {
  open(kFirst, 10);
  WriteMessage rollback = write_of(12, 10);
  rollback.write = {};
  rollback.write.kind = WriteKind::kRollback;
  rollback.write.target = {6};
  hear(kFirst, write_of(11, 10));
  EXPECT_FALSE(only<StorageRole::Prepare>(hear(kFirst, rollback)).has_value());
  const auto actions = hear(kFirst, write_of(13, 13));
  EXPECT_EQ(only<StorageRole::Commit>(actions)->settled, SequenceNumber{11});
  const auto looked = only<StorageRole::CatchUp>(actions);
  ASSERT_TRUE(looked.has_value());
  EXPECT_EQ(looked->from, SequenceNumber{6});
  EXPECT_EQ(looked->to, SequenceNumber{11});
  EXPECT_EQ(looked->at, SequenceNumber{12});
  EXPECT_EQ(role_.committed(), SequenceNumber{11});
  EXPECT_EQ(only<StorageRole::Commit>(caught_up(12))->settled, SequenceNumber{13});
}

TEST_F(StorageRoleTest, ARollbackThatWasVoidedOrForgottenChangesNothing) {
  open(kFirst, 10);
  WriteMessage rollback = write_of(11, 10);
  rollback.write = {};
  rollback.write.kind = WriteKind::kRollback;
  rollback.write.target = {6};
  hear(kFirst, rollback);
  hear(kFirst, VoidMessage{kVolume, {5}, {11}, {11}});
  EXPECT_FALSE(only<StorageRole::CatchUp>(hear(kFirst, CommitMessage{kVolume, {5}, {11}})));
  rollback.stamp.sequence = {12};
  hear(kFirst, rollback);
  open(kSecond, 11, 6);
  const auto actions = hear(kSecond, write_of(13, 12, 6));
  EXPECT_EQ(only<StorageRole::Commit>(actions)->settled, SequenceNumber{12});
  EXPECT_FALSE(only<StorageRole::CatchUp>(actions).has_value());
}

TEST_F(StorageRoleTest, NonsenseIsRefused) {
  const auto refused = [this](const ToStorage& message) {
    role_.disconnected(kFirst);
    open(kFirst, 20);
    return sent<Refused>(hear(kFirst, message)).has_value();
  };
  EXPECT_TRUE(refused(write_of(20, 20)));
  EXPECT_TRUE(refused(write_of(21, 20, 4)));
  EXPECT_TRUE(refused(CommitMessage{kVolume, {4}, {21}}));
  EXPECT_TRUE(refused(VoidMessage{kVolume, {5}, {10}, {10}})) << "it is committed";
  EXPECT_TRUE(refused(VoidMessage{kVolume, {5}, {22}, {21}}));
  EXPECT_FALSE(refused(VoidMessage{kVolume, {5}, {21}, {21}}));
}

TEST_F(StorageRoleTest, TellsHowFarItIsAndWhatItGrants) {
  open(kFirst, 10);
  role_.granted(4 * kBlockBytes);
  hear(kFirst, write_of(11, 10));
  hear(kFirst, CommitMessage{kVolume, {5}, {11}});
  role_.durable({11});
  const auto told = progress();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->durable, SequenceNumber{11});
  EXPECT_EQ(told->granted, 4 * kBlockBytes);
  EXPECT_FALSE(progress().has_value()) << "once";
  // Counted anew for each connection: one block was prepared before.
  open(kSecond, 11, 6);
  const auto again = progress();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->granted, 3 * kBlockBytes);
  EXPECT_EQ(again->resumed, SequenceNumber{11});
}

// The storage has none of them to prepare; the coordinator counts them among what it has sent.
TEST_F(StorageRoleTest, RollbacksTakeNothingOfWhatIsGranted) {
  open(kFirst, 10);
  role_.granted(4 * kBlockBytes);
  EXPECT_EQ(progress()->granted, 4 * kBlockBytes);
  WriteMessage rollback = write_of(11, 10);
  rollback.write = {};
  rollback.write.kind = WriteKind::kRollback;
  rollback.write.target = {6};
  hear(kFirst, rollback);
  EXPECT_EQ(progress()->granted, 5 * kBlockBytes) << "of which one was sent";
  hear(kFirst, CommitMessage{kVolume, {5}, {11}});
  caught_up(11);
  open(kSecond, 11, 6);
  EXPECT_EQ(progress()->granted, 4 * kBlockBytes) << "as before";
}

TEST_F(StorageRoleTest, TellsHowFarItIsWithWhatItMissed) {
  open(kFirst, 10);
  progress();
  role_.fetched({100, 60, 7});
  EXPECT_EQ(progress()->catch_up, (CatchUpProgress{100, 60, 7}));
  role_.fetched({100, 60, 7});
  EXPECT_FALSE(progress().has_value()) << "nothing new";
  role_.fetched({});
  EXPECT_EQ(progress()->catch_up, CatchUpProgress{});
}

TEST_F(StorageRoleTest, WhoLacksWhatIsGivenUpStartsOverAndIsSilentMeanwhile) {
  open(kFirst, 10);
  const auto actions = hear(kFirst, Resume{kVolume, {5}, {30}, true});
  EXPECT_TRUE(only<StorageRole::StartOver>(actions).has_value());
  EXPECT_EQ(sent<Refused>(actions)->error.code, ErrorCode::kUnavailable);
  EXPECT_TRUE(role_.catching_up());
  EXPECT_TRUE(sent<Refused>(hear(kFirst, write_of(31, 30))).has_value());
  EXPECT_TRUE(sent<Refused>(hear(kSecond, OpenStorage{kVolume, {5}})).has_value());
  StorageRole::Actions out;
  role_.outlived(out);
  EXPECT_TRUE(out.empty()) << "once is enough";
  role_.started_over(out);
  EXPECT_FALSE(role_.catching_up());
  const auto opened = sent<StorageOpened>(hear(kSecond, OpenStorage{kVolume, {5}}));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->committed, SequenceNumber{0});
  EXPECT_EQ(opened->durable, SequenceNumber{0});
  const auto missed = only<StorageRole::CatchUp>(hear(kSecond, Resume{kVolume, {5}, {30}}));
  ASSERT_TRUE(missed.has_value());
  EXPECT_EQ(missed->from, SequenceNumber{0});
  EXPECT_EQ(missed->to, SequenceNumber{30});
}

TEST_F(StorageRoleTest, WhatWasKeptBesideTheImageIsNotAskedFor) {
  role_ = StorageRole({kVolume, {4}, {10}, {15}});
  hear(kFirst, OpenStorage{kVolume, {5}});
  const auto opened = sent<StorageOpened>(promised(5));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->committed, SequenceNumber{15});
  EXPECT_EQ(opened->durable, SequenceNumber{10});
  const auto knows_less = hear(kFirst, Resume{kVolume, {5}, {14}});
  EXPECT_EQ(sent<Refused>(knows_less)->error.code, ErrorCode::kProtocol);
  hear(kSecond, OpenStorage{kVolume, {5}});
  const auto missed = only<StorageRole::CatchUp>(hear(kSecond, Resume{kVolume, {5}, {20}}));
  ASSERT_TRUE(missed.has_value());
  EXPECT_EQ(missed->from, SequenceNumber{15});
}

TEST_F(StorageRoleTest, WhatIsMissedAndIsNotInTheHistoryAnyMoreItsCoordinatorJudges) {
  open(kFirst, 20);
  StorageRole::Actions out;
  role_.outlived(out);
  EXPECT_EQ(sent<Refused>(out)->error.code, ErrorCode::kUnavailable);
  EXPECT_FALSE(only<StorageRole::StartOver>(out).has_value());
  out.clear();
  role_.outlived(out);
  EXPECT_TRUE(out.empty()) << "nothing is being asked";
  // As it was before, for the one who comes next; who may ask for the same, or let it start over.
  const auto opened = sent<StorageOpened>(hear(kSecond, OpenStorage{kVolume, {5}}));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->committed, SequenceNumber{10});
  const auto missed = only<StorageRole::CatchUp>(hear(kSecond, Resume{kVolume, {5}, {30}}));
  ASSERT_TRUE(missed.has_value());
  EXPECT_EQ(missed->from, SequenceNumber{10});
  EXPECT_EQ(missed->to, SequenceNumber{30});
}

// Another coordinator is being promised something just then.
TEST_F(StorageRoleTest, WhoStartsOverIsOpenedWhenItHas) {
  open(kFirst, 20);
  hear(kFirst, Resume{kVolume, {5}, {30}, true});
  StorageRole::Actions out;
  role_.outlived(out);
  EXPECT_TRUE(out.empty());
  role_.started_over(out);
  EXPECT_TRUE(only<StorageRole::Promise>(hear(kSecond, OpenStorage{kVolume, {6}})).has_value());
  EXPECT_EQ(sent<StorageOpened>(promised(6))->committed, SequenceNumber{0});
}

TEST_F(StorageRoleTest, AnImageThatHasFailedIsToldOfAndGoesOn) {
  open(kFirst, 10);
  EXPECT_FALSE(progress()->failed);
  StorageRole::Actions out;
  role_.image_failed(Error{ErrorCode::kIo, "broken"}, out);
  EXPECT_TRUE(out.empty()) << "what is to become of it, the coordinator says";
  EXPECT_EQ(progress()->failed->message, "broken");
  EXPECT_TRUE(only<StorageRole::Prepare>(hear(kFirst, write_of(11, 10))).has_value());
  role_.image_failed({}, out);
  EXPECT_TRUE(out.empty());
  EXPECT_FALSE(progress()->failed);
}

TEST_F(StorageRoleTest, WhoIsLeftAloneSaysNothingUntilItsImageIsTriedAgain) {
  StorageRole::Actions out;
  role_.image_failed(Error{ErrorCode::kIo, "broken"}, out);
  hear(kFirst, OpenStorage{kVolume, {5}});
  EXPECT_EQ(sent<StorageOpened>(promised(5))->failed->message, "broken");
  role_.granted(77);
  EXPECT_FALSE(progress().has_value()) << "nothing was resumed";
  EXPECT_FALSE(role_.counted_on());
  role_.image_failed({}, out);
  EXPECT_EQ(sent<Refused>(out)->error.code, ErrorCode::kUnavailable);
  hear(kSecond, OpenStorage{kVolume, {5}});
  EXPECT_FALSE(role_.heard() == kFirst);
}

TEST_F(StorageRoleTest, WhoCannotStartOverSaysWhy) {
  open(kFirst, 20);
  hear(kFirst, Resume{kVolume, {5}, {30}, true});
  StorageRole::Actions out;
  role_.image_failed(Error{ErrorCode::kIo, "broken"}, out);
  const auto refused = sent<Refused>(hear(kSecond, OpenStorage{kVolume, {5}}));
  EXPECT_NE(refused->error.message.find("broken"), std::string::npos) << refused->error.message;
}

TEST_F(StorageRoleTest, WhenTheLogIsLostTheImageIsToHoldWhatLiesBesideIt) {
  StorageRole role({kVolume, {4}, {10}, {15}});
  const auto hear_it = [&](const ToStorage& message) {
    StorageRole::Actions out;
    role.received(kFirst, message, out);
    return out;
  };
  hear_it(OpenStorage{kVolume, {5}, SequenceNumber{15}});
  StorageRole::Actions out;
  role.promised({5}, {}, out);
  hear_it(Resume{kVolume, {5}, {15}});
  EXPECT_TRUE(only<StorageRole::LogIsLost>(hear_it(LogLost{kVolume, {5}, {15}})).has_value());
  role.durable({15});
  EXPECT_TRUE(hear_it(LogLost{kVolume, {5}, {15}}).empty()) << "it does";
  EXPECT_TRUE(sent<Refused>(hear_it(LogLost{kVolume, {5}, {14}})).has_value())
      << "that is not when it went";
}

TEST_F(StorageRoleTest, ALogThatIsThereIsNotLost) {
  open(kFirst, 10);
  const auto refused = sent<Refused>(hear(kFirst, LogLost{kVolume, {5}, {10}}));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->error.code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace mariner::replication
