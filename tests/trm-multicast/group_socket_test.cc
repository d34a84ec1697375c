#include "trm-multicast/group_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/own_network.h"

namespace mariner::trm {
namespace {

// On the loopback interface; the port is of this process alone.
GroupAddress loopback() {
  return {"239.192.44.7", static_cast<std::uint16_t>(20'000 + getpid() % 20'000), "127.0.0.1"};
}

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i % 251);
  return out;
}

using Datagrams = std::vector<std::vector<std::byte>>;

// What arrives within a second, until there are so many bytes.
Datagrams receive(GroupListener& listener, std::size_t bytes) {
  Datagrams all;
  for (std::size_t got = 0; got < bytes;) {
    pollfd wait{listener.fd(), POLLIN, 0};
    if (poll(&wait, 1, 1000) != 1) break;
    while (listener.receive([&](std::span<const std::byte> datagram) {
      all.emplace_back(datagram.begin(), datagram.end());
      got += datagram.size();
    })) {
    }
  }
  return all;
}

// Datagrams of a caller's own, and what the socket has not taken of them.
struct Caller {
  Caller(int name, std::size_t datagrams, std::size_t datagram_bytes) {
    for (std::size_t i = 0; i < datagrams; ++i) {
      sent.emplace_back(datagram_bytes, static_cast<std::byte>(name));
      sent.back()[0] = static_cast<std::byte>(i);
      bytes.insert(bytes.end(), sent.back().begin(), sent.back().end());
    }
    left = {bytes, datagram_bytes};
  }
  // Those of a list that came from it.
  [[nodiscard]] Datagrams of(const Datagrams& all) const {
    Datagrams own;
    std::ranges::copy_if(all, std::back_inserter(own),
                         [&](const auto& each) { return each.back() == bytes.back(); });
    return own;
  }
  Datagrams sent;
  std::vector<std::byte> bytes;
  DatagramBatch left;
};

Result<std::size_t> send(GroupSender& sender, std::span<const std::byte> bytes,
                         std::size_t datagram_bytes) {
  DatagramBatch batch{bytes, datagram_bytes};
  return sender.send(std::span(&batch, 1));
}

// All of them, as the socket takes them. How often it was full.
int send_all(GroupSender& sender, std::span<DatagramBatch> batches) {
  int full = 0;
  while (!batches.empty()) {
    const auto sent = sender.send(batches);
    if (!sent) {
      ADD_FAILURE() << sent.error().message;
      return full;
    }
    batches = batches.subspan(*sent);
    if (*sent > 0) continue;
    ++full;
    pollfd writable{sender.fd(), POLLOUT, 0};
    if (poll(&writable, 1, 10'000) != 1) {
      ADD_FAILURE() << "the socket stays full";
      return full;
    }
  }
  return full;
}

void set_option(const GroupSender& sender, int option, int value) {
  ASSERT_EQ(setsockopt(sender.fd(), SOL_SOCKET, option, &value, sizeof value), 0);
}

// The kernel does not cut what has no checksum.
void prevent_cutting(const GroupSender& sender) { set_option(sender, SO_NO_CHECK, 1); }

TEST(GroupSocket, WhatIsSentAsOneArrivesInDatagrams) {
  auto sender = GroupSender::open(loopback(), true);
  ASSERT_TRUE(sender.has_value()) << sender.error().message;
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  const auto bytes = numbered(6000);
  ASSERT_EQ(send(*sender, bytes, 1472).value(), 1u);
  const auto got = receive(*listener, bytes.size());
  ASSERT_EQ(got.size(), 5u);
  std::vector<std::byte> joined;
  for (const auto& each : got) {
    EXPECT_EQ(each.size(), &each == &got.back() ? 6000u - 4 * 1472 : 1472u);
    joined.insert(joined.end(), each.begin(), each.end());
  }
  EXPECT_EQ(joined, bytes);
}

TEST(GroupSocket, OneDatagramArrivesAsItWas) {
  auto sender = GroupSender::open(loopback(), true);
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(sender.has_value() && listener.has_value());
  for (const std::size_t size : {1u, 100u, 1472u}) {
    const auto bytes = numbered(size);
    ASSERT_EQ(send(*sender, bytes, 1472).value(), 1u);
    const auto got = receive(*listener, size);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0], bytes);
  }
}

