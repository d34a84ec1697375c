// OpenSSL reads and writes the socket, which never blocks; Asio only says when.
#include "server/peer/channel.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "proto/check.h"
#include "server/peer/socket.h"

namespace mariner::peer {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Of one channel, before others have their turn.
constexpr int kReadsPerTurn = 64;
constexpr std::size_t kBytesSentPerTurn = 4u << 20;
constexpr int kUnsentBytesMax = 128 << 10;
// How long TCP waits at least, beyond the round trip, before it takes what is not acknowledged for
// lost. Linux takes 200 ms unless it is told, since 6.15 (linux/tcp.h has the number there); by
// then the acknowledgement of the other end, which is told the same, is held back for less than
// that.
constexpr int kTcpRtoMinUs = 45;
constexpr int kRtoMinUs = 20'000;

// Whether TCP has sent what the other has not acknowledged.
bool under_way(int socket) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && info.tcpi_unacked > 0;
}

std::string seconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

}  // namespace

struct Channel::Io {
  tcp::socket socket;
};

std::shared_ptr<Channel> Channel::begin(Environment environment, ConnectedSocket socket,
                                        TlsRole role, const FrameBounds& bounds,
                                        ChannelUser& user) {
  std::shared_ptr<Channel> channel(
      new Channel(std::move(environment), std::move(socket), bounds, user));
  channel->start(role);
  return channel;
}

Channel::Channel(Environment environment, ConnectedSocket socket, const FrameBounds& bounds,
                 ChannelUser& user)
    : env_(std::move(environment)),
      io_(new Io{std::move(socket.socket)}),
      remote_(std::move(socket.remote)),
      receiver_(bounds),
      user_(&user),
      started_(now()),
      last_received_(started_),
      last_sent_(started_) {
  CHECK(std::min(env_.options.queued_bytes_max, env_.options.held_bytes_max) >=
        kFramePrefixBytes + kFrameHeaderBytesMax + kFramePayloadBytesMax);
  CHECK(env_.options.heartbeat_interval < env_.options.silence_max);
}

Channel::~Channel() { CHECK(phase_ == Phase::kClosed); }

void Channel::start(TlsRole role) {
  error_code error;
  io_->socket.non_blocking(true, error);
  error_code ignored;  // only slower without
  io_->socket.set_option(tcp::no_delay(true), ignored);
  // What waits, waits here and not in the kernel: so one knows what has left, and what is urgent
  // (a reference to what comes by multicast) has little before it.
  io_->socket.set_option(
      boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>(kUnsentBytesMax),
      ignored);
  io_->socket.set_option(
      boost::asio::detail::socket_option::integer<IPPROTO_TCP, kTcpRtoMinUs>(kRtoMinUs), ignored);
  auto tls = TlsStream::over(io_->socket.native_handle(), env_.tls, role);
  // Not from within the call: its user does not have the channel yet.
  env_.executor.post([self = shared_from_this(), error, tls = std::move(tls)]() mutable {
    if (self->phase_ == Phase::kClosed) return;
    if (error) return self->fail({ErrorCode::kUnavailable, error.message()});
    if (!tls) return self->fail(tls.error());
    self->tls_.emplace(std::move(*tls));
    self->tick();
    self->shake_hands();
  });
}

bool Channel::send(std::string header, PayloadSlice payload, FrameSender::Bound bound) {
  if (phase_ == Phase::kClosed) return false;
  CHECK(phase_ != Phase::kTls);
  const std::uint64_t bytes = kFramePrefixBytes + header.size() + payload.length;
  const bool own = bound == FrameSender::Bound::kQueue;
  const std::uint64_t most = own ? env_.options.queued_bytes_max : env_.options.held_bytes_max;
  if (sender_.queued_bytes(bound) + bytes > most) {
    refused_ |= own;
    return false;
  }
  // The time that it waits begins.
  if (sender_.empty()) last_sent_ = now();
  sender_.push(std::move(header), std::move(payload), bound);
  schedule_flush();
  return true;
}

void Channel::establish() {
  CHECK(phase_ == Phase::kSecured);
  phase_ = Phase::kEstablished;
  receiver_.set_bounds({});
}

void Channel::close() {
  user_ = nullptr;
  if (phase_ == Phase::kClosed) return;
  if (tls_ && phase_ != Phase::kTls) tls_->close();
  shut();
}

void Channel::fail(Error reason) {
  shut();
  reason.message = fmt::format("{}: {}", remote_, reason.message);
  if (user_ != nullptr) std::exchange(user_, nullptr)->closed(std::move(reason));
}

void Channel::shut() {
  phase_ = Phase::kClosed;
  error_code ignored;
  io_->socket.close(ignored);
}

bool Channel::on_frame(std::string_view header, Payload payload) {
  user_->frame(header, std::move(payload));
  return phase_ != Phase::kClosed;
}

void Channel::on_bad_frame(Error error) { fail(std::move(error)); }

bool Channel::proceed(const Result<TlsStream::Outcome>& outcome) {
  if (!outcome) {
    fail(outcome.error());
    return false;
  }
  switch (outcome->progress) {
    case TlsStream::Progress::kDone: return true;
    case TlsStream::Progress::kWantsRead: wait_to_read(); return false;
    case TlsStream::Progress::kWantsWrite: wait_to_write(); return false;
    case TlsStream::Progress::kEnd: break;
  }
  fail({ErrorCode::kUnavailable, phase_ == Phase::kTls ? "it has closed the connection before TLS "
                                                         "was agreed on; its log may say why"
                                                       : "it has closed the connection"});
  return false;
}

