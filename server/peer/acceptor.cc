#include "server/peer/acceptor.h"

#include <fmt/format.h>

#include <boost/asio/ip/v6_only.hpp>
#include <chrono>
#include <utility>

#include "proto/check.h"

namespace mariner::peer {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 128;
constexpr int kAcceptsPerEvent = 16;
constexpr auto kRetryDelay = std::chrono::milliseconds(100);

Endpoint endpoint_of(const tcp::endpoint& endpoint) {
  return {.address = endpoint.address().to_string(),
          .port = endpoint.port(),
          .v6 = endpoint.address().is_v6()};
}

}  // namespace

Result<std::shared_ptr<Acceptor>> Acceptor::open(boost::asio::io_context& context,
                                                 Executor& executor,
                                                 const std::vector<Endpoint>& addresses) {
  std::shared_ptr<Acceptor> acceptor(new Acceptor(context, executor));
  for (const Endpoint& address : addresses) {
    if (auto r = acceptor->listen(address); !r) return r.error();
  }
  return acceptor;
}

Result<void> Acceptor::listen(const Endpoint& address) {
  error_code error;
  tcp::acceptor listener(context_);
  const auto ip = boost::asio::ip::make_address(address.address, error);
  const tcp::endpoint endpoint(ip, address.port);
  if (!error) listener.open(endpoint.protocol(), error);
  if (!error) listener.set_option(tcp::acceptor::reuse_address(true), error);
  // So that 0.0.0.0 and [::] can both be listened on.
  if (!error && ip.is_v6()) listener.set_option(boost::asio::ip::v6_only(true), error);
  if (!error) listener.non_blocking(true, error);
  if (!error) listener.bind(endpoint, error);
  if (!error) listener.listen(kBacklog, error);
  if (error) {
    return Error{ErrorCode::kIo,
                 fmt::format("cannot listen on {}: {}", to_string(address), error.message())};
  }
  addresses_.push_back(endpoint_of(listener.local_endpoint(error)));
  listeners_.push_back(std::move(listener));
  return {};
}

void Acceptor::start(Accepted accepted, Failed failed) {
  CHECK(!accepted_ && !stopped_);
  accepted_ = std::move(accepted);
  failed_ = std::move(failed);
  for (std::size_t i = 0; i < listeners_.size(); ++i) accept_from(i);
}

void Acceptor::stop() {
  stopped_ = true;
  error_code ignored;
  for (auto& listener : listeners_) listener.close(ignored);
}

void Acceptor::accept_from(std::size_t listener) {
  listeners_[listener].async_wait(tcp::acceptor::wait_read,
                                  [self = shared_from_this(), listener](const error_code& error) {
                                    if (error || self->stopped_) return;
                                    for (int i = 0; i < kAcceptsPerEvent; ++i) {
                                      if (!self->accept_one(listener)) return;
                                    }
                                    self->accept_from(listener);
                                  });
}

// False when there is nobody left to accept, for now or for good; accepting is arranged for.
bool Acceptor::accept_one(std::size_t listener) {
  error_code error;
  tcp::socket socket(context_);
  tcp::endpoint remote;
  listeners_[listener].accept(socket, remote, error);
  if (error == boost::asio::error::would_block || error == boost::asio::error::try_again) {
    accept_from(listener);
    return false;
  }
  if (error == boost::asio::error::connection_aborted) return true;
  if (error) {
    // The listener would be ready at once again: wait a little.
    executor_.after(kRetryDelay, [self = shared_from_this(), listener] {
      if (!self->stopped_) self->accept_from(listener);
    });
    failed_({ErrorCode::kIo, fmt::format("cannot accept on {}: {}", to_string(addresses_[listener]),
                                         error.message())});
    return false;
  }
  accepted_({std::move(socket), to_string(endpoint_of(remote))});
  return !stopped_;
}

}  // namespace mariner::peer
