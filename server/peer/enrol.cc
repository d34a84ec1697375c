#include "server/peer/enrol.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "server/peer/enrolment.h"
#include "server/peer/frame_receiver.h"
#include "server/peer/frame_sender.h"
#include "server/peer/tls_context.h"
#include "server/peer/tls_stream.h"

namespace mariner::peer {
namespace {

using Progress = TlsStream::Progress;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Blocking, but for no longer than `time_max` in one call; also of connect() (socket(7)).
Result<void> connect(int socket, const Endpoint& address, std::chrono::seconds time_max) {
  const timeval time{.tv_sec = time_max.count(), .tv_usec = 0};
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  void* const place = address.v6 ? static_cast<void*>(&v6.sin6_addr) : &v4.sin_addr;
  const auto* const any =
      address.v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const socklen_t length = address.v6 ? sizeof v6 : sizeof v4;
  if (::inet_pton(address.v6 ? AF_INET6 : AF_INET, address.address.c_str(), place) != 1 ||
      ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0 ||
      ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0) {
    return errno_error(errno, to_string(address));
  }
  if (::connect(socket, any, length) == 0) return {};
  const std::string why = errno == EINPROGRESS
                              ? fmt::format("no answer within {} s", time_max.count())
                              : std::strerror(errno);
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot connect to {}: {}; is that node's daemon running, and does a "
                           "firewall let this through?",
                           to_string(address), why)};
}

// A step that has been waited for: not done is over.
Result<std::size_t> done(const Result<TlsStream::Outcome>& outcome, const Endpoint& address) {
  if (outcome && outcome->progress == Progress::kDone) return outcome->bytes;
  const auto failed = [&](ErrorCode code, std::string_view why) {
    return Error{code, fmt::format("{}: {}", to_string(address), why)};
  };
  if (!outcome) return failed(outcome.error().code, outcome.error().message);
  if (outcome->progress == Progress::kEnd) {
    return failed(ErrorCode::kUnavailable, "it has closed the connection; its log may say why");
  }
  return failed(ErrorCode::kUnavailable, "it does not answer");
}

class Reply final : public FrameSink {
 public:
  bool on_frame(std::string_view header, Payload) override {
    header_ = std::string(header);
    return false;
  }
  void on_bad_frame(Error error) override { error_ = std::move(error); }

  std::optional<std::string> header_;
  std::optional<Error> error_;
};

Result<std::string> ask(TlsStream& tls, std::string request, const Endpoint& address) {
  FrameSender sender;
  sender.push(std::move(request), {});
  while (!sender.empty()) {
    const auto bytes = done(tls.write(sender.pending()), address);
    if (!bytes) return bytes.error();
    sender.sent(*bytes);
  }
  FrameReceiver receiver(kEnrolBounds);
  Reply reply;
  while (!receiver.stopped()) {
    const auto bytes = done(tls.read(receiver.prepare()), address);
    if (!bytes) return bytes.error();
    receiver.received(*bytes, reply);
  }
  if (reply.error_) return *reply.error_;
  return std::move(*reply.header_);
}

}  // namespace

Result<NodeIdentity> enrol(const Invitation& invitation, WallTime now,
                           std::chrono::seconds time_max) {
  const auto key = PrivateKey::generate();
  if (!key) return key.error();
  const auto signing_request = make_signing_request(*key);
  if (!signing_request) return signing_request.error();
  const auto context = TlsContext::for_enrolling();
  if (!context) return context.error();

  const Endpoint& address = invitation.address;
  const Socket socket(::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno_error(errno, "socket");
  if (const auto r = connect(socket.get(), address, time_max); !r) return r.error();
  auto tls = TlsStream::over(socket.get(), *context, TlsRole::kDials);
  if (!tls) return tls.error();
  if (const auto r = done(tls->handshake(), address); !r) return r.error();
  const auto authority = find_authority(tls->shown(), invitation.fingerprint, now);
  if (!authority) {
    return Error{authority.error().code,
                 fmt::format("{}: {}", to_string(address), authority.error().message)};
  }
  const auto reply = ask(*tls, make_enrol_request(invitation.secret, *signing_request), address);
  if (!reply) return reply.error();
  tls->close();
  return take_enrol_reply(*reply, *key, *authority, now);
}

}  // namespace mariner::peer