void Channel::shake_hands() {
  if (!proceed(tls_->handshake())) return;
  phase_ = Phase::kSecured;
  user_->secured();
  if (phase_ != Phase::kClosed) readable();
}

void Channel::readable() {
  for (int reads = 0; reads < kReadsPerTurn; ++reads) {
    if (!read_once()) return;
  }
  // OpenSSL may hold what the socket does not show as readable any more.
  if (std::exchange(read_posted_, true)) return;
  env_.executor.post([self = shared_from_this()] {
    self->read_posted_ = false;
    if (self->phase_ != Phase::kClosed) self->readable();
  });
}

bool Channel::read_once() {
  const auto outcome = tls_->read(receiver_.prepare());
  if (!proceed(outcome)) return false;
  last_received_ = now();
  receiver_.received(outcome->bytes, *this);
  if (phase_ == Phase::kClosed) return false;
  // A record that was not full, and nothing behind it: most likely the last for now.
  if (outcome->bytes < FrameSender::kRecordBytes && !tls_->holds_more()) {
    wait_to_read();
    return false;
  }
  return true;
}

void Channel::schedule_flush() {
  if (phase_ == Phase::kClosed || waits_to_write_ || std::exchange(flush_scheduled_, true)) return;
  env_.executor.defer([self = shared_from_this()] {
    self->flush_scheduled_ = false;
    if (self->phase_ != Phase::kClosed) self->flush();
  });
}

void Channel::flush() {
  std::size_t done = 0;
  while (!sender_.empty() && !waits_to_write_) {
    if (done >= kBytesSentPerTurn) {
      env_.executor.post([self = shared_from_this()] {
        if (self->phase_ != Phase::kClosed) self->schedule_flush();
      });
      break;
    }
    const auto outcome = tls_->write(sender_.pending());
    if (!proceed(outcome)) {
      if (phase_ == Phase::kClosed) return;
      break;
    }
    sender_.sent(outcome->bytes);
    done += outcome->bytes;
  }
  if (done > 0) {
    last_sent_ = now();
    probe_interval_ = env_.options.probe_after;
    if (!probe_waits_) probe_later(probe_interval_);
  }
  if (refused_ &&
      sender_.queued_bytes(FrameSender::Bound::kQueue) <= env_.options.queued_bytes_max / 2) {
    refused_ = false;
    user_->writable();
  }
}

void Channel::probe_later(std::chrono::nanoseconds wait) {
  probe_waits_ = true;
  env_.executor.after(wait, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->probe_waits_ = false;
    if (self->phase_ == Phase::kEstablished) self->probe();
  });
}

void Channel::probe() {
  // While something waits to be written, TCP has enough to tell a loss from.
  if (!sender_.empty()) return;
  const auto since = now() - last_sent_;
  if (since < probe_interval_) return probe_later(probe_interval_ - since);
  if (!under_way(io_->socket.native_handle())) return;
  sender_.push_heartbeat();
  const auto next = std::min(2 * probe_interval_, env_.options.heartbeat_interval);
  flush();
  probe_interval_ = next;
}

void Channel::wait_to_read() {
  if (std::exchange(waits_to_read_, true)) return;
  io_->socket.async_wait(tcp::socket::wait_read,
                         [self = shared_from_this()](const error_code& error) {
                           self->waits_to_read_ = false;
                           if (error || self->phase_ == Phase::kClosed) return;
                           if (self->phase_ == Phase::kTls) return self->shake_hands();
                           self->readable();
                           // A write may have been what had to wait.
                           if (!self->sender_.empty()) self->schedule_flush();
                         });
}

void Channel::wait_to_write() {
  if (std::exchange(waits_to_write_, true)) return;
  io_->socket.async_wait(tcp::socket::wait_write,
                         [self = shared_from_this()](const error_code& error) {
                           self->waits_to_write_ = false;
                           if (error || self->phase_ == Phase::kClosed) return;
                           if (self->phase_ == Phase::kTls) return self->shake_hands();
                           self->schedule_flush();
                           // A read may have been what had to wait.
                           self->readable();
                         });
}

void Channel::tick() {
  if (phase_ == Phase::kClosed) return;
  const auto time = now();
  if (phase_ == Phase::kEstablished) {
    check_silence();
    if (phase_ == Phase::kClosed) return;
    if (sender_.empty() && time - last_sent_ >= env_.options.heartbeat_interval) {
      sender_.push_heartbeat();
      schedule_flush();
    }
  } else if (time - started_ >= env_.options.handshake_time_max) {
    return fail(
        {ErrorCode::kUnavailable,
         fmt::format(
             "the handshake was not done within {}: {}", seconds(env_.options.handshake_time_max),
             phase_ == Phase::kTls ? "TLS was not agreed on" : "it has not said who it is")});
  }
  env_.executor.after(env_.options.heartbeat_interval / 2, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void Channel::check_silence() {
  const auto time = now();
  if (time - last_received_ >= env_.options.silence_max) {
    // It may be us who have not looked for so long.
    readable();
    if (phase_ == Phase::kClosed) return;
    if (time - last_received_ >= env_.options.silence_max) {
      return fail({ErrorCode::kUnavailable,
                   fmt::format("nothing has come from it for {}; at most {} are waited",
                               seconds(time - last_received_), seconds(env_.options.silence_max))});
    }
  }
  if (!sender_.empty() && time - last_sent_ >= env_.options.stall_max) {
    fail({ErrorCode::kUnavailable,
          fmt::format("it has taken nothing for {} while {} bytes wait for it",
                      seconds(time - last_sent_), sender_.queued_bytes())});
  }
}

}  // namespace mariner::peer
