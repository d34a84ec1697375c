#include "trm-multicast/group_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "proto/check.h"

namespace mariner::trm {
namespace {

constexpr std::size_t kIpAndUdpBytes = 28;
constexpr std::size_t kMessages = 16;
constexpr std::size_t kMessageBytes = 65'536;  // joined datagrams, at most
// What waits before the network card: connections' packets wait behind it.
constexpr int kSendBufferBytes = 256 << 10;
constexpr int kReceiveBufferBytes = 8 << 20;

Error system_error(const std::string& what) { return errno_error(errno, what); }

std::optional<in_addr> parse_address(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return address;
}

std::string name_of(const GroupAddress& address) {
  return "multicast group " + address.group + ":" + std::to_string(address.port);
}

Result<ip_mreqn> membership(const GroupAddress& address) {
  if (const Result<void> good = check_group(address); !good) return good.error();
  const Result<int> index = interface_index(address.interface);
  if (!index) {
    return Error{index.error().code, name_of(address) + ": " + index.error().message};
  }
  ip_mreqn request{};
  request.imr_multiaddr = *parse_address(address.group);
  request.imr_address = *parse_address(address.interface);
  request.imr_ifindex = *index;
  return request;
}

std::string cannot_join(const GroupAddress& address) {
  return name_of(address) + " cannot be joined on the interface with " + address.interface;
}

template <typename T>
Result<void> set_option(int fd, int level, int option, const T& value, const std::string& what) {
  if (setsockopt(fd, level, option, &value, sizeof value) == 0) return {};
  return system_error(what);
}

// More than the system's bound where one may.
void set_buffer(int fd, int option, int forced, int bytes) {
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) == 0) return;
  (void)setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
}

sockaddr_in socket_address(const ip_mreqn& request, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = request.imr_multiaddr;
  address.sin_port = htons(port);
  return address;
}

Result<FileDescriptor> udp_socket(const GroupAddress& address) {
  FileDescriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return system_error(name_of(address) + ": no socket");
  return made;
}

// Tells the kernel where to cut a message (udp(7), UDP_SEGMENT).
struct alignas(cmsghdr) SegmentControl {
  std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> bytes;

  void set(msghdr& message, std::size_t datagram_bytes) {
    bytes = {};
    message.msg_control = bytes.data();
    message.msg_controllen = bytes.size();
    cmsghdr* const option = CMSG_FIRSTHDR(&message);
    option->cmsg_level = SOL_UDP;
    option->cmsg_type = UDP_SEGMENT;
    option->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto size = static_cast<std::uint16_t>(datagram_bytes);
    std::memcpy(CMSG_DATA(option), &size, sizeof size);
  }
};

// What errno says of a send that failed.
bool socket_is_full() { return errno == EAGAIN || errno == ENOBUFS; }

Error send_error(const DatagramBatch& batch) {
  if (errno != EMSGSIZE) return system_error("multicast");
  return {ErrorCode::kLimit, "multicast datagrams of " + std::to_string(batch.datagram_bytes) +
                                 " bytes are larger than the interface's packets (its MTU)"};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<void> check_group(const GroupAddress& address) {
  const auto group = parse_address(address.group);
  const std::uint32_t number = group ? ntohl(group->s_addr) : 0;
  if (number >> 28 != 0xe) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + address.group +
                     "\" is no IPv4 multicast address: 224.0.1.0 to 239.255.255.255 are, of which "
                     "239.192.0.0/14 are an organization's own"};
  }
  if (number >> 8 == 0xe00000) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + address.group +
                     "\" is one of 224.0.0.0/24, which switches send to everybody: take one of "
                     "239.192.0.0/14"};
  }
  if (address.port == 0) {
    return Error{ErrorCode::kInvalidArgument, "port 0 is none for " + address.group};
  }
  if (!parse_address(address.interface)) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + address.interface + "\" is no IPv4 address of an interface"};
  }
  return {};
}

Result<int> interface_index(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + text + "\" is no IPv4 address of an interface"};
  }
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return system_error("the interfaces of this node cannot be listed");
  int index = 0;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, each->ifa_addr, sizeof own);
    if (own.sin_addr.s_addr != address->s_addr) continue;
    index = static_cast<int>(if_nametoindex(each->ifa_name));
  }
  freeifaddrs(all);
  if (index == 0) {
    return Error{ErrorCode::kNotFound, "no interface of this node has address " + text};
  }
  return index;
}

