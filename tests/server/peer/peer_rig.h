// Clusters, sockets and nodes for the tests of this folder: real TLS over loopback, on the test's
// thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/peer/connection.h"
#include "server/peer/socket.h"
#include "tests/server/iscsi/asio_executor.h"

namespace mariner::peer::test {

using namespace std::chrono_literals;

WallTime wall_now();

// An authority, and what it signs.
class TestCluster {
 public:
  explicit TestCluster(std::string name, WallTime made = wall_now());
  [[nodiscard]] NodeIdentity node(const std::string& name) const { return node(name, wall_now()); }
  // With a certificate that was made at `made`.
  [[nodiscard]] NodeIdentity node(const std::string& name, WallTime made) const;
  [[nodiscard]] std::shared_ptr<const TlsContext> tls(const std::string& node_name) const;
  [[nodiscard]] const Authority& authority() const { return authority_; }

 private:
  std::string name_;
  Authority authority_;
};

class Loop {
 public:
  Loop();
  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] iscsi::AsioExecutor& executor() { return executor_; }
  // Handles what is at hand.
  void poll();
  // Handles events until `ended` holds. Whether it did, within `time_max`.
  bool run_until(const std::function<bool()>& ended, std::chrono::milliseconds time_max = 20s);
  void run_for(std::chrono::milliseconds time);

  [[nodiscard]] Channel::Environment environment(std::shared_ptr<const TlsContext> tls,
                                                 const ChannelOptions& options = {}) {
    return {io_, executor_, std::move(tls), options};
  }
  // The two ends of a connection over loopback.
  std::pair<ConnectedSocket, ConnectedSocket> socket_pair();

 private:
  boost::asio::io_context io_{1};
  iscsi::AsioExecutor executor_{io_};
};

// Two sockets with a hand between them, which passes on some bytes at a time, and hangs up.
class Relay {
 public:
  explicit Relay(Loop& loop);
  ConnectedSocket take_one() { return std::move(one_.first); }
  ConnectedSocket take_two() { return std::move(two_.first); }
  // At most so many in either direction. How many there were.
  std::size_t pass_on(std::size_t bytes_max);
  // Without a word.
  void hang_up();

 private:
  static std::size_t move(ConnectedSocket& from, ConnectedSocket& to, std::size_t bytes_max);

  std::pair<ConnectedSocket, ConnectedSocket> one_;
  std::pair<ConnectedSocket, ConnectedSocket> two_;
};

// One end of a connection that writes down what it hears.
class Recorder final : public ConnectionObserver {
 public:
  struct Frame {
    std::string header;
    Payload payload;
  };
  void received(std::string_view header, Payload payload) override;
  void writable() override { ++writables; }
  void closed(const Error& reason) override { ends.push_back(reason); }

  std::vector<Frame> frames;
  std::function<void()> on_received;
  int writables = 0;
  std::vector<Error> ends;
};

// A connection, established or refused, with its recorder.
struct End {
  Recorder recorder;
  std::unique_ptr<Connection> connection;
  bool established = false;
  std::vector<Error> refusals;

  Connection::Established take() {
    return [this](Result<void> result) {
      if (result) {
        established = true;
        connection->observe(recorder);
      } else {
        refusals.push_back(result.error());
      }
    };
  }
};

// Two nodes, "one" which dials and "two", over loopback.
struct Pair {
  explicit Pair(Loop& loop, const ChannelOptions& options = {});
  // What either end is not to be like the other.
  Pair(Loop& loop, Channel::Environment one_environment, Channel::Environment two_environment,
       const std::string& expected = "two");
  End one;
  End two;
};

PayloadSlice slice_of(const Payload& payload);
// Bytes that tell their places apart.
Payload pattern(std::size_t bytes, unsigned seed = 1);
bool same_bytes(const Payload& a, const Payload& b);

}  // namespace mariner::peer::test
