#include "server/peer/dialer.h"

#include <fmt/format.h>

#include <utility>

namespace mariner::peer {

using boost::asio::ip::tcp;
using boost::system::error_code;

std::shared_ptr<Dialer> Dialer::dial(boost::asio::io_context& context, Executor& executor,
                                     const Endpoint& address, std::chrono::nanoseconds time_max,
                                     Done done) {
  std::shared_ptr<Dialer> dialer(new Dialer(context, std::move(done)));
  error_code error;
  const auto ip = boost::asio::ip::make_address(address.address, error);
  if (error) {  // an Endpoint is checked: not one that parse_endpoint() has made
    executor.post([dialer, address, error] {
      dialer->finish(Error{ErrorCode::kInvalidArgument, error.message()}, address);
    });
    return dialer;
  }
  dialer->socket_.async_connect(
      tcp::endpoint(ip, address.port), [dialer, address](const error_code& failed) {
        if (!failed) return dialer->finish({}, address);
        dialer->finish(Error{ErrorCode::kUnavailable, failed.message()}, address);
      });
  executor.after(time_max, [weak = std::weak_ptr(dialer), address, time_max] {
    if (const auto self = weak.lock()) {
      self->finish(Error{ErrorCode::kUnavailable,
                         fmt::format("no answer within {:.1f} s",
                                     std::chrono::duration<double>(time_max).count())},
                   address);
    }
  });
  return dialer;
}

void Dialer::stop() {
  done_ = {};
  error_code ignored;
  socket_.close(ignored);
}

void Dialer::finish(Result<void> connected, const Endpoint& address) {
  if (!done_) return;  // over already
  auto done = std::exchange(done_, {});
  if (connected) return done(ConnectedSocket{std::move(socket_), to_string(address)});
  error_code ignored;
  socket_.close(ignored);
  done(Error{connected.error().code, fmt::format("cannot connect to {}: {}", to_string(address),
                                                 connected.error().message)});
}

}  // namespace mariner::peer
