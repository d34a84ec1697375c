// What a burst of received PDUs makes us say is gathered and sent with one sendmsg when the events
// at hand have been handled (Executor::defer). So is the removal of connections that have ended:
// nothing disappears while it is on the stack.
#include "server/iscsi/portal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <charconv>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "proto/check.h"
#include "server/iscsi/connection_socket.h"
#include "server/iscsi/load_switch.h"
#include "server/iscsi/socket_threads.h"

namespace mariner::iscsi {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kAcceptsPerEvent = 16;
constexpr int kListenBacklog = 512;
constexpr auto kTickInterval = std::chrono::seconds(1);
constexpr auto kAcceptRetryDelay = std::chrono::milliseconds(100);

bool of_one_link(const asio::ip::address& address) {
  return address.is_v6() && address.to_v6().is_link_local();
}

// Without the zone of a link-local address: it is of this machine only, and TargetAddress has no
// place for it (RFC 7143 13.8).
std::string to_text(const tcp::endpoint& endpoint) {
  const std::string text = endpoint.address().to_string();
  const std::string address = text.substr(0, text.find('%'));
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

Result<tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto bad = [&](std::string_view what) {
    return Error{ErrorCode::kInvalidArgument, "portal address \"" + std::string(text) +
                                                  "\": " + std::string(what) +
                                                  "; write it like 0.0.0.0:3260 or [::]:3260"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("it has no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') != host.ends_with(']')) return bad("unbalanced brackets");
  const bool bracketed = host.starts_with('[');
  if (bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data() + colon + 1, end, port);
  if (failed != std::errc{} || stopped != end) return bad("its port is no number up to 65535");
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error || address.is_v6() != bracketed) return bad("it is no IP address");
  return tcp::endpoint(address, port);
}

Error system_error(const error_code& error, std::string_view what) {
  return Error{ErrorCode::kIo, std::string(what) + ": " + error.message()};
}

// A dead peer's connection must end even where no ping is answered or due: the kernel probes too.
void set_socket_options(tcp::socket& socket) {
  error_code ignored;  // what cannot be set only makes it slower
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set_int = [&](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set_int(TCP_KEEPIDLE, 60);
  set_int(TCP_KEEPINTVL, 10);
  set_int(TCP_KEEPCNT, 3);
}

}  // namespace

class Portal::Impl final : public SocketOwner, public std::enable_shared_from_this<Impl> {
 public:
  Impl(PortalOptions options, const Environment& environment)
      : options_(std::move(options)),
        env_(environment),
        sessions_(std::make_shared<SessionRegistry>(options_.iscsi)),
        load_(options_.socket_threads_load) {}

  [[nodiscard]] Result<void> listen();
  void start();
  void stop(std::uint16_t seconds, UniqueFunction<void()> done);
  void shut();

  [[nodiscard]] std::vector<std::string> addresses() const;
  [[nodiscard]] std::size_t connections() const { return sockets_.size(); }
  [[nodiscard]] std::size_t lent() const { return threads_ ? threads_->lent() : 0; }
  [[nodiscard]] SessionRegistry& sessions() { return *sessions_; }

 private:
  using Socket = ConnectionSocket;
  using SocketList = std::list<std::shared_ptr<Socket>>;

  // SocketOwner
  void note(std::shared_ptr<Socket> socket) override;
  [[nodiscard]] SocketThreads* lender() const override {
    return load_.on() ? threads_.get() : nullptr;
  }
  [[nodiscard]] std::size_t lent_pdu_bytes() const override { return options_.lent_pdu_bytes; }

  void accept_from(std::size_t listener);
  bool accept_one(std::size_t listener);
  void make_room();
  void pause_accepting(std::size_t listener, const error_code& error);
  void look_at_load();
  void defer_settle();
  void settle();
  void remove(const Socket& socket);
  void tick();
  [[nodiscard]] std::vector<PortalAddress> announced(const tcp::endpoint& local,
                                                     std::uint16_t group) const;

  PortalOptions options_;
  Environment env_;
  std::shared_ptr<SessionRegistry> sessions_;
  std::vector<tcp::acceptor> listeners_;
  LoadSwitch load_;
  std::unique_ptr<SocketThreads> threads_;  // null: every socket stays with the loop
  SocketList sockets_;                      // oldest first
  std::vector<std::shared_ptr<Socket>> noted_;
  std::vector<std::shared_ptr<Socket>> settling_;
  bool settle_deferred_ = false;
  bool started_ = false;
  bool shut_ = false;
  UniqueFunction<void()> stopped_;
};

Result<void> Portal::Impl::listen() {
  for (const auto& [text, group] : options_.addresses) {
    const auto endpoint = parse_endpoint(text);
    if (!endpoint) return endpoint.error();
    error_code error;
    tcp::acceptor listener(env_.context);
    listener.open(endpoint->protocol(), error);
    if (!error) listener.set_option(tcp::acceptor::reuse_address(true), error);
    // So that 0.0.0.0 and [::] can both be listened on.
    if (!error && endpoint->address().is_v6()) {
      listener.set_option(asio::ip::v6_only(true), error);
    }
    if (!error) listener.non_blocking(true, error);
    if (!error) listener.bind(*endpoint, error);
    if (!error) listener.listen(kListenBacklog, error);
    if (error) return system_error(error, "cannot listen on " + text);
    listeners_.push_back(std::move(listener));
  }
  if (options_.socket_threads == 0) return {};
  auto threads = SocketThreads::start(options_.socket_threads, env_.executor);
  if (!threads) return threads.error();
  threads_ = std::move(*threads);
  return {};
}

void Portal::Impl::start() {
  CHECK(!std::exchange(started_, true));
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    CHECK_MSG(listeners_[i].is_open(), "a portal is started that was stopped");
    accept_from(i);
  }
  tick();
}

std::vector<std::string> Portal::Impl::addresses() const {
  std::vector<std::string> texts;
  for (const auto& listener : listeners_) {
    error_code ignored;
    texts.push_back(to_text(listener.local_endpoint(ignored)));
  }
  return texts;
}

// What SendTargets answers on a connection to `local`: the address that was reachable, and all
// others that were named one by one. A portal that listens on every address is at that one, too.
std::vector<PortalAddress> Portal::Impl::announced(const tcp::endpoint& local,
                                                   std::uint16_t group) const {
  std::vector<PortalAddress> all{{to_text(local), group}};
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    error_code error;
    auto endpoint = listeners_[i].local_endpoint(error);
    if (error) continue;
    if (endpoint.address().is_unspecified()) {
      if (endpoint.protocol() != local.protocol()) continue;
      endpoint.address(local.address());
    } else if (of_one_link(endpoint.address()) && endpoint.address() != local.address()) {
      continue;
    }
    PortalAddress other{to_text(endpoint), options_.addresses[i].group};
    const bool known = std::ranges::find(all, other.address, &PortalAddress::address) != all.end();
    if (!known) all.push_back(std::move(other));
  }
  return all;
}

void Portal::Impl::accept_from(std::size_t listener) {
  listeners_[listener].async_wait(
      tcp::acceptor::wait_read, [self = shared_from_this(), listener](const error_code& error) {
        if (error || self->shut_ || !self->listeners_[listener].is_open()) return;
        for (int i = 0; i < kAcceptsPerEvent; ++i) {
          if (!self->accept_one(listener)) return;
        }
        self->accept_from(listener);
      });
}

// False when there is no connection left to accept; accepting has been arranged for then.
bool Portal::Impl::accept_one(std::size_t listener) {
  error_code error;
  tcp::socket socket(env_.context);
  tcp::endpoint remote;
  listeners_[listener].accept(socket, remote, error);
  if (error == asio::error::would_block || error == asio::error::try_again) {
    accept_from(listener);
    return false;
  }
  if (error == asio::error::connection_aborted) return true;
  if (error) {
    pause_accepting(listener, error);
    return false;
  }
  const auto local = socket.local_endpoint(error);
  if (!error) socket.non_blocking(true, error);
  if (error) return true;  // gone already
  set_socket_options(socket);
  make_room();
  const std::uint16_t group = options_.addresses[listener].group;
  auto accepted = std::make_shared<Socket>(
      *this, std::move(socket),
      Connection::Environment{.options = options_.iscsi,
                              .directory = env_.directory,
                              .registry = *sessions_,
                              .observer = env_.observer,
                              .host = nullptr,
                              .executor = env_.executor,
                              .endpoints = {.address = to_text(remote), .portal = to_text(local)},
                              .portal_group = group,
                              .portal_addresses = announced(local, group)});
  sockets_.push_back(accepted);
  accepted->start();
  return true;
}

void Portal::Impl::make_room() {
  const auto in_login = [](const auto& socket) { return socket->connection().in_login(); };
  const auto logins = std::count_if(sockets_.begin(), sockets_.end(), in_login);
  const bool full = sockets_.size() >= options_.connections_max ||
                    static_cast<std::size_t>(logins) >= options_.login_connections_max;
  if (!full) return;
  const auto oldest = std::find_if(sockets_.begin(), sockets_.end(), in_login);
  if (oldest == sockets_.end()) return;
  (*oldest)->connection().end(EndReason::kCrowdedOut, std::to_string(sockets_.size()) +
                                                          " connections, " +
                                                          std::to_string(logins) +
                                                          " of them before the end of their login");
}

// Out of descriptors, most likely. The listener would be ready at once again: wait a little.
void Portal::Impl::pause_accepting(std::size_t listener, const error_code& error) {
  env_.observer.portal_failed(options_.addresses[listener].address, "accept: " + error.message());
  make_room();
  env_.executor.after(kAcceptRetryDelay, [weak = weak_from_this(), listener] {
    const auto self = weak.lock();
    if (self && !self->shut_ && self->listeners_[listener].is_open()) self->accept_from(listener);
  });
}

void Portal::Impl::note(std::shared_ptr<Socket> socket) {
  noted_.push_back(std::move(socket));
  defer_settle();
}

void Portal::Impl::defer_settle() {
  if (std::exchange(settle_deferred_, true)) return;
  env_.executor.defer([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->settle();
  });
}

void Portal::Impl::settle() {
  settle_deferred_ = false;
  look_at_load();
  // Settling one may note others, for the next turn.
  settling_.swap(noted_);
  for (const auto& socket : settling_) {
    if (!socket->settle()) remove(*socket);
  }
  settling_.clear();
  sessions_->feed_starved();
  if (stopped_ && sockets_.empty()) std::exchange(stopped_, {})();
}

// So that the loop has time for what is its alone.
void Portal::Impl::look_at_load() {
  if (!threads_ || !env_.busy_time) return;
  const std::chrono::nanoseconds now = env_.executor.monotonic_time();
  if (load_.due(now)) load_.look(now, env_.busy_time());
}

void Portal::Impl::remove(const Socket& socket) {
  const auto found = std::find_if(sockets_.begin(), sockets_.end(),
                                  [&](const auto& s) { return s.get() == &socket; });
  if (found == sockets_.end()) return;
  (*found)->close();
  sockets_.erase(found);
}

void Portal::Impl::tick() {
  if (shut_) return;
  for (const auto& socket : sockets_) socket->tick();
  env_.executor.after(kTickInterval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void Portal::Impl::stop(std::uint16_t seconds, UniqueFunction<void()> done) {
  CHECK(!stopped_);
  stopped_ = std::move(done);
  error_code ignored;
  for (auto& listener : listeners_) listener.close(ignored);
  sessions_->drain(seconds);
  for (const auto& socket : sockets_) {
    if (socket->connection().in_login()) socket->connection().end(EndReason::kShutdown, {});
  }
  env_.executor.after(std::chrono::seconds(seconds), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sessions_->close_all(EndReason::kShutdown);
  });
  defer_settle();
}

void Portal::Impl::shut() {
  shut_ = true;
  error_code ignored;
  for (auto& listener : listeners_) listener.close(ignored);
  for (const auto& socket : std::exchange(sockets_, {})) socket->close();
  noted_.clear();
  threads_.reset();
}

Result<std::unique_ptr<Portal>> Portal::open(PortalOptions options,
                                             const Environment& environment) {
  auto impl = std::make_shared<Impl>(std::move(options), environment);
  const auto listening = impl->listen();
  if (!listening) return listening.error();
  return std::unique_ptr<Portal>(new Portal(std::move(impl)));
}

Portal::Portal(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Portal::~Portal() { impl_->shut(); }
void Portal::start() { impl_->start(); }
std::vector<std::string> Portal::addresses() const { return impl_->addresses(); }
std::size_t Portal::connections() const { return impl_->connections(); }
std::size_t Portal::lent_connections() const { return impl_->lent(); }
SessionRegistry& Portal::sessions() { return impl_->sessions(); }
void Portal::stop(std::uint16_t seconds, UniqueFunction<void()> done) {
  impl_->stop(seconds, std::move(done));
}

}  // namespace mariner::iscsi
