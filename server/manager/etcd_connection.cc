#include "server/manager/etcd_connection.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "proto/check.h"

namespace mariner::manager {
namespace {

namespace http = boost::beast::http;

constexpr std::uint32_t kHeaderBytesMax = 16u << 10;
constexpr std::size_t kBufferBytesMax = kHeaderBytesMax + (64u << 10);
// A machine that has lost its power says nothing: after so long its connection is given up.
constexpr unsigned kUnacknowledgedMsMax = 5000;
constexpr int kProbeAfterS = 3;

// Options are a help, not needed: a system that refuses one is used without it.
void tune(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kProbeAfterS, sizeof kProbeAfterS);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMsMax,
                     sizeof kUnacknowledgedMsMax);
}

}  // namespace

EtcdConnection::EtcdConnection(boost::asio::io_context& io, Endpoint endpoint)
    : endpoint_(std::move(endpoint)), stream_(io), buffer_(kBufferBytesMax) {}

bool EtcdConnection::reusable() {
  if (ended_ || !connected_) return false;
  // Between exchanges the member has nothing to say, so a byte is as bad as an end. This keeps a
  // request off a connection that a restarted member has forgotten.
  char byte = 0;
  const auto got =
      ::recv(stream_.socket().native_handle(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && buffer_.size() == 0;
}

void EtcdConnection::exchange(EtcdRequest request, Patience patience, Ended ended) {
  take_ = nullptr;
  begin(std::move(request), patience, std::move(ended));
}

void EtcdConnection::stream(EtcdRequest request, Patience patience, TakeLine take, Ended ended) {
  take_ = std::move(take);
  begin(std::move(request), patience, std::move(ended));
}

void EtcdConnection::begin(EtcdRequest request, Patience patience, Ended ended) {
  CHECK(!ended_);
  patience_ = patience;
  ended_ = std::move(ended);
  sent_ = false;
  searched_ = 0;
  request_ = {};
  request_.version(11);
  request_.method(http::verb::post);
  request_.target(boost::beast::string_view(request.path.data(), request.path.size()));
  request_.set(http::field::host, to_string(endpoint_));
  request_.set(http::field::content_type, "application/json");
  // A member without a leader refuses, and ends a watch, instead of being silent: gRPC metadata
  // "hasleader", which the gateway takes from this header.
  request_.set("Grpc-Metadata-hasleader", "true");
  request_.body() = std::move(request.body);
  request_.prepare_payload();
  parser_.emplace();
  parser_->header_limit(kHeaderBytesMax);
  if (take_) {
    parser_->body_limit(boost::none);  // what is kept of it is bounded in take_lines()
  } else {
    parser_->body_limit(kAnswerBytesMax);
  }
  if (connected_) return write();
  connect();
}

void EtcdConnection::connect() {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(endpoint_.address, error);
  // An Endpoint is an address by its type; what is not one cannot be connected to.
  if (error) {
    boost::asio::post(stream_.get_executor(), [self = shared_from_this(), error] {
      self->fail(ErrorCode::kUnavailable, "cannot be connected to", error);
    });
    return;
  }
  stream_.expires_after(patience_.connect);
  stream_.async_connect({address, endpoint_.port}, [self = shared_from_this()](error_code failed) {
    if (failed) return self->fail(ErrorCode::kUnavailable, "cannot be connected to", failed);
    self->connected_ = true;
    tune(self->stream_.socket().native_handle());
    self->write();
  });
}

void EtcdConnection::write() {
  sent_ = true;
  stream_.expires_after(patience_.answer);
  http::async_write(stream_, request_, [self = shared_from_this()](error_code error, std::size_t) {
    // A member that refuses before it has read everything answers, too: read on.
    if (error == boost::beast::error::timeout) {
      return self->fail(ErrorCode::kUnavailable, "does not take a request", error);
    }
    self->read_header();
  });
}

void EtcdConnection::read_header() {
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, std::size_t) {
                            if (error)
                              return self->fail(ErrorCode::kUnavailable, "has not answered", error);
                            self->read_body();
                          });
}

void EtcdConnection::read_body() {
  if (take_ && parser_->get().result() != http::status::ok) {
    take_ = nullptr;
    parser_->body_limit(kAnswerBytesMax);
  }
  if (take_) return read_piece();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, std::size_t) {
                     if (error) {
                       const bool long_one = error == http::error::body_limit;
                       return self->fail(long_one ? ErrorCode::kProtocol : ErrorCode::kUnavailable,
                                         "broke off its answer", error);
                     }
                     self->finish();
                   });
}

void EtcdConnection::read_piece() {
  if (parser_->is_done()) return finish();
  stream_.expires_after(patience_.silence);
  http::async_read_some(stream_, buffer_, *parser_,
                        [self = shared_from_this()](error_code error, std::size_t) {
                          if (!self->ended_) return;
                          if (error) {
                            return self->fail(ErrorCode::kUnavailable, "broke off a watch", error);
                          }
                          if (self->take_lines()) self->read_piece();
                        });
}

// False: the exchange has ended meanwhile.
bool EtcdConnection::take_lines() {
  std::string& body = parser_->get().body();
  std::size_t begin = 0;
  for (auto line_end = body.find('\n', searched_); line_end != std::string::npos;
       line_end = body.find('\n', begin)) {
    const std::string_view line = std::string_view(body).substr(begin, line_end - begin);
    const bool more = line.empty() || take_(line);
    if (!ended_) return false;  // closed from within
    if (!more) {
      end(Error{ErrorCode::kAborted, fmt::format("{} was heard enough", to_string(endpoint_))});
      return false;
    }
    begin = line_end + 1;
  }
  body.erase(0, begin);
  searched_ = body.size();
  if (body.size() <= kAnswerBytesMax) return true;
  fail(ErrorCode::kProtocol, "sends a line without an end", {});
  return false;
}

void EtcdConnection::finish() {
  if (!ended_) return;
  auto& message = parser_->get();
  const bool keep_alive = message.keep_alive() && !take_ && buffer_.size() == 0;
  EtcdAnswer answer{message.result_int(), std::move(message.body())};
  parser_.reset();
  if (!keep_alive) {
    connected_ = false;
    error_code ignored;
    stream_.socket().close(ignored);
  } else {
    stream_.expires_never();
  }
  auto ended = std::exchange(ended_, nullptr);
  ended({sent_, std::move(answer)});
}

void EtcdConnection::fail(ErrorCode code, std::string_view what, const error_code& error) {
  end(Error{code, fmt::format("etcd at {} {}{}{}", to_string(endpoint_), what, error ? ": " : "",
                              error ? error.message() : "")});
}

void EtcdConnection::end(Result<EtcdAnswer> answer) {
  if (!ended_) return;  // closed: nobody waits
  auto ended = std::exchange(ended_, nullptr);
  close();
  ended({sent_, std::move(answer)});
}

void EtcdConnection::close() {
  ended_ = nullptr;
  connected_ = false;
  // Pending operations end with an error and let go of this object.
  error_code ignored;
  stream_.socket().close(ignored);
}

}  // namespace mariner::manager
