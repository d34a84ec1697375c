#include "server/peer/enrolment_listener.h"

#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/peer/enrolment_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using test::EnrolmentRig;
using test::Loop;

// Somebody who speaks TLS and frames, and says what the test wants.
class Guest final : public ChannelUser {
 public:
  Guest(Loop& loop, const EnrolmentRig& rig, std::vector<std::string> words)
      : words_(std::move(words)) {
    tcp::socket socket(loop.io());
    socket.connect({boost::asio::ip::address_v4::loopback(), rig.listener->addresses()[0].port});
    channel_ =
        Channel::begin(loop.environment(TlsContext::for_enrolling().value()),
                       {std::move(socket), "n1's address"}, TlsRole::kDials, kEnrolBounds, *this);
  }
  ~Guest() override { channel_->close(); }

  void secured() override {
    for (const std::string& word : words_) EXPECT_TRUE(channel_->send(word, {}));
  }
  void frame(std::string_view header, Payload) override { replies.emplace_back(header); }
  void writable() override {}
  void closed(Error reason) override { end = std::move(reason); }

  std::vector<std::string> replies;
  std::optional<Error> end;

 private:
  std::vector<std::string> words_;
  std::shared_ptr<Channel> channel_;
};

TEST(EnrolmentListener, AGuestIsAnsweredAndGoes) {
  Loop loop;
  EnrolmentRig rig(loop);
  const PrivateKey key = PrivateKey::generate().value();
  const std::string request =
      make_enrol_request(rig.invite("n2").secret, make_signing_request(key).value());
  {
    Guest guest(loop, rig, {request});
    ASSERT_TRUE(loop.run_until([&] { return !guest.replies.empty(); }));
    EXPECT_TRUE(take_enrol_reply(guest.replies[0], key, rig.cluster.authority().certificate,
                                 test::wall_now()));
  }
  ASSERT_TRUE(loop.run_until([&] { return rig.listener->connections() == 0; }));
  EXPECT_EQ(rig.names, std::vector<std::string>{"n2"});
  EXPECT_TRUE(rig.refusals.empty());
}

TEST(EnrolmentListener, ARefusalIsToldToBoth) {
  Loop loop;
  EnrolmentRig rig(loop);
  const std::string request = make_enrol_request("wrong", "");
  Guest guest(loop, rig, {request});
  ASSERT_TRUE(loop.run_until([&] { return !guest.replies.empty(); }));
  ASSERT_EQ(rig.refusals.size(), 1u);
  EXPECT_EQ(rig.refusals[0].code, ErrorCode::kNotFound);
  EXPECT_TRUE(rig.refusals[0].message.starts_with("127.0.0.1:")) << rig.refusals[0].message;
}

TEST(EnrolmentListener, OneRequestForEachConnection) {
  Loop loop;
  EnrolmentRig rig(loop);
  Guest guest(loop, rig, {make_enrol_request("a", ""), make_enrol_request("b", "")});
  ASSERT_TRUE(loop.run_until([&] { return guest.end.has_value(); }));
  ASSERT_EQ(rig.refusals.size(), 2u);
  EXPECT_NE(rig.refusals[1].message.find("asks again"), std::string::npos);
}

TEST(EnrolmentListener, WhoSaysTooMuchOrNothingIsCut) {
  Loop loop;
  EnrolmentRig rig(loop, {.handshake_time_max = 300ms, .heartbeat_interval = 50ms});
  Guest talkative(loop, rig, {std::string(20'000, 'x')});
  Guest silent(loop, rig, {});
  ASSERT_TRUE(loop.run_until([&] { return talkative.end && silent.end; }));
  EXPECT_EQ(rig.refusals.size(), 2u);
  EXPECT_EQ(rig.listener->connections(), 0u);
}

TEST(EnrolmentListener, TheOldestMakesRoom) {
  Loop loop;
  EnrolmentRig rig(loop, {}, 2);
  Guest first(loop, rig, {});
  Guest second(loop, rig, {});
  ASSERT_TRUE(loop.run_until([&] { return rig.listener->connections() == 2; }));
  Guest third(loop, rig, {});
  ASSERT_TRUE(loop.run_until([&] { return first.end.has_value(); }));
  EXPECT_EQ(rig.listener->connections(), 2u);
  ASSERT_EQ(rig.refusals.size(), 1u);
  EXPECT_EQ(rig.refusals[0].code, ErrorCode::kLimit);
  EXPECT_FALSE(second.end || third.end);
}

TEST(EnrolmentListener, PlainHttp) {
  Loop loop;
  EnrolmentRig rig(loop);
  tcp::socket socket(loop.io());
  socket.connect({boost::asio::ip::address_v4::loopback(), rig.listener->addresses()[0].port});
  boost::asio::write(socket, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n", 18));
  ASSERT_TRUE(loop.run_until([&] { return !rig.refusals.empty(); }));
  EXPECT_NE(rig.refusals[0].message.find("http request"), std::string::npos);
}

}  // namespace
}  // namespace mariner::peer
