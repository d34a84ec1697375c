#include "server/web/http_connection.h"

#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <sstream>
#include <vector>

namespace mariner::web {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

HttpMethod method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return HttpMethod::kGet;
    case http::verb::head: return HttpMethod::kHead;
    case http::verb::post: return HttpMethod::kPost;
    case http::verb::put: return HttpMethod::kPut;
    case http::verb::delete_: return HttpMethod::kDelete;
    default: return HttpMethod::kOther;
  }
}

// 0: not over a unix socket.
pid_t peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

// Status and words for a request that cannot be read; 0 if the client has just gone.
HttpResponse refusal(error_code error) {
  if (error == http::error::body_limit)
    return {413, kPlainText, "the request's body is too long\n", {}};
  if (error == http::error::header_limit)
    return {431, kPlainText, "the request's header is too long\n", {}};
  const bool malformed =
      error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message;
  return {malformed ? 400 : 0, kPlainText, "this is no HTTP request\n", {}};
}

}  // namespace

HttpConnection::HttpConnection(boost::asio::generic::stream_protocol::socket socket,
                               std::shared_ptr<HttpService> service)
    : service_(std::move(service)),
      stream_(std::move(socket)),
      buffer_(service_->limits.header_bytes + (64u << 10)),
      peer_(peer_of(stream_.socket().native_handle())) {
  ++service_->connections;
}

HttpConnection::~HttpConnection() { --service_->connections; }

void HttpConnection::close() {
  // Pending operations end with an error and let go of this object.
  error_code ignored;
  stream_.socket().close(ignored);
  if (gone_) std::exchange(gone_, nullptr)();
}

void HttpConnection::read_request() {
  parser_.emplace();
  parser_->header_limit(service_->limits.header_bytes);
  parser_->body_limit(service_->limits.body_bytes);
  stream_.expires_after(service_->limits.read_timeout);
  http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, std::size_t) { self->request_read(error); });
}

void HttpConnection::request_read(error_code error) {
  if (error) return refuse(error);
  auto& message = parser_->get();
  keep_alive_ = message.keep_alive();
  head_ = message.method() == http::verb::head;
  if (!service_->handler) return close();

  HttpRequest request;
  request.method = method_of(message.method());
  const std::string_view target(message.target().data(), message.target().size());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.body = std::move(message.body());
  request.peer = peer_;
  parser_.reset();
  service_->handler(std::move(request), HttpReply(shared_from_this()));
}

void HttpConnection::refuse(error_code error) {
  auto response = refusal(error);
  if (response.status == 0) return close();
  keep_alive_ = false;
  head_ = false;
  write_response(std::move(response));
}

void HttpConnection::send(HttpResponse response) {
  if (bytes_) return close();  // it was dropped: what came before it is not all
  if (!streaming_) return write_response(std::move(response));
  last_line_ = std::move(response.body);
  if (!writing_) write_lines();
}

void HttpConnection::write_response(HttpResponse response) {
  response_.emplace(static_cast<http::status>(response.status), 11);
  response_->set(http::field::server, "mariner");
  response_->set(
      http::field::content_type,
      boost::beast::string_view(response.content_type.data(), response.content_type.size()));
  response_->set(http::field::cache_control, "no-store");
  if (!response.allow.empty()) response_->set(http::field::allow, response.allow);
  response_->keep_alive(keep_alive_);
  std::uint64_t length = response.body.size();
  for (const PayloadSlice& each : response.slices) length += each.length;
  response_->content_length(length);
  if (!head_) response_->body() = std::move(response.body);
  keeps_ = std::move(response.keeps);
  stream_.expires_after(service_->limits.write_timeout);
  if (!head_ && !response.slices.empty()) return write_slices(std::move(response.slices));
  http::async_write(
      stream_, *response_,
      [self = shared_from_this()](error_code error, std::size_t) { self->answered(error); });
}

void HttpConnection::write_slices(std::vector<PayloadSlice> slices) {
  std::ostringstream head;
  head << response_->base();
  head_and_body_ = std::move(head).str() + response_->body();
  slices_ = std::move(slices);
  std::vector<boost::asio::const_buffer> buffers{boost::asio::buffer(head_and_body_)};
  for (const PayloadSlice& each : slices_) {
    buffers.emplace_back(each.bytes().data(), each.length);
  }
  boost::asio::async_write(
      stream_, buffers,
      [self = shared_from_this()](error_code error, std::size_t) { self->answered(error); });
}

