#include "server/peer/listener.h"

#include <fmt/format.h>

#include <list>
#include <utility>

#include "proto/check.h"
#include "server/peer/acceptor.h"
#include "server/peer/socket.h"

namespace mariner::peer {

class Listener::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Connection::Environment environment, std::size_t unknown_max, ListenerObserver& observer,
       std::shared_ptr<Acceptor> acceptor)
      : env_(std::move(environment)),
        unknown_max_(unknown_max),
        observer_(observer),
        acceptor_(std::move(acceptor)) {
    CHECK(unknown_max_ > 0);
  }

  void start() {
    acceptor_->start(
        [weak = weak_from_this()](ConnectedSocket socket) {
          if (const auto self = weak.lock()) self->accept(std::move(socket));
        },
        [weak = weak_from_this()](const Error& error) {
          if (const auto self = weak.lock()) self->observer_.refused(error);
        });
  }

  void stop() {
    acceptor_->stop();
    unknown_.clear();
  }

  [[nodiscard]] std::vector<Endpoint> addresses() const { return acceptor_->addresses(); }
  [[nodiscard]] std::size_t unknown() const { return unknown_.size(); }

 private:
  using Unknown = std::list<std::unique_ptr<Connection>>;  // oldest first

  void accept(ConnectedSocket socket) {
    if (unknown_.size() >= unknown_max_) crowd_out();
    const auto place = unknown_.emplace(unknown_.end());
    *place = Connection::accepted(env_, std::move(socket), [this, place](Result<void> established) {
      finish(place, established);
    });
  }

  void finish(Unknown::iterator place, const Result<void>& established) {
    std::unique_ptr<Connection> connection = std::move(*place);
    unknown_.erase(place);
    if (established) return observer_.accepted(std::move(connection));
    const Error reason = established.error();
    connection.reset();
    observer_.refused(reason);
  }

  void crowd_out() {
    const Error reason{ErrorCode::kLimit,
                       fmt::format("{}: it had not said who it is when connection number {} came, "
                                   "and at most {} of such are kept",
                                   unknown_.front()->remote(), unknown_.size() + 1, unknown_max_)};
    unknown_.pop_front();
    observer_.refused(reason);
  }

  Connection::Environment env_;
  std::size_t unknown_max_;
  ListenerObserver& observer_;
  std::shared_ptr<Acceptor> acceptor_;
  Unknown unknown_;
};

Result<std::unique_ptr<Listener>> Listener::open(Connection::Environment environment,
                                                 const ListenerOptions& options,
                                                 ListenerObserver& observer) {
  auto acceptor = Acceptor::open(environment.context, environment.executor, options.addresses);
  if (!acceptor) return acceptor.error();
  return std::unique_ptr<Listener>(new Listener(std::make_shared<Impl>(
      std::move(environment), options.unknown_max, observer, std::move(*acceptor))));
}

Listener::Listener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() { impl_->stop(); }
void Listener::start() { impl_->start(); }
std::vector<Endpoint> Listener::addresses() const { return impl_->addresses(); }
std::size_t Listener::unknown() const { return impl_->unknown(); }

}  // namespace mariner::peer
