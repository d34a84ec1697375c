// The sockets of a multicast group: UDP over IPv4, never blocking. The caller waits for them to be
// readable or writable.
//
// Many datagrams go through one system call: a batch of the same size is one buffer, which the
// kernel, or the interface, cuts (UDP_SEGMENT), and what was joined on its way arrives joined
// (UDP_GRO). One thread each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "trm-multicast/datagram.h"

namespace mariner::trm {

// Where a group is, and by which interface it is reached: that with this address of the node's.
struct GroupAddress {
  std::string group;  // 224.0.0.0/4
  std::uint16_t port = 0;
  std::string interface;  // an IPv4 address of this node
};

// kInvalidArgument, naming what is wrong: not an address, not a group's, one of 224.0.0.0/24, which
// switches do not filter, or port 0.
[[nodiscard]] Result<void> check_group(const GroupAddress& address);

// The number of the interface that has this address now. kInvalidArgument, kNotFound.
[[nodiscard]] Result<int> interface_index(const std::string& interface);

// What a datagram may have, headers of IP and UDP not counted, to go in one packet of the interface
// with this address. kInvalidArgument, kNotFound.
[[nodiscard]] Result<std::size_t> datagram_bytes_max(const std::string& interface);

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

class GroupSender {
 public:
  // kIo, kNotFound: no interface has the address.
  // `to_own`: listeners of this machine hear it, too.
  [[nodiscard]] static Result<GroupSender> open(const GroupAddress& address, bool to_own = false);

  // Sends the first of the batches, as many as it can at a time, and says how many went. 0: the
  // socket's buffer is full. One batch is at most 64 datagrams and 65,507 bytes. What has gone of a
  // batch that did not go whole is taken off it: give it again as it is then.
  // kLimit: the first one's datagrams are larger than the interface's packets. kIo: it cannot be
  // sent, most of all because there is no route. Neither says anything about those behind it.
  [[nodiscard]] Result<std::size_t> send(std::span<DatagramBatch> batches);

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  explicit GroupSender(FileDescriptor socket) : socket_(std::move(socket)) {}
  int send_several(std::span<const DatagramBatch> batches);
  Result<std::size_t> send_one(DatagramBatch& batch);
  Result<std::size_t> send_one_by_one(DatagramBatch& batch);

  FileDescriptor socket_;
  bool segments_ = true;  // the kernel cuts
};

class GroupListener {
 public:
  // Joins the group (IGMPv3 where the network has it). kIo, kNotFound.
  [[nodiscard]] static Result<GroupListener> open(const GroupAddress& address);
  ~GroupListener();
  GroupListener(GroupListener&&) noexcept;
  GroupListener& operator=(GroupListener&&) noexcept;

  // Receives what is there, up to a batch, and calls take(datagram) for each; false: there was
  // nothing. The bytes are good during the call only.
  template <typename Take>
  [[nodiscard]] bool receive(Take take) {
    if (receive_batch() == 0) return false;
    for (const Received& each : received_) {
      for (std::size_t at = 0; at < each.bytes.size(); at += each.datagram_bytes) {
        take(each.bytes.subspan(at, std::min(each.datagram_bytes, each.bytes.size() - at)));
      }
    }
    return true;
  }

  [[nodiscard]] int fd() const;
  // The interface where the group is joined, by its number.
  [[nodiscard]] int interface_index() const { return interface_index_; }
  // Joins the group on this interface instead: an interface that was made anew has another number,
  // and the kernel has forgotten who listened. What has come before is received all the same. kIo:
  // nothing has changed.
  Result<void> move_to(int interface_index);
  // Datagrams that the kernel had no room for, ever, as far as is known.
  [[nodiscard]] std::uint64_t overflowed() const { return overflowed_; }

 private:
  struct Received {
    std::span<const std::byte> bytes;
    std::size_t datagram_bytes = 0;
  };
  struct Buffers;
  GroupListener(FileDescriptor socket, GroupAddress address, int interface_index);
  std::size_t receive_batch();

  FileDescriptor socket_;
  GroupAddress address_;
  int interface_index_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<Received> received_;
  std::uint64_t overflowed_ = 0;
};

}  // namespace mariner::trm
