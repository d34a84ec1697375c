#include "server/cluster/multicast.h"

#include <openssl/rand.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr auto kInterfaceCheck = std::chrono::seconds(1);
// Of one group, before others have their turn.
constexpr int kBatchesPerTurn = 16;
// What fits into the packets of every Ethernet.
constexpr std::size_t kSafeDatagramBytes = 1472;

// The socket is its owner's; this only waits for it.
struct Waiting {
  Waiting(boost::asio::io_context& context, int fd) : descriptor(context, fd) {}
  ~Waiting() { (void)descriptor.release(); }
  stream_descriptor descriptor;
};

trm::SenderHub::Bodies bodies_of(std::size_t datagram_bytes_max) {
  const auto body = [](std::size_t datagram) {
    return static_cast<std::uint32_t>(datagram - trm::kDatagramOverheadBytes);
  };
  return {.bytes_max = body(datagram_bytes_max),
          .bytes_safe = body(std::min(datagram_bytes_max, kSafeDatagramBytes))};
}

trm::SenderHub::Options hub_options(const MulticastOptions& options) {
  trm::SenderHub::Options hub;
  if (options.bytes_per_second_max) {
    hub.stream.rate.bytes_per_second_max = *options.bytes_per_second_max;
  }
  hub.encrypted = options.encrypted;
  return hub;
}

std::string anew(const trm::Group& group, const std::string& interface) {
  return "multicast group " + group.address + ":" + std::to_string(group.port) +
         " was not heard for a while: the interface with " + interface +
         " is another one now, where the group is joined again";
}

}  // namespace

struct Multicast::Sending {
  explicit Sending(trm::GroupSender socket_in) : socket(std::move(socket_in)) {}
  trm::GroupSender socket;
  bool waits = false;
  bool failed = false;          // something could not be sent: another socket may do better
  bool told_too_large = false;  // that datagrams are larger than packets
};

struct Multicast::Listening {
  Listening(boost::asio::io_context& context, trm::GroupListener socket_in)
      : socket(std::move(socket_in)), waiting(context, socket.fd()) {}
  trm::GroupListener socket;
  Waiting waiting;
};

Multicast::Multicast(boost::asio::io_context& context, Executor& executor, Connections& connections,
                     const MulticastOptions& options)
    : context_(context),
      executor_(executor),
      connections_(connections),
      options_(options),
      sender_(new trm::SenderHub(*this, hub_options(options))),
      receiver_(new trm::ReceiverHub(*this, {})) {}

Multicast::~Multicast() { *alive_ = false; }

Result<void> Multicast::begin_flow(trm::FlowNumber flow, const trm::Group& group,
                                   const std::vector<trm::PeerNumber>& peers) {
  if (!sending_.contains(group)) {
    if (const Result<void> opened = open_to_send(group); !opened) return opened;
  }
  // The interface may have come, or changed, since the last time.
  const auto datagram_bytes_max = trm::datagram_bytes_max(options_.interface);
  if (datagram_bytes_max) sender_->set_bodies(bodies_of(*datagram_bytes_max));
  if (const Result<void> begun = sender_->begin_flow(flow, group, peers); !begun) return begun;
  if (!std::exchange(ticking_, true)) tick_later();
  flush_later();
  return {};
}

Result<void> Multicast::open_to_send(const trm::Group& group) {
  const auto address = address_of(group);
  if (!address) return address.error();
  auto socket = trm::GroupSender::open(*address, options_.to_own_machine);
  if (!socket) return socket.error();
  sending_[group] = std::make_unique<Sending>(std::move(*socket));
  return {};
}

Result<trm::GroupAddress> Multicast::address_of(const trm::Group& group) const {
  if (!options_.interface.empty()) {
    return trm::GroupAddress{group.address, group.port, options_.interface};
  }
  return Error{ErrorCode::kNotFound,
               "multicast group " + group.address + ":" + std::to_string(group.port) +
                   ": this node was not told by which interface: [cluster] listen is not one IPv4 "
                   "address; set [replication] interface"};
}

void Multicast::random(std::span<std::byte> to) {
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(to.data()), static_cast<int>(to.size())) == 1);
}

// ---- turns

void Multicast::flush_later() {
  if (std::exchange(flushing_, true)) return;
  executor_.defer([this, alive = alive_] {
    if (*alive) flush();
  });
}

void Multicast::flush() {
  flushing_ = false;
  const auto time = now();
  sender_->flush(time);
  receiver_->flush(time);
  const auto send_at = sender_->next_at(time);
  const auto tell_at = receiver_->next_at();
  if (send_at) wake_at(*send_at);
  if (tell_at) wake_at(*tell_at);
}

