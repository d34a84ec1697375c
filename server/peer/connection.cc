#include "server/peer/connection.h"

#include <fmt/format.h>

#include <utility>

#include "proto/check.h"
#include "server/peer/hello.h"
#include "server/peer/socket.h"

namespace mariner::peer {

std::unique_ptr<Connection> Connection::dialed(const Environment& environment,
                                               ConnectedSocket socket, std::string node,
                                               Established established) {
  CHECK(!node.empty());
  return std::unique_ptr<Connection>(new Connection(environment, std::move(socket), TlsRole::kDials,
                                                    std::move(node), std::move(established)));
}

std::unique_ptr<Connection> Connection::accepted(const Environment& environment,
                                                 ConnectedSocket socket, Established established) {
  return std::unique_ptr<Connection>(new Connection(environment, std::move(socket),
                                                    TlsRole::kAccepts, {}, std::move(established)));
}

Connection::Connection(const Environment& environment, ConnectedSocket socket, TlsRole role,
                       std::string node, Established established)
    : own_(environment.tls->name()),
      expected_(std::move(node)),
      established_(std::move(established)),
      channel_(Channel::begin(environment, std::move(socket), role, kHelloBounds, *this)) {
  CHECK(established_);
}

Connection::~Connection() { channel_->close(); }

void Connection::secured() {
  CHECK(channel_->send(make_hello(own_), {}));  // the queue is empty
}

void Connection::frame(std::string_view header, Payload payload) {
  if (established_) return take_hello(header);
  observer_->received(header, std::move(payload));
}

void Connection::take_hello(std::string_view header) {
  const std::vector<Certificate> shown = channel_->shown();
  CHECK(!shown.empty());  // TLS demands one
  auto name = check_hello(header, shown.front(), own_, expected_);
  auto established = std::exchange(established_, {});
  if (!name) {
    Error error = name.error();
    error.message = fmt::format("{}: {}", channel_->remote(), error.message);
    channel_->close();
    return established(std::move(error));
  }
  peer_ = std::move(*name);
  channel_->establish();
  established({});  // may have destroyed this
}

void Connection::writable() {
  if (!established_) observer_->writable();
}

void Connection::closed(Error reason) {
  if (established_) return std::exchange(established_, {})(std::move(reason));
  observer_->closed(reason);
}

}  // namespace mariner::peer