TEST(GroupSocket, TwoListenersHearTheSame) {
  auto sender = GroupSender::open(loopback(), true);
  auto one = GroupListener::open(loopback());
  auto other = GroupListener::open(loopback());
  ASSERT_TRUE(sender.has_value() && one.has_value() && other.has_value());
  const auto bytes = numbered(1000);
  ASSERT_EQ(send(*sender, bytes, 1472).value(), 1u);
  EXPECT_EQ(receive(*one, 1000).size(), 1u);
  EXPECT_EQ(receive(*other, 1000).size(), 1u);
}

TEST(GroupSocket, SeveralBatchesGoAtOnceAndEachIsCutAsItSays) {
  auto sender = GroupSender::open(loopback(), true);
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(sender.has_value() && listener.has_value());
  Caller one(1, 5, 1472);
  Caller two(2, 1, 700);
  Caller three(3, 40, 1000);
  std::vector<DatagramBatch> batches{one.left, two.left, three.left};
  ASSERT_EQ(sender->send(batches).value(), 3u);
  Datagrams expected = one.sent;
  expected.insert(expected.end(), two.sent.begin(), two.sent.end());
  expected.insert(expected.end(), three.sent.begin(), three.sent.end());
  EXPECT_EQ(receive(*listener, 5 * 1472 + 700 + 40 * 1000), expected);
}

TEST(GroupSocket, MoreBatchesThanOneCallTakesAreTakenInTurn) {
  auto sender = GroupSender::open(loopback(), true);
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(sender.has_value() && listener.has_value());
  Caller caller(1, 40, 1000);
  std::vector<DatagramBatch> batches;
  for (std::size_t i = 0; i < 20; ++i) {
    batches.push_back({std::span(caller.bytes).subspan(i * 2000, 2000), 1000});
  }
  EXPECT_EQ(send_all(*sender, batches), 0);
  EXPECT_EQ(receive(*listener, caller.bytes.size()), caller.sent);
}

TEST(GroupSocket, WhatTheKernelDoesNotCutGoesUncut) {
  auto sender = GroupSender::open(loopback(), true);
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(sender.has_value() && listener.has_value());
  prevent_cutting(*sender);
  for (int round = 0; round < 2; ++round) {
    Caller one(1, 5, 1472);
    Caller two(2, 9, 700);
    std::vector<DatagramBatch> batches{one.left, two.left};
    EXPECT_EQ(send_all(*sender, batches), 0);
    const Datagrams got = receive(*listener, one.bytes.size() + two.bytes.size());
    EXPECT_EQ(one.of(got), one.sent);
    EXPECT_EQ(two.of(got), two.sent);
    EXPECT_EQ(got.size(), 14u);
  }
}

// An interface that can be changed, and both ends of a group there.
class GroupInterface : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!network_.made()) GTEST_SKIP() << "no right to make a network, or no ip(8)";
    ASSERT_TRUE(network_.make_interface(9000));
  }
  [[nodiscard]] static GroupAddress address() {
    return {"239.192.44.7", 6003, test::OwnNetwork::kAddress};
  }
  void open() {
    sender_.emplace(GroupSender::open(address(), true).value());
    listener_.emplace(GroupListener::open(address()).value());
  }
  // The socket has room for few datagrams, which leave at a rate.
  void open_narrow(const std::string& rate) {
    ASSERT_TRUE(network_.set_mtu(1500) && network_.set_rate(rate));
    open();
    set_option(*sender_, SO_SNDBUF, 1);
  }
  void make_interface_anew() {
    ASSERT_TRUE(network_.take_interface_away() && network_.make_interface(1500));
  }

  test::OwnNetwork network_;
  std::optional<GroupSender> sender_;
  std::optional<GroupListener> listener_;
};

