// Listening sockets: whoever connects is handed on as a connected socket. Heavy (Boost.Asio): only
// sources include this file.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "proto/executor.h"
#include "proto/unique_function.h"
#include "server/peer/socket.h"

namespace mariner::peer {

class Acceptor final : public std::enable_shared_from_this<Acceptor> {
 public:
  using Accepted = UniqueFunction<void(ConnectedSocket)>;
  // The system refuses to accept, most likely for lack of descriptors. Accepting goes on later.
  using Failed = UniqueFunction<void(const Error&)>;

  // Binds and listens on every address, or none: kIo, naming the address. Port 0: any free one.
  // Whoever connects waits in the system's backlog until start().
  [[nodiscard]] static Result<std::shared_ptr<Acceptor>> open(
      boost::asio::io_context& context, Executor& executor, const std::vector<Endpoint>& addresses);

  // Once. On the Executor's thread from then on.
  void start(Accepted accepted, Failed failed);
  // Nothing is accepted any more, and nothing called.
  void stop();

  // The addresses that are listened on, with the ports that were chosen.
  [[nodiscard]] std::vector<Endpoint> addresses() const { return addresses_; }

 private:
  Acceptor(boost::asio::io_context& context, Executor& executor)
      : context_(context), executor_(executor) {}
  Result<void> listen(const Endpoint& address);
  void accept_from(std::size_t listener);
  bool accept_one(std::size_t listener);

  boost::asio::io_context& context_;
  Executor& executor_;
  std::vector<boost::asio::ip::tcp::acceptor> listeners_;
  std::vector<Endpoint> addresses_;
  Accepted accepted_;
  Failed failed_;
  bool stopped_ = false;
};

}  // namespace mariner::peer
