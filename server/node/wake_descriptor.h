// Wakes an event loop each time a descriptor becomes readable. Registered once, edge-triggered: a
// wait of Boost.Asio's public interface ends with the first event, and waiting again costs a system
// call for each.
//
// Built on what Boost.Asio 1.81 does for its own signals (detail/impl/signal_set_service.ipp): an
// operation of the reactor that is never done. It notes the event and leaves the rest to the loop's
// turn.
#pragma once

#include <boost/asio/detail/reactor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>

#include "proto/error.h"

namespace mariner::node {

class WakeDescriptor {
 public:
  // From now on, whenever `fd` becomes readable, run_one() of `context` ends with `woken` set.
  // Whoever reads the descriptor reads it empty: what is left causes no further event. All outlive
  // it. The thread that runs the context, or before it runs.
  static Result<std::unique_ptr<WakeDescriptor>> watch(boost::asio::io_context& context, int fd,
                                                       bool& woken);
  ~WakeDescriptor();
  WakeDescriptor(const WakeDescriptor&) = delete;
  WakeDescriptor& operator=(const WakeDescriptor&) = delete;

 private:
  using Reactor = boost::asio::detail::reactor;

  WakeDescriptor(Reactor& reactor, int fd) : reactor_(reactor), fd_(fd) {}

  Reactor& reactor_;
  const int fd_;
  Reactor::per_descriptor_data data_{};
};

}  // namespace mariner::node
