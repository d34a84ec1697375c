// Where other nodes connect to this one: accepts them, and hands those that have said who they are
// to its owner.
//
// Whoever is not a node of the cluster costs little: a bounded number of connections at a time,
// each for a bounded time, and one line to the observer, who keeps count. Executor's thread.
// Nothing is called from within a call to the listener.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/peer/connection.h"

namespace mariner::peer {

class ListenerObserver {
 public:
  virtual ~ListenerObserver() = default;
  // Another node: peer() says which. Is observed before this returns, or destroyed. The same node
  // may come twice; the later connection is then the one it uses.
  virtual void accepted(std::unique_ptr<Connection> connection) = 0;
  // Somebody was not let in, or accepting is not possible. The message has the address. As often
  // as they come: whoever writes this down limits how often.
  virtual void refused(const Error& reason) = 0;
};

struct ListenerOptions {
  std::vector<Endpoint> addresses;
  // Connections whose handshake is not done: where a new one is one too many, the oldest goes. So
  // nobody locks the nodes out by connecting and saying nothing.
  std::size_t unknown_max = 64;
};

class Listener {
 public:
  // Binds and listens on every address, or none: kIo. `observer` and what `environment` refers to
  // outlive the listener.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(Connection::Environment environment,
                                                              const ListenerOptions& options,
                                                              ListenerObserver& observer);
  // Begins to accept. Once.
  void start();
  // Closes what has not been handed on. Not from within a callback.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The addresses that are listened on, with the ports that were chosen.
  [[nodiscard]] std::vector<Endpoint> addresses() const;
  // Connections whose handshake is not done.
  [[nodiscard]] std::size_t unknown() const;

 private:
  class Impl;
  explicit Listener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace mariner::peer
