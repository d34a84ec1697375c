#include "server/iscsi/connection_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "proto/error.h"

namespace mariner::iscsi {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kSendPlacesMax = 128;
// Reads of one socket before others have their turn.
constexpr int kReadsPerEvent = 4;
// Over which their length is judged.
constexpr std::uint64_t kPdusJudged = 128;

bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

tcp protocol_of(const tcp::socket& socket) {
  error_code ignored;
  return socket.local_endpoint(ignored).protocol();
}

Connection::Environment hosted_by(ConnectionHost& host, Connection::Environment environment) {
  environment.host = &host;
  return environment;
}

}  // namespace

ConnectionSocket::ConnectionSocket(SocketOwner& owner, tcp::socket socket,
                                   Connection::Environment environment)
    : owner_(owner),
      socket_(std::move(socket)),
      protocol_(protocol_of(socket_)),
      connection_(hosted_by(*this, std::move(environment))),
      long_pdus_(owner.lent_pdu_bytes() == 0) {}

bool ConnectionSocket::settle() {
  noted_ = false;
  if (!is_open()) return false;
  lend_or_take_back();
  if (!is_open()) return false;
  send();
  if (connection_.closing()) {
    if (broken_ || connection_.overdue()) return false;
    if (loan_) return true;  // it comes back first
    // Our last words must not be overtaken by a reset: say that they are the last, and read until
    // the peer closes its side.
    if (!connection_.has_output() && !std::exchange(shut_down_, true)) {
      error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
    }
    if (shut_down_) wait_to_read();
    return !finished_;
  }
  if (connection_.wants_input()) wait_to_read();
  return true;
}

void ConnectionSocket::tick() {
  connection_.tick();
  if (connection_.overdue()) output_ready();
  if (std::exchange(heard_, false)) return;
  // One that is silent needs no place to receive to, and no thread.
  active_ = false;
  if (loan_) output_ready();
}

void ConnectionSocket::close() {
  connection_.end(EndReason::kShutdown, {});
  if (loan_) {
    loan_.reset();
    ::close(std::exchange(lent_fd_, -1));
  }
  error_code ignored;
  socket_.close(ignored);
}

void ConnectionSocket::output_ready() {
  if (!std::exchange(noted_, true)) owner_.note(shared_from_this());
}

// --- With the loop ------------------------------------------------------------------------

void ConnectionSocket::wait_to_read() {
  if (loan_) {
    if (loan_->receiving()) return;
    std::array<iovec, 2> places{};
    const std::size_t count = connection_.prepare(places);
    if (count > 0) loan_->receive(std::span(places).first(count), connection_.awaited_bytes());
    return;
  }
  if (std::exchange(waits_to_read_, true)) return;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this(),
                                              generation = generation_](const error_code& error) {
    if (self->generation_ != generation) return;
    self->waits_to_read_ = false;
    if (!error) self->readable();
  });
}

void ConnectionSocket::readable() {
  if (!socket_.is_open()) return;
  for (int reads = 0; reads < kReadsPerEvent; ++reads) {
    if (connection_.closing() ? !discard() : !read()) break;
  }
  // For what was said, and to wait again.
  output_ready();
}

// One recvmsg. False when the socket is empty, or nothing is wanted of it.
bool ConnectionSocket::read() {
  if (!connection_.wants_input()) return false;
  std::array<iovec, 2> places{};
  const std::size_t count = connection_.prepare(places);
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = count;
  const ssize_t bytes = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT);
  if (bytes > 0) {
    heard_ = active_ = true;
    connection_.received(static_cast<std::size_t>(bytes));
    return static_cast<std::size_t>(bytes) == bytes_of(std::span(places).first(count));
  }
  if (bytes == 0) {
    peer_closed();
  } else if (!would_block(errno)) {
    fail(errno);
  }
  return false;
}

bool ConnectionSocket::discard() {
  std::array<std::byte, 4096> nowhere;
  const ssize_t bytes =
      ::recv(socket_.native_handle(), nowhere.data(), nowhere.size(), MSG_DONTWAIT);
  if (bytes == 0 || (bytes < 0 && !would_block(errno))) finished_ = true;
  return bytes > 0;
}

