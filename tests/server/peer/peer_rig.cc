#include "tests/server/peer/peer_rig.h"

#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <csignal>
#include <cstring>

#include "proto/check.h"

namespace mariner::peer::test {

using boost::asio::ip::tcp;

WallTime wall_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

TestCluster::TestCluster(std::string name, WallTime made)
    : name_(std::move(name)), authority_(make_authority(name_, made).value()) {}

NodeIdentity TestCluster::node(const std::string& name, WallTime made) const {
  const PrivateKey key = PrivateKey::generate().value();
  const NodeName full{.cluster = name_, .node = name};
  const std::string request = make_signing_request(key).value();
  return {.name = full,
          .authority = authority_.certificate,
          .certificate = sign_node(authority_, full, request, made).value(),
          .key = key};
}

std::shared_ptr<const TlsContext> TestCluster::tls(const std::string& node_name) const {
  return TlsContext::for_peers(node(node_name)).value();
}

Loop::Loop() { std::signal(SIGPIPE, SIG_IGN); }

bool Loop::run_until(const std::function<bool()>& ended, std::chrono::milliseconds time_max) {
  const auto until = std::chrono::steady_clock::now() + time_max;
  while (!ended()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    io_.restart();
    io_.run_one_for(5ms);
  }
  return true;
}

void Loop::poll() {
  io_.restart();
  io_.poll();
}

void Loop::run_for(std::chrono::milliseconds time) {
  (void)run_until([] { return false; }, time);
}

std::pair<ConnectedSocket, ConnectedSocket> Loop::socket_pair() {
  tcp::acceptor listener(io_, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket dialed(io_);
  dialed.connect(listener.local_endpoint());
  tcp::socket accepted = listener.accept();
  return {ConnectedSocket{std::move(dialed), "two's address"},
          ConnectedSocket{std::move(accepted), "one's address"}};
}

Relay::Relay(Loop& loop) : one_(loop.socket_pair()), two_(loop.socket_pair()) {
  for (auto* pair : {&one_, &two_}) pair->second.socket.set_option(tcp::no_delay(true));
}

std::size_t Relay::move(ConnectedSocket& from, ConnectedSocket& to, std::size_t bytes_max) {
  if (!from.socket.is_open() || !to.socket.is_open()) return 0;
  std::vector<char> bytes(bytes_max);
  const auto got = ::recv(from.socket.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return 0;
  boost::system::error_code ignored;  // the other end may be closed
  boost::asio::write(to.socket, boost::asio::buffer(bytes.data(), static_cast<std::size_t>(got)),
                     ignored);
  return static_cast<std::size_t>(got);
}

std::size_t Relay::pass_on(std::size_t bytes_max) {
  const std::size_t there = move(one_.second, two_.second, bytes_max);
  return there + move(two_.second, one_.second, bytes_max);
}

void Relay::hang_up() {
  one_.second.socket.close();
  two_.second.socket.close();
}

void Recorder::received(std::string_view header, Payload payload) {
  frames.push_back({std::string(header), std::move(payload)});
  if (on_received) on_received();
}

Pair::Pair(Loop& loop, const ChannelOptions& options) {
  static const TestCluster cluster("north");
  static const auto one_tls = cluster.tls("one");
  static const auto two_tls = cluster.tls("two");
  auto [dialed, accepted] = loop.socket_pair();
  one.connection =
      Connection::dialed(loop.environment(one_tls, options), std::move(dialed), "two", one.take());
  two.connection =
      Connection::accepted(loop.environment(two_tls, options), std::move(accepted), two.take());
  CHECK(loop.run_until([&] { return one.established && two.established; }));
}

Pair::Pair(Loop& loop, Channel::Environment one_environment, Channel::Environment two_environment,
           const std::string& expected) {
  auto [dialed, accepted] = loop.socket_pair();
  one.connection = Connection::dialed(one_environment, std::move(dialed), expected, one.take());
  two.connection = Connection::accepted(two_environment, std::move(accepted), two.take());
  const auto done = [](const End& end) {
    return end.established ? !end.recorder.ends.empty() : !end.refusals.empty();
  };
  (void)loop.run_until(
      [&] { return (one.established && two.established) || (done(one) && done(two)); });
}

PayloadSlice slice_of(const Payload& payload) {
  return {.payload = payload, .offset = 0, .length = payload.size()};
}

Payload pattern(std::size_t bytes, unsigned seed) {
  Payload payload = Payload::allocate(bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    payload.data()[i] = static_cast<std::byte>(state >> 24);
  }
  return payload;
}

bool same_bytes(const Payload& a, const Payload& b) {
  if (a.size() == 0 || b.size() == 0) return a.size() == b.size();
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace mariner::peer::test
