#include "ifsck/program/remote_past.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/client/daemon.h"

namespace mariner::ifsck {
namespace {

using testing::ElementsAre;

class RemotePastTest : public client::DaemonTest {
 protected:
  RemotePastTest() {
    fake().past.set_id("17");
    fake().past.set_size_bytes(1u << 20);
    fake().past.mutable_from()->set_sequence(3);
    fake().past.mutable_newest()->set_sequence(9);
  }
  admin::FakePast& fake() { return control.of_the_past; }
  Result<RemotePast> open() { return RemotePast::open({.socket = socket, .volume = "db1"}); }
};

TEST_F(RemotePastTest, AnswersWhatTheDaemonSays) {
  Result<RemotePast> opened = open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  RemotePast past = *std::move(opened);
  EXPECT_EQ(past.size_bytes(), 1u << 20);
  EXPECT_EQ(past.reach().value(), (Past::Reach{{3}, {9}}));
  fake().past.mutable_newest()->set_sequence(12);
  EXPECT_EQ(past.reach().value(), (Past::Reach{{3}, {12}}));

  fake().moment_answer.set_sequence(5);
  fake().moment_answer.set_time_ns(50);
  EXPECT_EQ(past.moment_of({77}).value(), SequenceNumber{5});
  EXPECT_EQ(past.time_of({5}).value(), VersionTime{50});
  EXPECT_EQ(past.time_of({0}).value(), VersionTime{});
  EXPECT_EQ(past.time_of({2}).value(), VersionTime{}) << "before all that is known";

  const std::vector<Past::Question> questions{{{1}, {4}}, {{2}, {9}}};
  std::vector<std::byte> to(2 * kBlockBytes);
  ASSERT_TRUE(past.read(questions, to));
  EXPECT_EQ(to[0], std::byte{5});
  EXPECT_EQ(to[kBlockBytes], std::byte{11});
  ASSERT_TRUE(past.read({}, {})) << "nothing";

  fake().changed_answers = {{{{{1}, {2}}}, {}}};
  EXPECT_EQ(past.changed({3}, {9}).value(), (std::vector<BlockRange>{{{1}, {2}}}));
  EXPECT_TRUE(past.changed({9}, {9})->empty());
  fake().versions_answers = {{{{{1}, {4}, {40}}}, false}};
  const std::vector<Lbn> blocks{{1}};
  EXPECT_EQ(past.versions(blocks, {3}, {9}).value(),
            (std::vector<Past::Version>{{{1}, {4}, {40}}}));
  EXPECT_THAT(fake().asked, ElementsAre("open volume: \"db1\" from { }", "show 17", "show 17",
                                        "moment id: \"17\" at { time_ns: 77 }",
                                        "moment id: \"17\" at { sequence: 5 }", "blocks 17",
                                        "changed id: \"17\" from: 3 to: 9", "versions 17"));
}

TEST_F(RemotePastTest, AVolumeThatHasGrownIsAsLargeAsItIs) {
  RemotePast past = *open();
  fake().past.set_size_bytes(3u << 20);
  EXPECT_EQ(past.size_bytes(), 1u << 20);
  ASSERT_TRUE(past.reach());
  EXPECT_EQ(past.size_bytes(), 3u << 20);
}

TEST_F(RemotePastTest, PassesErrorsOn) {
  RemotePast past = *open();
  fake().error = Error{ErrorCode::kOutsideWindow, "gone"};
  const std::vector<Past::Question> questions{{{1}, {4}}};
  const std::vector<Lbn> blocks{{1}};
  std::vector<std::byte> to(kBlockBytes);
  EXPECT_EQ(past.reach().error().message, "gone");
  EXPECT_EQ(past.moment_of({7}).error().message, "gone");
  EXPECT_EQ(past.time_of({7}).error().message, "gone");
  EXPECT_EQ(past.read(questions, to).error().message, "gone");
  EXPECT_EQ(past.changed({3}, {9}).error().message, "gone");
  EXPECT_EQ(past.versions(blocks, {3}, {9}).error().message, "gone");
  EXPECT_EQ(open().error().message, "gone");
}

}  // namespace
}  // namespace mariner::ifsck
