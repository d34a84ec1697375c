// The multicast network of the simulated cluster, beside its connections: datagrams are lost,
// doubled, late, out of order, forged and replayed; a switch or a filter lets none through for a
// while; the sender's socket is full.
//
// What one call sends reaches a listener in one event, but for what is late; who has joined when it
// arrives gets it, whoever has sent it, so that a node which has restarted hears what an older
// epoch sent. Partitions are those of the connections.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tests/sim/cluster/sim_network.h"
#include "trm-multicast/group.h"

namespace mariner::test {

class SimMulticast {
 public:
  // What one call has sent, and some of it.
  struct Batch {
    trm::Group to;
    std::vector<std::byte> bytes;
    std::size_t datagram_bytes = 0;
    [[nodiscard]] std::span<const std::byte> datagram(std::size_t index) const;
    [[nodiscard]] std::size_t count() const {
      return (bytes.size() + datagram_bytes - 1) / datagram_bytes;
    }
  };
  using Indices = std::vector<std::uint16_t>;

  // A node's end of it, of one life.
  class Member {
   public:
    virtual ~Member() = default;
    [[nodiscard]] virtual SimNode& node() = 0;
    // Of a group that it has joined. It may leave meanwhile.
    virtual void datagrams(const Batch& batch, const Indices& which) = 0;
    // Its socket takes datagrams again.
    virtual void writable() = 0;
  };

  // All outlive it.
  SimMulticast(ManualExecutor& world, std::mt19937_64& random, const SimNetwork& network);

  void enter(Member& member);
  void leave(Member& member);  // at the end of its life

  // False: it cannot listen.
  [[nodiscard]] bool join(Member& member, const trm::Group& group);
  void leave(Member& member, const trm::Group& group);
  // False: the socket is full. Its owner hears when it is not any more.
  bool send(Member& from, const trm::Group& to, std::span<const std::byte> datagrams,
            std::size_t datagram_bytes);

  // Something changes for a while, now and then, until heal().
  void disturb_later();
  void heal();

 private:
  // Of the way from one node to another one.
  struct Path {
    unsigned loss_per_mille = 0;
    unsigned late_per_mille = 0;
    unsigned doubled_per_mille = 0;
    unsigned forged_per_mille = 0;  // of batches
    bool shuffled = false;
    bool blocked = false;
  };
  struct Joined {
    Member* member = nullptr;
    std::set<trm::Group> groups;
  };
  using BatchPtr = std::shared_ptr<const Batch>;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // from, to

  [[nodiscard]] bool rolls(unsigned per_mille) {
    return per_mille > 0 && random_() % 1000 < per_mille;
  }
  [[nodiscard]] Path& path(std::uint32_t from, std::uint32_t to);
  void pass(const BatchPtr& batch, const Path& path, std::uint32_t to);
  void forge(const Batch& batch, std::uint32_t to);
  void arrive_later(std::chrono::nanoseconds delay, BatchPtr batch, Indices which,
                    std::uint32_t to);
  void arrive(const BatchPtr& batch, const Indices& which, std::uint32_t to);
  void disturb();
  void fill_socket(std::uint32_t node, std::chrono::nanoseconds lasts);

  ManualExecutor& world_;
  std::mt19937_64& random_;
  const SimNetwork& network_;
  Path calm_;  // what a path is when nothing disturbs it
  std::map<Pair, Path> paths_;
  std::map<std::uint32_t, Joined> members_;
  std::set<std::uint32_t> full_;             // sockets
  std::vector<std::vector<std::byte>> old_;  // datagrams that may be replayed
  bool disturbs_ = true;
};

}  // namespace mariner::test