Result<std::size_t> datagram_bytes_max(const std::string& interface) {
  const Result<int> index = interface_index(interface);
  if (!index) return index.error();
  const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  if (any.get() < 0 || if_indextoname(static_cast<unsigned>(*index), request.ifr_name) == nullptr ||
      ioctl(any.get(), SIOCGIFMTU, &request) != 0) {
    return system_error("the MTU of the interface with " + interface + " is not known");
  }
  return static_cast<std::size_t>(std::clamp(request.ifr_mtu, 576, 65'535)) - kIpAndUdpBytes;
}

Result<GroupSender> GroupSender::open(const GroupAddress& address, bool to_own) {
  const auto request = membership(address);
  if (!request) return request.error();
  auto made = udp_socket(address);
  if (!made) return made.error();
  const int fd = made->get();
  const std::string name = name_of(address);
  const sockaddr_in to = socket_address(*request, address.port);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr = request->imr_address;
  for (const Result<void>& done :
       {set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, *request, name + ": its interface"),
        set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, 1, name + ": its TTL"),
        set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, to_own ? 1 : 0, name + ": its loop"),
        // Nothing is cut by IP: a lost part would lose the whole.
        set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, name + ": no fragments")}) {
    if (!done) return done.error();
  }
  set_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, kSendBufferBytes);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
      connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return system_error(name + " from " + address.interface);
  }
  return GroupSender(std::move(*made));
}

Result<std::size_t> GroupSender::send(std::span<DatagramBatch> batches) {
  CHECK(!batches.empty());
  if (segments_ && batches.size() > 1) {
    const int sent = send_several(batches.first(std::min(batches.size(), kMessages)));
    if (sent > 0) return static_cast<std::size_t>(sent);
    if (socket_is_full()) return 0;
  }
  // Alone: also to learn why the first one did not go.
  return send_one(batches.front());
}

// As sendmmsg() says.
int GroupSender::send_several(std::span<const DatagramBatch> batches) {
  std::array<iovec, kMessages> places;
  std::array<SegmentControl, kMessages> controls;
  std::array<mmsghdr, kMessages> messages{};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    places[i] = {const_cast<std::byte*>(batches[i].bytes.data()), batches[i].bytes.size()};
    msghdr& header = messages[i].msg_hdr;
    header.msg_iov = &places[i];
    header.msg_iovlen = 1;
    if (batches[i].bytes.size() > batches[i].datagram_bytes) {
      controls[i].set(header, batches[i].datagram_bytes);
    }
  }
  return sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(batches.size()), 0);
}

Result<std::size_t> GroupSender::send_one(DatagramBatch& batch) {
  const std::size_t whole = batch.bytes.size();
  CHECK(whole > 0 && batch.datagram_bytes > 0);
  if (!segments_ || whole <= batch.datagram_bytes) return send_one_by_one(batch);
  iovec bytes{const_cast<std::byte*>(batch.bytes.data()), whole};
  SegmentControl control;
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  control.set(message, batch.datagram_bytes);
  if (sendmsg(socket_.get(), &message, 0) >= 0) return 1;
  if (socket_is_full()) return 0;
  if (errno != EIO && errno != EINVAL && errno != EOPNOTSUPP) return send_error(batch);
  // This kernel, or this interface, does not cut, if datagrams go uncut: some kernels say the same
  // when they are larger than packets.
  const auto sent = send_one_by_one(batch);
  if (batch.bytes.size() < whole) segments_ = false;
  return sent;
}

Result<std::size_t> GroupSender::send_one_by_one(DatagramBatch& batch) {
  while (!batch.bytes.empty()) {
    const std::size_t bytes = std::min(batch.datagram_bytes, batch.bytes.size());
    if (::send(socket_.get(), batch.bytes.data(), bytes, 0) < 0) {
      if (socket_is_full()) return 0;
      return send_error(batch);
    }
    batch.bytes = batch.bytes.subspan(bytes);
  }
  return 1;
}

