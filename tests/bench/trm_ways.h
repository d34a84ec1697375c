// The ways by which mariner-trm-load brings writes from a sender to its receivers: the nodes' own
// bus (TLS, with multicast beside it or not), and plain TCP, which protects nothing.
//
// Each process has an event loop of its own, the daemon's. What is called here is called on its
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/payload.h"
#include "server/node/event_loop.h"
#include "server/peer/pki_folder.h"
#include "server/peer/tls_context.h"

namespace mariner::bench {

struct TrmNode {
  std::string name;
  std::string address;
};

struct TrmWayOptions {
  enum class Kind : std::uint8_t { kMulticast, kConnections, kPlain };
  Kind kind = Kind::kMulticast;
  std::vector<TrmNode> nodes;  // the sender first
  std::uint16_t port = 0;
  std::string group;  // ADDRESS:PORT
  bool encrypted = true;
  double bytes_per_second_max = 0;  // 0: none
};

// What went which way, ever.
struct TrmTraffic {
  std::uint64_t multicast_bytes = 0;
  std::uint64_t carried_bytes = 0;
  std::uint64_t repaired_bytes = 0;
  std::uint64_t dismissals = 0;
  std::size_t taking_part = 0;  // receivers, now
};

// The sender's end.
class TrmSending {
 public:
  struct Heard {
    std::function<void(std::size_t receiver)> up;
    std::function<void(std::size_t receiver)> down;
    // It has all writes up to this one.
    std::function<void(std::size_t receiver, std::uint64_t write)> acknowledged;
  };
  virtual ~TrmSending() = default;
  virtual void begin() = 0;
  virtual void send(std::size_t receiver, std::uint64_t write, const Payload& payload) = 0;
  [[nodiscard]] virtual TrmTraffic traffic() const { return {}; }
};

// A receiver's end: `take` gets the writes as they come, in order; what it returns is acknowledged
// at the end of the turn.
class TrmReceiving {
 public:
  using Take = std::function<std::uint64_t(std::uint64_t write, const PayloadSlice& payload)>;
  virtual ~TrmReceiving() = default;
};

// `identity` is not looked at by plain TCP.
[[nodiscard]] std::unique_ptr<TrmSending> make_sending(node::EventLoop& loop,
                                                       const TrmWayOptions& options,
                                                       const peer::NodeIdentity& identity,
                                                       TrmSending::Heard heard);
[[nodiscard]] std::unique_ptr<TrmReceiving> make_receiving(node::EventLoop& loop,
                                                           const TrmWayOptions& options,
                                                           std::size_t node,
                                                           const peer::NodeIdentity& identity,
                                                           TrmReceiving::Take take);

// Of plain TCP.
[[nodiscard]] std::unique_ptr<TrmSending> make_plain_sending(node::EventLoop& loop,
                                                             const TrmWayOptions& options,
                                                             TrmSending::Heard heard);
[[nodiscard]] std::unique_ptr<TrmReceiving> make_plain_receiving(node::EventLoop& loop,
                                                                 const TrmWayOptions& options,
                                                                 std::size_t node,
                                                                 TrmReceiving::Take take);

}  // namespace mariner::bench
