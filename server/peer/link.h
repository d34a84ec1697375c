// A link: the way to one node by name, which is connected again whenever it breaks.
//
// Dials the node's addresses one after another, without a pause; when none has answered it waits,
// 50 ms at first and twice as long each time up to 1 s, with jitter. Which of two nodes dials the
// other is their owners' agreement: a link does not know of connections that the other has made.
// Executor's thread. Nothing is called from within a call to the link.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/backoff.h"
#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/peer/connection.h"

namespace mariner::peer {

class LinkObserver {
 public:
  virtual ~LinkObserver() = default;
  // The node is there. The connection is good until down(); its peer() is the node. If it does not
  // want this one, down() follows at once: each end decides for itself.
  virtual void up(Connection& connection) = 0;
  // The connection has ended for this reason; another one is on the way. Once for each up().
  virtual void down(const Error& reason) = 0;
  // As ConnectionObserver has them, between up() and down().
  virtual void received(std::string_view header, Payload payload) = 0;
  virtual void writable() = 0;
  // An attempt has failed. As often as they do: whoever writes this down keeps count.
  virtual void attempt_failed(const Error& reason) = 0;
};

struct LinkOptions {
  std::string node;
  std::vector<Endpoint> addresses;  // at least one
  std::chrono::nanoseconds dial_time_max = std::chrono::seconds(2);
  BackoffTimes backoff{.least = std::chrono::milliseconds(50),
                       .most = std::chrono::milliseconds(1000)};  // with the node's own seed
};

class Link {
 public:
  // Begins to dial. `observer` and what `environment` refers to outlive the link.
  Link(Connection::Environment environment, LinkOptions options, LinkObserver& observer);
  // Closes the connection, without down(). Not from within a callback.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Null while it is down.
  [[nodiscard]] Connection* connection() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace mariner::peer
