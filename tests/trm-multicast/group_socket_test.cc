#include "trm-multicast/group_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <vector>

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

// What arrives within a second, until there are so many bytes.
std::vector<std::vector<std::byte>> receive(GroupListener& listener, std::size_t bytes) {
  std::vector<std::vector<std::byte>> all;
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

TEST(GroupSocket, WhatIsSentAsOneArrivesInDatagrams) {
  auto sender = GroupSender::open(loopback(), true);
  ASSERT_TRUE(sender.has_value()) << sender.error().message;
  auto listener = GroupListener::open(loopback());
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  const auto bytes = numbered(6000);
  ASSERT_EQ(sender->send(bytes, 1472).value(), GroupSender::Sent::kYes);
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
    ASSERT_EQ(sender->send(bytes, 1472).value(), GroupSender::Sent::kYes);
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
  ASSERT_EQ(sender->send(bytes, 1472).value(), GroupSender::Sent::kYes);
  EXPECT_EQ(receive(*one, 1000).size(), 1u);
  EXPECT_EQ(receive(*other, 1000).size(), 1u);
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
