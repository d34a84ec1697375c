#include "server/peer/enrolment_listener.h"

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "proto/check.h"
#include "server/peer/acceptor.h"
#include "server/peer/socket.h"

namespace mariner::peer {

class EnrolmentListener::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Channel::Environment environment, std::size_t connections_max, Inviter& inviter,
       EnrolmentObserver& observer, std::shared_ptr<Acceptor> acceptor)
      : env_(std::move(environment)),
        connections_max_(connections_max),
        inviter_(inviter),
        observer_(observer),
        acceptor_(std::move(acceptor)) {
    CHECK(connections_max_ > 0);
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
    guests_.clear();
  }

  [[nodiscard]] std::vector<Endpoint> addresses() const { return acceptor_->addresses(); }
  [[nodiscard]] std::size_t connections() const { return guests_.size(); }

 private:
  // Whoever is there: to be answered once, and gone when it closes or when its time is over.
  class Guest final : public ChannelUser {
   public:
    Guest(Impl& host, ConnectedSocket socket)
        : host_(host),
          channel_(Channel::begin(host.env_, std::move(socket), TlsRole::kAccepts, kEnrolBounds,
                                  *this)) {}
    ~Guest() override { channel_->close(); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    [[nodiscard]] const std::string& remote() const { return channel_->remote(); }

    void secured() override {}
    void frame(std::string_view header, Payload) override {
      if (std::exchange(answered_, true)) {
        return host_.drop(*this,
                          Error{ErrorCode::kProtocol,
                                fmt::format("{}: it asks again after its answer", remote())});
      }
      const Executor& executor = host_.env_.executor;
      auto answer = host_.inviter_.answer(header, remote(), executor.monotonic_time(),
                                          WallTime(std::chrono::duration_cast<std::chrono::seconds>(
                                              std::chrono::nanoseconds(executor.wall_time().ns))));
      CHECK(channel_->send(std::move(answer.reply), {}));  // the queue is empty
      host_.report(answer.enrolled, remote());
    }
    void writable() override {}
    void closed(Error reason) override {
      // After the answer it is expected to go.
      host_.drop(*this, answered_ ? std::nullopt : std::optional(std::move(reason)));
    }

   private:
    Impl& host_;
    bool answered_ = false;
    std::shared_ptr<Channel> channel_;
  };

  void accept(ConnectedSocket socket) {
    if (guests_.size() >= connections_max_) {
      Guest& oldest = *guests_.front();
      drop(oldest, Error{ErrorCode::kLimit,
                         fmt::format("{}: too many connect to enrol at the same time: at most {} "
                                     "are served",
                                     oldest.remote(), connections_max_)});
    }
    guests_.push_back(std::make_unique<Guest>(*this, std::move(socket)));
  }

  void drop(const Guest& guest, std::optional<Error> reason) {
    guests_.remove_if([&](const auto& other) { return other.get() == &guest; });
    if (reason) observer_.refused(*reason);
  }

  void report(const Result<NodeName>& enrolled, const std::string& remote) {
    if (enrolled) return observer_.enrolled(*enrolled, remote);
    observer_.refused(
        {enrolled.error().code, fmt::format("{}: {}", remote, enrolled.error().message)});
  }

  Channel::Environment env_;
  std::size_t connections_max_;
  Inviter& inviter_;
  EnrolmentObserver& observer_;
  std::shared_ptr<Acceptor> acceptor_;
  std::list<std::unique_ptr<Guest>> guests_;  // oldest first
};

Result<std::unique_ptr<EnrolmentListener>> EnrolmentListener::open(
    Channel::Environment environment, const EnrolmentListenerOptions& options, Inviter& inviter,
    EnrolmentObserver& observer) {
  auto acceptor = Acceptor::open(environment.context, environment.executor, options.addresses);
  if (!acceptor) return acceptor.error();
  return std::unique_ptr<EnrolmentListener>(new EnrolmentListener(std::make_shared<Impl>(
      std::move(environment), options.connections_max, inviter, observer, std::move(*acceptor))));
}

EnrolmentListener::EnrolmentListener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
EnrolmentListener::~EnrolmentListener() { impl_->stop(); }
void EnrolmentListener::start() { impl_->start(); }
std::vector<Endpoint> EnrolmentListener::addresses() const { return impl_->addresses(); }
std::size_t EnrolmentListener::connections() const { return impl_->connections(); }

}  // namespace mariner::peer
