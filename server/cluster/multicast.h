// Multicast beside the connections between nodes: the hubs of trm-multicast with their sockets and
// timers, for the PeerBus.
//
// Which payloads go by multicast the hubs decide; whoever speaks by the bus does not notice.
// Without a flow here, or a stream of another node's, nothing is opened, and no time is spent.
// Executor's thread; nothing is called from within a call to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proto/executor.h"
#include "trm-multicast/group_socket.h"
#include "trm-multicast/receiver_hub.h"
#include "trm-multicast/sender_hub.h"

namespace boost::asio {
class io_context;
}

namespace mariner::cluster {

struct MulticastOptions {
  // An IPv4 address of this node: groups are reached, and joined, there. Empty: nobody has said
  // which, and what would need it fails.
  std::string interface;
  bool encrypted = true;
  // Of payload bytes, of each stream. Nothing: as fast as the receivers take it.
  std::optional<double> bytes_per_second_max{};
  // Groups are heard by other nodes on this machine, too.
  bool to_own_machine = false;
};

class Multicast final : private trm::SenderHub::Wires, private trm::ReceiverHub::Wires {
 public:
  // The connections of nodes, which the caller has.
  class Connections {
   public:
    virtual ~Connections() = default;
    // To a node that this one has dialled: a frame, whose payload is referred to, or comes with it.
    virtual void send(trm::PeerNumber to, std::string header, PayloadSlice payload,
                      const std::optional<trm::Reference>& reference) = 0;
    virtual void tell(trm::PeerNumber to, const trm::FromSender& message) = 0;
    // Of what it was given for the node: what has not been given to the network.
    [[nodiscard]] virtual std::uint64_t queued_bytes(trm::PeerNumber /*to*/) const { return 0; }
    // From, and to, a node that has dialled this one.
    virtual void deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) = 0;
    virtual void tell(trm::ConnectionNumber to, const trm::FromReceiver& message) = 0;
    virtual void end(trm::ConnectionNumber connection, const Error& reason) = 0;
    // Worth a line in the log.
    virtual void changed(const trm::SenderHub::Change& change) = 0;
    virtual void failed(const Error& error) = 0;
  };

  // What it refers to outlives it.
  Multicast(boost::asio::io_context& context, Executor& executor, Connections& connections,
            const MulticastOptions& options);
  ~Multicast() override;  // not from within a callback
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // The hubs, for what is said to them as it is. What comes of it leaves at the turn's end.
  trm::SenderHub& sender() {
    flush_later();
    return *sender_;
  }
  trm::ReceiverHub& receiver() {
    flush_later();
    return *receiver_;
  }
  [[nodiscard]] const trm::SenderHub& sender() const { return *sender_; }
  [[nodiscard]] const trm::ReceiverHub& receiver() const { return *receiver_; }
  // Datagrams that the kernel had no room for, ever.
  [[nodiscard]] std::uint64_t overflowed() const;
  // SenderHub::begin_flow(), with the group's socket. kNotFound, kIo and others: it cannot be
  // opened now, and the flow goes by the connections.
  Result<void> begin_flow(trm::FlowNumber flow, const trm::Group& group,
                          const std::vector<trm::PeerNumber>& peers);

  [[nodiscard]] std::chrono::nanoseconds now() const { return executor_.monotonic_time(); }

 private:
  struct Sending;
  struct Listening;

  // SenderHub::Wires
  void frame(trm::PeerNumber to, std::string header, PayloadSlice payload,
             const std::optional<trm::Reference>& reference) override {
    connections_.send(to, std::move(header), std::move(payload), reference);
  }
  void tell(trm::PeerNumber to, const trm::FromSender& message) override {
    connections_.tell(to, message);
  }
  bool multicast(const trm::Group& to, std::span<const std::byte> datagrams,
                 std::size_t datagram_bytes) override {
    trm::DatagramBatch batch{datagrams, datagram_bytes};
    return multicast_all(to, std::span(&batch, 1)) == 1;
  }
  std::size_t multicast_all(const trm::Group& to, std::span<trm::DatagramBatch> batches) override;
  [[nodiscard]] std::uint64_t queued_bytes(trm::PeerNumber peer) const override {
    return connections_.queued_bytes(peer);
  }
  void changed(const trm::SenderHub::Change& change) override { connections_.changed(change); }
  void random(std::span<std::byte> to) override;
  // ReceiverHub::Wires
  Result<void> listen(const trm::Group& group) override;
  void leave(const trm::Group& group) override;
  void deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) override {
    connections_.deliver(from, header, std::move(payload));
  }
  void tell(trm::ConnectionNumber to, const trm::FromReceiver& message) override {
    connections_.tell(to, message);
  }
  void end(trm::ConnectionNumber connection, const Error& reason) override {
    connections_.end(connection, reason);
  }

  [[nodiscard]] Result<trm::GroupAddress> address_of(const trm::Group& group) const;
  void flush_later();
  void flush();
  void wake_at(std::chrono::nanoseconds at);
  Result<void> open_to_send(const trm::Group& group);
  void tick_later();
  void tick();
  void lost(Sending& sending, const Error& error);
  void wait_to_send(const trm::Group& group, Sending& sending);
  void wait_to_receive(const trm::Group& group);
  void readable(const trm::Group& group);
  void check_interface_later();
  void check_interface();

  boost::asio::io_context& context_;
  Executor& executor_;
  Connections& connections_;
  const MulticastOptions options_;
  std::unique_ptr<trm::SenderHub> sender_;
  std::unique_ptr<trm::ReceiverHub> receiver_;
  std::map<trm::Group, std::unique_ptr<Sending>> sending_;
  std::map<trm::Group, std::shared_ptr<Listening>> listening_;
  std::uint64_t overflowed_ = 0;  // of groups that were left
  bool ticking_ = false;
  bool flushing_ = false;
  std::optional<std::chrono::nanoseconds> wakes_at_;
  bool checking_ = false;
  bool failing_ = false;  // the last batch could not be sent at all
  bool deaf_ = false;     // no interface has the address, where groups are listened to
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