TEST_F(GroupInterface, WhatAFullSocketDidNotTakeFollows) {
  open_narrow("8mbit");
  Caller caller(1, 40, 1472);
  std::vector<DatagramBatch> batches;
  for (std::size_t i = 0; i < 8; ++i) {
    batches.push_back({std::span(caller.bytes).subspan(i * 5 * 1472, 5 * std::size_t{1472}), 1472});
  }
  const auto first = sender_->send(batches);
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(*first, 0u);
  EXPECT_LT(*first, 8u);
  EXPECT_GT(send_all(*sender_, std::span(batches).subspan(*first)), 0);
  EXPECT_EQ(receive(*listener_, caller.bytes.size()), caller.sent);
}

TEST_F(GroupInterface, AnUnfinishedBatchIsNotTakenForAnothers) {
  open_narrow("8mbit");
  prevent_cutting(*sender_);
  Caller one(1, 20, 1472);
  Caller two(2, 20, 1400);
  ASSERT_EQ(sender_->send(std::span(&one.left, 1)).value(), 0u);
  const std::size_t left = one.left.bytes.size();
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, one.bytes.size());
  EXPECT_EQ(left % 1472, 0u);
  EXPECT_GT(send_all(*sender_, std::span(&two.left, 1)), 0);
  EXPECT_EQ(one.left.bytes.size(), left);
  send_all(*sender_, std::span(&one.left, 1));
  const Datagrams got = receive(*listener_, one.bytes.size() + two.bytes.size());
  EXPECT_EQ(one.of(got), one.sent);
  EXPECT_EQ(two.of(got), two.sent);
  EXPECT_EQ(got.size(), 40u);
}

TEST_F(GroupInterface, WhatIsTooLargeIsNamedAndTakesNothingWithIt) {
  open();
  ASSERT_TRUE(network_.set_mtu(1500));
  Caller one(1, 5, 1472);
  Caller large(2, 1, 8972);
  Caller several(3, 3, 8972);
  Caller two(4, 5, 1472);
  std::vector<DatagramBatch> batches{one.left, large.left, several.left, two.left};
  EXPECT_EQ(sender_->send(batches).value(), 1u);
  for (const std::size_t i : {1u, 2u}) {
    const auto sent = sender_->send(std::span(batches).subspan(i));
    ASSERT_FALSE(sent.has_value());
    EXPECT_EQ(sent.error().code, ErrorCode::kLimit);
    EXPECT_NE(sent.error().message.find("8972"), std::string::npos);
  }
  EXPECT_EQ(sender_->send(std::span(batches).subspan(3)).value(), 1u);
  const Datagrams got = receive(*listener_, 10 * 1472);
  EXPECT_EQ(one.of(got), one.sent);
  EXPECT_EQ(two.of(got), two.sent);
  EXPECT_EQ(got.size(), 10u);
}

TEST_F(GroupInterface, AfterWhatWasTooLargeTheKernelStillCuts) {
  open_narrow("200kbit");
  Caller large(1, 3, 8972);
  EXPECT_EQ(sender_->send(std::span(&large.left, 1)).error().code, ErrorCode::kLimit);
  // Whole or not at all.
  Caller one(2, 20, 1472);
  EXPECT_EQ(sender_->send(std::span(&one.left, 1)).value(), 1u);
  Caller two(3, 20, 1472);
  EXPECT_EQ(sender_->send(std::span(&two.left, 1)).value(), 0u);
  EXPECT_EQ(two.left.bytes.size(), two.bytes.size());
}

TEST_F(GroupInterface, LargerPacketsAreUsedAsSoonAsTheInterfaceHasThem) {
  ASSERT_TRUE(network_.set_mtu(1500));
  open();
  EXPECT_EQ(datagram_bytes_max(address().interface).value(), 1472u);
  Caller caller(1, 3, 8972);
  EXPECT_FALSE(send(*sender_, caller.bytes, 8972).has_value());
  ASSERT_TRUE(network_.set_mtu(9000));
  EXPECT_EQ(datagram_bytes_max(address().interface).value(), 8972u);
  EXPECT_EQ(send(*sender_, caller.bytes, 8972).value(), 1u);
  EXPECT_EQ(receive(*listener_, caller.bytes.size()), caller.sent);
}

