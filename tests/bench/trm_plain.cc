// Plain TCP: a header of 64 bytes, about as long as the nodes' own, then the payload; many of them
// gathered into one system call. Without TLS, checksums, references: what three streams cost at
// least.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "tests/bench/trm_ways.h"

namespace mariner::bench {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kAnswerBytes = 32;
constexpr std::size_t kPiecesMax = 64;  // of one system call
constexpr int kCallsPerTurn = 16;
using Header = std::array<std::byte, kHeaderBytes>;

tcp::endpoint endpoint_of(const TrmNode& node, std::uint16_t port) {
  return {boost::asio::ip::make_address(node.address), port};
}

void prepare(tcp::socket& socket) {
  socket.non_blocking(true);
  socket.set_option(tcp::no_delay(true));
}

class PlainSending final : public TrmSending {
 public:
  PlainSending(node::EventLoop& loop, TrmWayOptions options, Heard heard)
      : loop_(loop), options_(std::move(options)), heard_(std::move(heard)) {}

  void begin() override {
    for (std::size_t i = 1; i < options_.nodes.size(); ++i) {
      ways_.push_back(std::make_unique<Way>(loop_.context(), i));
      Way& way = *ways_.back();
      way.socket.connect(endpoint_of(options_.nodes[i], options_.port));
      prepare(way.socket);
      loop_.post([this, i] { heard_.up(i); });
      wait_for_answers(way);
    }
  }
  void send(std::size_t receiver, std::uint64_t write, const Payload& payload) override {
    Way& way = *ways_[receiver - 1];
    way.waiting.push_back({{}, payload});
    Header& header = way.waiting.back().header;
    store_le(header.data(), write);
    store_le(header.data() + 8, std::uint64_t{payload.size()});
    if (!std::exchange(way.flushing, true)) loop_.defer([this, &way] { flush(way); });
  }

 private:
  struct Waiting {
    Header header;
    Payload payload;
  };
  struct Way {
    Way(boost::asio::io_context& context, std::size_t receiver_in)
        : socket(context), receiver(receiver_in) {}
    tcp::socket socket;
    const std::size_t receiver;
    std::deque<Waiting> waiting;
    std::size_t sent = 0;  // of the first of them
    bool flushing = false;
    std::vector<std::byte> answers;
  };

  void flush(Way& way) {
    while (!way.waiting.empty()) {
      std::array<iovec, kPiecesMax> pieces{};
      std::size_t count = 0;
      std::size_t skip = way.sent;
      for (const Waiting& each : way.waiting) {
        if (count + 2 > kPiecesMax) break;
        for (const std::span<const std::byte> piece :
             {std::span<const std::byte>(each.header), each.payload.bytes()}) {
          const std::size_t skipped = std::min(skip, piece.size());
          skip -= skipped;
          if (skipped == piece.size()) continue;
          pieces[count++] = {const_cast<std::byte*>(piece.data()) + skipped,
                             piece.size() - skipped};
        }
      }
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = count;
      const ssize_t sent = sendmsg(way.socket.native_handle(), &message, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno != EAGAIN) return heard_.down(way.receiver);
        way.socket.async_wait(tcp::socket::wait_write, [this, &way](const error_code& error) {
          if (!error) flush(way);
        });
        return;
      }
      way.sent += static_cast<std::size_t>(sent);
      while (!way.waiting.empty() &&
             way.sent >= kHeaderBytes + way.waiting.front().payload.size()) {
        way.sent -= kHeaderBytes + way.waiting.front().payload.size();
        way.waiting.pop_front();
      }
    }
    way.flushing = false;
  }
  void wait_for_answers(Way& way) {
    way.socket.async_wait(tcp::socket::wait_read, [this, &way](const error_code& error) {
      if (error) return;
      std::array<std::byte, 4096> bytes;
      const ssize_t got = recv(way.socket.native_handle(), bytes.data(), bytes.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return heard_.down(way.receiver);
      if (got > 0) way.answers.insert(way.answers.end(), bytes.begin(), bytes.begin() + got);
      const std::size_t whole = way.answers.size() / kAnswerBytes;
      if (whole > 0) {
        const auto write = load_le<std::uint64_t>(way.answers.data() + (whole - 1) * kAnswerBytes);
        way.answers.erase(way.answers.begin(),
                          way.answers.begin() + static_cast<std::ptrdiff_t>(whole * kAnswerBytes));
        heard_.acknowledged(way.receiver, write);
      }
      wait_for_answers(way);
    });
  }

  node::EventLoop& loop_;
  const TrmWayOptions options_;
  const Heard heard_;
  std::vector<std::unique_ptr<Way>> ways_;
};

class PlainReceiving final : public TrmReceiving {
 public:
  PlainReceiving(node::EventLoop& loop, const TrmWayOptions& options, std::size_t node, Take take)
      : loop_(loop),
        take_(std::move(take)),
        acceptor_(loop.context(), endpoint_of(options.nodes[node], options.port)),
        socket_(loop.context()) {
    acceptor_.async_accept(socket_, [this](const error_code& error) {
      CHECK(!error);
      prepare(socket_);
      wait();
    });
  }

 private:
  void wait() {
    socket_.async_wait(tcp::socket::wait_read, [this](const error_code& error) {
      if (!error && read()) wait();
    });
  }
  // False: the connection has ended.
  bool read() {
    for (int call = 0; call < kCallsPerTurn; ++call) {
      // The rest of this payload, and the next header.
      std::array<iovec, 2> places{};
      int count = 0;
      if (payload_) {
        places[static_cast<std::size_t>(count++)] = {payload_.data() + have_,
                                                     payload_.size() - have_};
      }
      places[static_cast<std::size_t>(count++)] = {header_.data() + header_have_,
                                                   kHeaderBytes - header_have_};
      const ssize_t got = readv(socket_.native_handle(), places.data(), count);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
      if (got < 0) break;
      auto left = static_cast<std::size_t>(got);
      if (payload_) {
        const std::size_t own = std::min(left, payload_.size() - have_);
        have_ += own;
        left -= own;
        if (have_ == payload_.size()) {
          through_ = take_(write_, {payload_, 0, payload_.size()});
          payload_ = {};
        }
      }
      header_have_ += left;
      if (header_have_ == kHeaderBytes) {
        header_have_ = have_ = 0;
        write_ = load_le<std::uint64_t>(header_.data());
        payload_ = Payload::allocate(load_le<std::uint64_t>(header_.data() + 8));
      }
    }
    answer();
    return true;
  }
  void answer() {
    if (through_ == std::exchange(answered_, through_)) return;
    std::array<std::byte, kAnswerBytes> bytes{};
    store_le(bytes.data(), through_);
    CHECK(send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  }

  node::EventLoop& loop_;
  const Take take_;
  tcp::acceptor acceptor_;
  tcp::socket socket_;
  Header header_{};
  std::size_t header_have_ = 0;
  std::uint64_t write_ = 0;
  Payload payload_;
  std::size_t have_ = 0;
  std::uint64_t through_ = 0;
  std::uint64_t answered_ = 0;
};

}  // namespace

std::unique_ptr<TrmSending> make_plain_sending(node::EventLoop& loop, const TrmWayOptions& options,
                                               TrmSending::Heard heard) {
  return std::make_unique<PlainSending>(loop, options, std::move(heard));
}

std::unique_ptr<TrmReceiving> make_plain_receiving(node::EventLoop& loop,
                                                   const TrmWayOptions& options, std::size_t node,
                                                   TrmReceiving::Take take) {
  return std::make_unique<PlainReceiving>(loop, options, node, std::move(take));
}

}  // namespace mariner::bench