void Multicast::wake_at(std::chrono::nanoseconds at) {
  if (wakes_at_ && *wakes_at_ <= at) return;
  wakes_at_ = at;
  executor_.after(std::max(at - now(), std::chrono::nanoseconds(0)), [this, at, alive = alive_] {
    // (An earlier one has been here if it is not the one.)
    if (!*alive || wakes_at_ != at) return;
    wakes_at_.reset();
    flush();
  });
}

void Multicast::tick_later() {
  executor_.after(kTick, [this, alive = alive_] {
    if (*alive) tick();
  });
}

// As long as there are streams.
void Multicast::tick() {
  sender_->tick(now());
  flush_later();
  ticking_ = sender_->streams() > 0;
  if (ticking_) return tick_later();
  sending_.clear();
}

// ---- sending

std::size_t Multicast::multicast_all(const trm::Group& to, std::span<trm::DatagramBatch> batches) {
  // An interface that was taken away comes back as another one.
  if (sending_.at(to)->failed && !open_to_send(to)) return batches.size();
  Sending& sending = *sending_.at(to);
  if (sending.waits) return 0;
  std::size_t done = 0;
  while (done < batches.size()) {
    const auto sent = sending.socket.send(batches.subspan(done));
    if (!sent) {
      lost(sending, sent.error());
      ++done;
      continue;
    }
    if (*sent == 0) {
      wait_to_send(to, sending);
      break;
    }
    failing_ = false;
    done += *sent;
  }
  return done;
}

// One batch is, as if on its way.
void Multicast::lost(Sending& sending, const Error& error) {
  // Probes find out what gets through; the socket is good.
  const bool too_large = error.code == ErrorCode::kLimit;
  sending.failed |= !too_large;
  bool& told = too_large ? sending.told_too_large : failing_;
  if (!std::exchange(told, true)) connections_.failed(error);
}

// By time: who waits for a socket to be writable is woken by each buffer that leaves.
void Multicast::wait_to_send(const trm::Group& group, Sending& sending) {
  sending.waits = true;
  executor_.after(sender_->rest(group, now()), [this, group, alive = alive_] {
    const auto found = *alive ? sending_.find(group) : sending_.end();
    if (found == sending_.end()) return;
    found->second->waits = false;
    sender_->writable(group, now());
    flush();
  });
}

// ---- receiving

Result<void> Multicast::listen(const trm::Group& group) {
  const auto address = address_of(group);
  if (!address) return address.error();
  auto socket = trm::GroupListener::open(*address);
  if (!socket) return socket.error();
  listening_[group] = std::make_shared<Listening>(context_, std::move(*socket));
  wait_to_receive(group);
  check_interface_later();
  return {};
}

void Multicast::leave(const trm::Group& group) {
  const auto found = listening_.find(group);
  overflowed_ += found->second->socket.overflowed();
  listening_.erase(found);
}

std::uint64_t Multicast::overflowed() const {
  std::uint64_t datagrams = overflowed_;
  for (const auto& [group, listening] : listening_) datagrams += listening->socket.overflowed();
  return datagrams;
}

void Multicast::wait_to_receive(const trm::Group& group) {
  const std::shared_ptr<Listening>& listening = listening_.at(group);
  listening->waiting.descriptor.async_wait(
      stream_descriptor::wait_read,
      [this, group, weak = std::weak_ptr(listening), alive = alive_](const error_code& error) {
        if (!error && *alive && !weak.expired()) readable(group);
      });
}

void Multicast::readable(const trm::Group& group) {
  // What a datagram brings may end the last stream of the group.
  const std::shared_ptr<Listening> listening = listening_.at(group);
  const auto time = now();
  for (int i = 0; i < kBatchesPerTurn; ++i) {
    const bool more = listening->socket.receive(
        [&](std::span<const std::byte> datagram) { receiver_->datagram(datagram, time); });
    if (!more) break;
  }
  flush_later();
  const auto still = listening_.find(group);
  if (still != listening_.end() && still->second == listening) wait_to_receive(group);
}

void Multicast::check_interface_later() {
  if (std::exchange(checking_, true)) return;
  executor_.after(kInterfaceCheck, [this, alive = alive_] {
    if (*alive) check_interface();
  });
}

// When an interface is taken away and made anew, its groups are left, and nobody says so.
void Multicast::check_interface() {
  checking_ = false;
  if (listening_.empty()) return;
  check_interface_later();
  const auto index = trm::interface_index(options_.interface);
  if (!index) {
    if (!std::exchange(deaf_, true)) connections_.failed(index.error());
    return;
  }
  deaf_ = false;
  for (const auto& [group, listening] : listening_) {
    if (listening->socket.interface_index() == *index) continue;
    const Result<void> moved = listening->socket.move_to(*index);
    connections_.failed(moved ? Error{ErrorCode::kUnavailable, anew(group, options_.interface)}
                              : moved.error());
  }
}

}  // namespace mariner::cluster
