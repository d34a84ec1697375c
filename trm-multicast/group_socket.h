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

  enum class Sent { kYes, kLater };
  // One buffer of datagrams of `datagram_bytes` each, the last one maybe shorter: at most 64 of
  // them and 65,507 bytes. kLater: the socket's buffer is full. kIo: most of all, no route.
  [[nodiscard]] Result<Sent> send(std::span<const std::byte> datagrams, std::size_t datagram_bytes);
  // Several of them, by as few system calls as can be. How many went; fewer than all: the socket's
  // buffer is full. kIo: the first could not be sent.
  [[nodiscard]] Result<std::size_t> send(std::span<const DatagramBatch> batches);

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  explicit GroupSender(FileDescriptor socket) : socket_(std::move(socket)) {}
  std::size_t send_several(std::span<const DatagramBatch> batches);
  Result<Sent> send_one_by_one(std::span<const std::byte> datagrams, std::size_t datagram_bytes);

  FileDescriptor socket_;
  bool segments_ = true;  // the kernel cuts
  std::size_t done_ = 0;  // of a batch that could not be sent as one, when it had to wait
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
  // Datagrams that the kernel had no room for, ever, as far as is known.
  [[nodiscard]] std::uint64_t overflowed() const { return overflowed_; }

 private:
  struct Received {
    std::span<const std::byte> bytes;
    std::size_t datagram_bytes = 0;
  };
  struct Buffers;
  GroupListener(FileDescriptor socket, std::unique_ptr<Buffers> buffers);
  std::size_t receive_batch();

  FileDescriptor socket_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<Received> received_;
  std::uint64_t overflowed_ = 0;
};

}  // namespace mariner::trm