TEST_F(GroupInterface, AListenerMovesToTheInterfaceThatWasMadeAnew) {
  open();
  Caller before(1, 3, 1000);
  ASSERT_EQ(send(*sender_, before.bytes, 1000).value(), 1u);
  make_interface_anew();
  const int index = interface_index(address().interface).value();
  EXPECT_NE(listener_->interface_index(), index);
  auto sender = GroupSender::open(address(), true);
  ASSERT_TRUE(sender.has_value());
  Caller unheard(2, 3, 1000);
  ASSERT_EQ(send(*sender, unheard.bytes, 1000).value(), 1u);
  ASSERT_TRUE(listener_->move_to(index).has_value());
  EXPECT_EQ(listener_->interface_index(), index);
  Caller after(3, 3, 1000);
  ASSERT_EQ(send(*sender, after.bytes, 1000).value(), 1u);
  Datagrams expected = before.sent;
  expected.insert(expected.end(), after.sent.begin(), after.sent.end());
  EXPECT_EQ(receive(*listener_, 6000), expected);
}

TEST_F(GroupInterface, AListenerStaysWhereItCannotMove) {
  open();
  const int index = listener_->interface_index();
  EXPECT_FALSE(listener_->move_to(index + 1000).has_value());
  EXPECT_EQ(listener_->interface_index(), index);
  Caller caller(1, 3, 1000);
  ASSERT_EQ(send(*sender_, caller.bytes, 1000).value(), 1u);
  EXPECT_EQ(receive(*listener_, 3000), caller.sent);
}

TEST_F(GroupInterface, ASenderWhoseInterfaceIsGoneSaysSo) {
  open();
  make_interface_anew();
  Caller caller(1, 3, 1000);
  EXPECT_EQ(send(*sender_, caller.bytes, 1000).error().code, ErrorCode::kIo);
}

TEST(GroupSocket, KnowsWhatFitsIntoAPacket) {
  const auto bytes = datagram_bytes_max("127.0.0.1");
  ASSERT_TRUE(bytes.has_value());
  EXPECT_GE(*bytes, 1472u);
  EXPECT_LE(*bytes, 65'507u);
  EXPECT_EQ(datagram_bytes_max("192.0.2.77").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(datagram_bytes_max("lo").error().code, ErrorCode::kInvalidArgument);
}

std::string complaint(const GroupAddress& address) {
  const Result<void> good = check_group(address);
  return good ? "" : good.error().message;
}

TEST(GroupSocket, BadAddressesAreNamed) {
  EXPECT_EQ(complaint({"239.192.7.1", 6003, "10.0.0.1"}), "");
  EXPECT_NE(complaint({"10.0.0.1", 6003, "10.0.0.1"}).find("\"10.0.0.1\" is no IPv4 multicast"),
            std::string::npos);
  EXPECT_NE(complaint({"nonsense", 6003, "10.0.0.1"}).find("\"nonsense\""), std::string::npos);
  EXPECT_NE(complaint({"224.0.0.9", 6003, "10.0.0.1"}).find("to everybody"), std::string::npos);
  EXPECT_NE(complaint({"239.192.7.1", 0, "10.0.0.1"}).find("port 0"), std::string::npos);
  EXPECT_NE(complaint({"239.192.7.1", 6003, "eth1"}).find("\"eth1\""), std::string::npos);
}

TEST(GroupSocket, AnAddressThatNoInterfaceHasIsNamed) {
  const GroupAddress address{"239.192.7.1", 6003, "192.0.2.77"};
  const auto sender = GroupSender::open(address);
  ASSERT_FALSE(sender.has_value());
  EXPECT_EQ(sender.error().code, ErrorCode::kNotFound);
  EXPECT_NE(sender.error().message.find("192.0.2.77"), std::string::npos);
  EXPECT_FALSE(GroupListener::open(address).has_value());
}

}  // namespace
}  // namespace mariner::trm