void ConnectionSocket::send() {
  std::array<iovec, kSendPlacesMax> places;
  if (loan_) {
    // What is to come back comes back when it has sent what it was given.
    if (comes_back_ || broken_ || loan_->sending() || !connection_.has_output()) return;
    const std::span<const iovec> pending = std::span(places).first(connection_.pending(places));
    send_bytes_ = bytes_of(pending);
    loan_->send(pending);
    return;
  }
  while (connection_.has_output() && !broken_ && !waits_to_write_) {
    msghdr message{};
    message.msg_iov = places.data();
    message.msg_iovlen = connection_.pending(places);
    const ssize_t bytes = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes >= 0) {
      connection_.sent(static_cast<std::size_t>(bytes));
    } else if (would_block(errno)) {
      wait_to_write();
    } else {
      fail(errno);
    }
  }
}

void ConnectionSocket::wait_to_write() {
  waits_to_write_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this(),
                                               generation = generation_](const error_code& error) {
    if (self->generation_ != generation) return;
    self->waits_to_write_ = false;
    if (!error && self->socket_.is_open()) self->output_ready();
  });
}

void ConnectionSocket::peer_closed() {
  broken_ = true;
  connection_.end(EndReason::kPeerClosed, {});
}

void ConnectionSocket::fail(int error_number) {
  broken_ = true;
  connection_.end(EndReason::kSocketError, errno_error(error_number, "socket").message);
}

// --- With a thread ------------------------------------------------------------------------

void ConnectionSocket::receive_done(std::size_t bytes, int error_number) {
  heard_ = active_ = true;
  if (error_number != 0) {
    fail(error_number);
  } else if (bytes == 0) {
    peer_closed();
  } else {
    connection_.received(bytes);
  }
  output_ready();
}

void ConnectionSocket::send_done(int error_number) {
  heard_ = true;
  if (error_number != 0) {
    fail(error_number);
  } else {
    connection_.sent(std::exchange(send_bytes_, 0));
  }
  output_ready();
}

void ConnectionSocket::lend_or_take_back() {
  judge_pdus();
  const bool lendable = active_ && long_pdus_ && !connection_.closing();
  SocketThreads* const threads = lendable ? owner_.lender() : nullptr;
  if (!loan_ && threads != nullptr) {
    lend(*threads);
  } else if (loan_ && threads == nullptr) {
    take_back();
  }
  comes_back_ = loan_ != nullptr && threads == nullptr;
}

void ConnectionSocket::judge_pdus() {
  const Connection::Traffic& now = connection_.traffic();
  const std::uint64_t pdus = now.pdus - judged_.pdus;
  if (pdus < kPdusJudged) return;
  const std::uint64_t bytes = (now.bytes - judged_.bytes) / pdus;
  judged_ = now;
  // Those in between stay where they are.
  if (bytes >= owner_.lent_pdu_bytes()) long_pdus_ = true;
  if (bytes < owner_.lent_pdu_bytes() / 2) long_pdus_ = false;
}

void ConnectionSocket::lend(SocketThreads& threads) {
  loan_ = threads.lend(socket_.native_handle(), *this);
  if (!loan_) return;
  ++generation_;
  waits_to_read_ = waits_to_write_ = false;
  heard_ = true;
  error_code error;
  lent_fd_ = socket_.release(error);  // Asio would wake the loop for all that comes
}

void ConnectionSocket::take_back() {
  if (loan_->sending()) return;
  if (loan_->receiving()) {
    if (!loan_->take_back_receive()) return;  // there is something: it will be heard of
    connection_.received_nothing();
  }
  loan_.reset();
  const int fd = std::exchange(lent_fd_, -1);
  error_code error;
  socket_.assign(protocol_, fd, error);
  if (!error) return;
  ::close(fd);
  fail(error.value());
}

}  // namespace mariner::iscsi
