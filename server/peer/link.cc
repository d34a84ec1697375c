#include "server/peer/link.h"

#include <utility>

#include "proto/check.h"
#include "server/peer/dialer.h"
#include "server/peer/socket.h"

namespace mariner::peer {
namespace {

// A connection that lasted for less was none: a node that ends each at once is not dialed faster
// than one that is away.
constexpr auto kLastingTime = std::chrono::seconds(1);

}  // namespace

class Link::Impl final : public ConnectionObserver, public std::enable_shared_from_this<Impl> {
 public:
  Impl(Connection::Environment environment, LinkOptions options, LinkObserver& observer)
      : env_(std::move(environment)),
        options_(std::move(options)),
        observer_(&observer),
        backoff_(options_.backoff) {
    CHECK(!options_.addresses.empty());
  }

  void dial() {
    if (stopped_) return;
    dialer_ = Dialer::dial(env_.context, env_.executor, options_.addresses[next_address_],
                           options_.dial_time_max,
                           [weak = weak_from_this()](Result<ConnectedSocket> socket) {
                             if (const auto self = weak.lock()) self->dialed(std::move(socket));
                           });
  }

  void stop() {
    stopped_ = true;
    if (dialer_) dialer_->stop();
    connection_.reset();
  }

  [[nodiscard]] Connection* connection() const { return up_ ? connection_.get() : nullptr; }

 private:
  void dialed(Result<ConnectedSocket> socket) {
    dialer_.reset();
    if (!socket) return failed(socket.error());
    connection_ = Connection::dialed(env_, std::move(*socket), options_.node,
                                     [this](Result<void> established) {
                                       if (!established) return failed(established.error());
                                       up_ = true;
                                       up_since_ = env_.executor.monotonic_time();
                                       connection_->observe(*this);
                                       observer_->up(*connection_);
                                     });
  }

  void failed(Error reason) {
    connection_.reset();
    next_address_ = (next_address_ + 1) % options_.addresses.size();
    if (next_address_ == 0) {
      wait();
    } else {
      env_.executor.post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->dial();
      });
    }
    observer_->attempt_failed(reason);
  }

  void wait() {
    env_.executor.after(backoff_.next(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->dial();
    });
  }

  void received(std::string_view header, Payload payload) override {
    observer_->received(header, std::move(payload));
  }
  void writable() override { observer_->writable(); }
  void closed(const Error& reason) override {
    if (env_.executor.monotonic_time() - up_since_ >= kLastingTime) backoff_.succeeded();
    up_ = false;
    connection_.reset();
    next_address_ = 0;
    wait();
    observer_->down(reason);
  }

  Connection::Environment env_;
  LinkOptions options_;
  LinkObserver* observer_;
  Backoff backoff_;
  std::size_t next_address_ = 0;
  std::shared_ptr<Dialer> dialer_;
  std::unique_ptr<Connection> connection_;
  bool up_ = false;
  bool stopped_ = false;
  std::chrono::nanoseconds up_since_{0};
};

Link::Link(Connection::Environment environment, LinkOptions options, LinkObserver& observer)
    : impl_(std::make_shared<Impl>(std::move(environment), std::move(options), observer)) {
  impl_->dial();
}

Link::~Link() { impl_->stop(); }

Connection* Link::connection() const { return impl_->connection(); }

}  // namespace mariner::peer