void HttpConnection::progress(std::string line) {
  if (head_) return;
  pending_line_ = std::move(line);
  if (!streaming_) return begin_stream("application/x-ndjson", [this] { write_lines(); });
  if (!writing_) write_lines();
}

void HttpConnection::begin_stream(std::string_view content_type, UniqueFunction<void()> begun) {
  streaming_ = true;
  writing_ = true;
  response_.emplace(http::status::ok, 11);
  response_->set(http::field::server, "mariner");
  response_->set(http::field::content_type,
                 boost::beast::string_view(content_type.data(), content_type.size()));
  response_->keep_alive(keep_alive_);
  response_->chunked(true);
  serializer_.emplace(*response_);
  stream_.expires_after(service_->limits.write_timeout);
  http::async_write_header(
      stream_, *serializer_,
      [self = shared_from_this(), begun = std::move(begun)](error_code error, std::size_t) mutable {
        if (error) return self->close();
        begun();
      });
}

void HttpConnection::write_lines() {
  auto& next = pending_line_ ? pending_line_ : last_line_;
  const bool last = !pending_line_ && last_line_;
  if (!next) {
    writing_ = false;
    return;
  }
  writing_ = true;
  line_ = *std::move(next);
  next.reset();
  stream_.expires_after(service_->limits.write_timeout);
  boost::asio::async_write(stream_, http::make_chunk(boost::asio::buffer(line_)),
                           [self = shared_from_this(), last](error_code error, std::size_t) {
                             if (error) return self->close();
                             if (last) {
                               self->end_stream();
                             } else {
                               self->write_lines();
                             }
                           });
}

void HttpConnection::end_stream() {
  streaming_ = false;
  writing_ = false;
  serializer_.reset();
  boost::asio::async_write(
      stream_, http::make_chunk_last(),
      [self = shared_from_this()](error_code error, std::size_t) { self->answered(error); });
}

void HttpConnection::on_gone(UniqueFunction<void()> gone) {
  gone_ = std::move(gone);
  // (Once: who sends more meanwhile is not watched any further.)
  stream_.socket().async_wait(boost::asio::socket_base::wait_read,
                              [weak = weak_from_this()](error_code error) {
                                const auto self = weak.lock();
                                if (self == nullptr || !self->gone_) return;
                                if (error || self->has_hung_up()) self->close();
                              });
}

bool HttpConnection::has_hung_up() {
  char next = 0;
  const ssize_t came = ::recv(stream_.socket().native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void HttpConnection::write(std::string bytes, UniqueFunction<void()> taken) {
  CHECK(!bytes.empty() && !writing_);
  line_ = std::move(bytes);
  taken_ = std::move(taken);
  writing_ = true;
  if (std::exchange(bytes_, true)) return write_bytes();
  begin_stream(kOctets, [this] { write_bytes(); });
}

void HttpConnection::write_bytes() {
  stream_.expires_after(service_->limits.stream_timeout);
  boost::asio::async_write(stream_, http::make_chunk(boost::asio::buffer(line_)),
                           [self = shared_from_this()](error_code error, std::size_t) {
                             self->writing_ = false;
                             UniqueFunction<void()> taken = std::move(self->taken_);
                             // (Closed meanwhile: who would make the next ones may be gone.)
                             if (error || !self->stream_.socket().is_open()) return self->close();
                             taken();
                           });
}

void HttpConnection::end(HttpTrailers trailers) {
  CHECK(!writing_);
  trailers_.clear();
  for (const auto& [name, value] : trailers) trailers_.set(name, value);
  if (std::exchange(bytes_, true)) return write_trailers();
  begin_stream(kOctets, [this] { write_trailers(); });
}

void HttpConnection::write_trailers() {
  streaming_ = false;
  writing_ = false;
  bytes_ = false;
  serializer_.reset();
  gone_.reset();
  stream_.expires_after(service_->limits.write_timeout);
  boost::asio::async_write(
      stream_, http::make_chunk_last(trailers_),
      [self = shared_from_this()](error_code error, std::size_t) { self->answered(error); });
}

void HttpConnection::answered(error_code error) {
  gone_.reset();
  response_.reset();
  slices_.clear();
  keeps_.reset();
  if (error || !keep_alive_ || !service_->handler) return close();
  read_request();
}

}  // namespace mariner::web