struct GroupListener::Buffers {
  Buffers() {
    for (std::size_t i = 0; i < kMessages; ++i) {
      places[i] = {bytes.data() + i * kMessageBytes, kMessageBytes};
    }
  }
  std::vector<std::byte> bytes = std::vector<std::byte>(kMessages * kMessageBytes);
  std::array<iovec, kMessages> places{};
  std::array<mmsghdr, kMessages> messages{};
  struct alignas(cmsghdr) Control {
    std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint32_t))> bytes;
  };
  std::array<Control, kMessages> controls{};
};

GroupListener::GroupListener(FileDescriptor socket, GroupAddress address, int interface_index)
    : socket_(std::move(socket)),
      address_(std::move(address)),
      interface_index_(interface_index),
      buffers_(std::make_unique<Buffers>()) {
  received_.reserve(kMessages);
}
GroupListener::~GroupListener() = default;
GroupListener::GroupListener(GroupListener&&) noexcept = default;
GroupListener& GroupListener::operator=(GroupListener&&) noexcept = default;

int GroupListener::fd() const { return socket_.get(); }

Result<GroupListener> GroupListener::open(const GroupAddress& address) {
  const auto request = membership(address);
  if (!request) return request.error();
  auto made = udp_socket(address);
  if (!made) return made.error();
  const int fd = made->get();
  const std::string name = name_of(address);
  // Several nodes of one machine may listen, each on its interface.
  if (const auto done = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, name); !done) {
    return done.error();
  }
  set_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, kReceiveBufferBytes);
  (void)set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1, name);
  (void)set_option(fd, SOL_UDP, UDP_GRO, 1, name);  // only slower without
  const sockaddr_in own = socket_address(*request, address.port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return system_error(name);
  for (const Result<void>& done :
       {set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0, name + ": this interface's alone"),
        set_option(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, *request, cannot_join(address))}) {
    if (!done) return done.error();
  }
  return GroupListener(std::move(*made), address, request->imr_ifindex);
}

Result<void> GroupListener::move_to(int interface_index) {
  ip_mreqn request{};
  request.imr_multiaddr = *parse_address(address_.group);
  request.imr_ifindex = interface_index;
  const auto joined =
      set_option(fd(), IPPROTO_IP, IP_ADD_MEMBERSHIP, request, cannot_join(address_));
  if (!joined) return joined;
  request.imr_ifindex = std::exchange(interface_index_, interface_index);
  // (Of an interface that is gone the socket alone remembers.)
  (void)set_option(fd(), IPPROTO_IP, IP_DROP_MEMBERSHIP, request, name_of(address_));
  return {};
}

std::size_t GroupListener::receive_batch() {
  received_.clear();
  for (std::size_t i = 0; i < kMessages; ++i) {
    msghdr& header = buffers_->messages[i].msg_hdr;
    header = {};
    header.msg_iov = &buffers_->places[i];
    header.msg_iovlen = 1;
    header.msg_control = buffers_->controls[i].bytes.data();
    header.msg_controllen = buffers_->controls[i].bytes.size();
  }
  const int got =
      recvmmsg(socket_.get(), buffers_->messages.data(), kMessages, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < got; ++i) {
    mmsghdr& message = buffers_->messages[static_cast<std::size_t>(i)];
    const std::size_t bytes = message.msg_len;
    std::size_t datagram_bytes = bytes;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message.msg_hdr); each != nullptr;
         each = CMSG_NXTHDR(&message.msg_hdr, each)) {
      if (each->cmsg_level == SOL_UDP && each->cmsg_type == UDP_GRO) {
        int size = 0;
        std::memcpy(&size, CMSG_DATA(each), sizeof size);
        if (size > 0) datagram_bytes = static_cast<std::size_t>(size);
      } else if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SO_RXQ_OVFL) {
        std::uint32_t dropped = 0;
        std::memcpy(&dropped, CMSG_DATA(each), sizeof dropped);
        overflowed_ = std::max<std::uint64_t>(overflowed_, dropped);
      }
    }
    if (bytes == 0) continue;
    const auto* const place =
        static_cast<const std::byte*>(buffers_->places[static_cast<std::size_t>(i)].iov_base);
    received_.push_back({{place, bytes}, datagram_bytes});
  }
  return got <= 0 ? 0 : static_cast<std::size_t>(got);
}

}  // namespace mariner::trm
