// Connects to an address. Heavy (Boost.Asio): only sources include
// this file.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "proto/executor.h"
#include "proto/unique_function.h"
#include "server/peer/socket.h"

namespace mariner::peer {

class Dialer final : public std::enable_shared_from_this<Dialer> {
 public:
  using Done = UniqueFunction<void(Result<ConnectedSocket>)>;

  // Tries one address, and gives up after `time_max`. `done` is called once, later, unless stop()
  // came before. kUnavailable.
  [[nodiscard]] static std::shared_ptr<Dialer> dial(boost::asio::io_context& context,
                                                    Executor& executor, const Endpoint& address,
                                                    std::chrono::nanoseconds time_max, Done done);
  void stop();

 private:
  explicit Dialer(boost::asio::io_context& context, Done done)
      : socket_(context), done_(std::move(done)) {}
  void finish(Result<void> connected, const Endpoint& address);

  boost::asio::ip::tcp::socket socket_;
  Done done_;
};

}  // namespace mariner::peer
