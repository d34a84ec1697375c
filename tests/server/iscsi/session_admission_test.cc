#include <gtest/gtest.h>

#include "server/iscsi/session.h"
#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint8_t kOrdered = 2;
constexpr std::uint8_t kHeadOfQueue = 3;

// A READ of one block at `itt`, which tells it from others.
InitiatorPdu tagged(std::uint32_t itt, std::uint8_t attribute = 1) {
  return command_pdu({.itt = itt,
                      .cmd_sn = itt,
                      .expected_bytes = 512,
                      .flags = static_cast<std::uint8_t>(kFinal | kRead | attribute),
                      .cdb = read10(itt, 1)});
}

InitiatorPdu tagged_write(std::uint32_t itt, std::uint8_t attribute, Bytes data = {}) {
  return command_pdu({.itt = itt,
                      .cmd_sn = itt,
                      .expected_bytes = 65536,
                      .flags = static_cast<std::uint8_t>(kFinal | kWrite | attribute),
                      .cdb = write10(itt, 128),
                      .data = std::move(data)});
}

class TaskAttributesTest : public ::testing::Test {
 protected:
  TaskAttributesTest() : client_(server_) {
    server_.device().hold = true;
    client_.login();
  }
  // Of the commands that the device has, in the order in which it got them.
  std::vector<int> begun() {
    std::vector<int> tags;
    for (const auto& one : server_.device().pending) tags.push_back(one.command.cdb[5]);
    return tags;
  }
  void answer_oldest() { server_.device().answer_oldest(); }

  TestServer server_;
  TestClient client_;
};

TEST_F(TaskAttributesTest, AnOrderedCommandWaitsForThoseBeforeAndHoldsThoseBehind) {
  client_.send(tagged(1));
  client_.send(tagged(2));
  client_.send(tagged(3, kOrdered));
  client_.send(tagged(4));
  client_.send(tagged(5));
  EXPECT_EQ(begun(), (std::vector{1, 2}));
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{2});
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{3});
  const auto answers = client_.take();
  ASSERT_EQ(answers.size(), 2u) << "those before it are answered first";
  answer_oldest();
  EXPECT_EQ(begun(), (std::vector{4, 5}));
}

TEST_F(TaskAttributesTest, TheAnswersOfADeviceThatDoesNotWaitAreInOrder) {
  client_.send(tagged(1));
  for (std::uint32_t itt = 2; itt <= 9; ++itt) {
    client_.send(tagged(itt, itt % 3 == 0 ? kOrdered : 1));
  }
  ASSERT_EQ(begun(), (std::vector{1, 2}));
  server_.device().hold = false;
  answer_oldest();
  answer_oldest();
  const auto answers = client_.take();
  ASSERT_EQ(answers.size(), 9u);
  for (std::uint32_t i = 0; i < 9; ++i) EXPECT_EQ(answers[i].itt(), i + 1);
}

TEST_F(TaskAttributesTest, TheHeadOfTheQueueBeginsAtOnceAndHoldsThoseBehind) {
  client_.send(tagged(1, kOrdered));
  client_.send(tagged(2));
  client_.send(tagged(3, kHeadOfQueue));
  client_.send(tagged(4));
  EXPECT_EQ(begun(), (std::vector{1, 3}));
  answer_oldest();
  EXPECT_EQ(begun(), (std::vector{3, 2}));
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{2}) << "4 is behind 2's group as well";
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{4});
}

TEST_F(TaskAttributesTest, CommandsThatWaitForTheirDataAreWaitedFor) {
  const auto r2t = client_.send(tagged_write(1, 1));
  ASSERT_EQ(r2t.size(), 1u);
  EXPECT_TRUE(client_.send(tagged_write(2, kOrdered, pattern(4096, 9))).empty())
      << "its data is not asked for before its turn";
  client_.send(tagged(3));
  EXPECT_TRUE(begun().empty());
  client_.send(data_out_pdu({.itt = 1, .ttt = r2t[0].ttt(), .data = pattern(65536)}));
  EXPECT_EQ(begun(), std::vector{1});
  answer_oldest();
  const auto pdus = client_.take();
  ASSERT_EQ(pdus.size(), 2u);
  ASSERT_EQ(pdus[1].opcode(), Opcode::kR2t);
  EXPECT_TRUE(begun().empty());
  const Bytes rest = pattern(65536 - 4096, 3);
  client_.send(data_out_pdu({.itt = 2, .ttt = pdus[1].ttt(), .offset = 4096, .data = rest}));
  EXPECT_EQ(begun(), std::vector{2});
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{3});
  const auto written = server_.device().written.at(1).bytes();
  EXPECT_EQ(Bytes(written.begin(), written.begin() + 4096), pattern(4096, 9));
}

TEST_F(TaskAttributesTest, AnAbortedCommandHoldsNobody) {
  client_.send(tagged(1));
  client_.send(tagged(2, kOrdered));
  client_.send(tagged(3));
  client_.send(management_pdu({.referenced_itt = 2, .cmd_sn = 4, .ref_cmd_sn = 2}));
  EXPECT_EQ(begun(), std::vector{1}) << "3 is still behind what was before 2";
  answer_oldest();
  EXPECT_EQ(begun(), std::vector{3});
}

TEST_F(TaskAttributesTest, ImmediateCommandsStandOutsideOfTheOrder) {
  client_.send(tagged(1, kOrdered));
  client_.send(command_pdu({.itt = 9,
                            .cmd_sn = 2,
                            .expected_bytes = 512,
                            .flags = kFinal | kRead | kOrdered,
                            .immediate = true,
                            .cdb = read10(9, 1)}));
  EXPECT_EQ(begun(), (std::vector{1, 9}));
  answer_oldest();
  client_.send(tagged(2, kOrdered));
  EXPECT_EQ(begun(), (std::vector{9, 2}));
}

TEST_F(TaskAttributesTest, AcaNeedsAConditionThatThereIsNot) {
  const auto answer = client_.send(tagged(1, 4));
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(answer[0].u8(3), 0x02);
  EXPECT_EQ(std::to_integer<int>(answer[0].data.at(2 + 2)), 0x05);
  EXPECT_EQ(std::to_integer<int>(answer[0].data.at(2 + 12)), 0x49);
  EXPECT_TRUE(begun().empty());
}

// Who waits for others holds no memory that these may need.
TEST(SessionAdmissionTest, OrderAndMemoryDoNotWaitForEachOther) {
  Options options;
  options.payload_bytes_max = 64 * 1024;
  TestServer server(options);
  TestClient client(server);
  client.login();
  auto asked = client.send(tagged_write(1, 1));
  for (std::uint32_t itt = 2; itt <= 6; ++itt) {
    EXPECT_TRUE(client.send(tagged_write(itt, itt % 2 == 0 ? kOrdered : 1)).empty());
  }
  for (std::uint32_t itt = 1; itt <= 6; ++itt) {
    ASSERT_FALSE(asked.empty());
    ASSERT_EQ(asked.back().opcode(), Opcode::kR2t);
    ASSERT_EQ(asked.back().itt(), itt);
    asked =
        client.send(data_out_pdu({.itt = itt, .ttt = asked.back().ttt(), .data = pattern(65536)}));
    EXPECT_EQ(asked.at(0).itt(), itt);
  }
  EXPECT_EQ(server.device().written.size(), 6u);
}

}  // namespace
}  // namespace mariner::iscsi
