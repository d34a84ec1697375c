// Connections between the nodes of the simulated cluster, with what TCP makes of a bad network.
//
// Messages of one direction arrive in order, each once, after a random delay, or the connection
// breaks, and what was under way is lost. A partition holds messages up; after kDeadAfter each side
// finds the other one dead and the connection has ended for it, at a time of its own.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/cluster/sim_node.h"

namespace mariner::test {

class SimNetwork;

// One connection. Both ends hold it.
class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  enum class Side : std::uint8_t { kDialled, kAccepted };

  // Runs `arrives` at the other end, unless the connection breaks before.
  void send(Side from, UniqueFunction<void()> arrives);
  // Ends it for this side at once and silently, and for the other one a little later.
  void close(Side by);
  // Called once, when the other side or the network has ended it.
  void on_closed(Side side, UniqueFunction<void()> closed) { end(side).closed = std::move(closed); }
  [[nodiscard]] bool open(Side side) const { return ends_[side == Side::kDialled ? 0 : 1].open; }

 private:
  friend class SimNetwork;
  struct Arriving {
    std::uint64_t life = 0;  // of the node, when it was sent
    UniqueFunction<void()> work;
  };
  struct End {
    SimNode* node = nullptr;
    bool open = true;
    UniqueFunction<void()> closed;
    std::deque<Arriving> arriving;  // while the network does not let them through
    std::chrono::nanoseconds last_arrival{0};
  };
  End& end(Side side) { return ends_[side == Side::kDialled ? 0 : 1]; }
  static void ended(SimConnection& connection, Side side);
  static Side other(Side side) { return side == Side::kDialled ? Side::kAccepted : Side::kDialled; }

  SimNetwork* network_ = nullptr;
  std::uint64_t number_ = 0;
  End ends_[2];
  bool broken_ = false;
};
using SimConnectionPtr = std::shared_ptr<SimConnection>;

class SimNetwork {
 public:
  static constexpr std::chrono::nanoseconds kDeadAfter = std::chrono::seconds(2);

  SimNetwork(ManualExecutor& world, std::mt19937_64& random) : world_(world), random_(random) {}

  // Dials; null when the other node does not answer.
  SimConnectionPtr connect(SimNode& from, SimNode& to);

  // Nothing gets through between the two until heal().
  void partition(const SimNode& a, const SimNode& b);
  void heal(const SimNode& a, const SimNode& b);
  [[nodiscard]] bool partitioned(const SimNode& a, const SimNode& b) const {
    return partitions_.contains(pair_of(a, b));
  }
  // All connections of a node break: of a process that ended, at once; of a machine that lost
  // power, when the others notice.
  void crashed(const SimNode& node, bool noticed_at_once);
  // Breaks what there is between the two.
  void reset(const SimNode& a, const SimNode& b);

 private:
  friend class SimConnection;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  static Pair pair_of(const SimNode& a, const SimNode& b) {
    return std::minmax(a.id().value, b.id().value);
  }
  std::chrono::nanoseconds delay();
  void deliver(const SimConnectionPtr& connection, SimConnection::Side to,
               SimConnection::Arriving& what);
  void break_connection(const SimConnectionPtr& connection, std::chrono::nanoseconds until_noticed);
  void tell_closed(const SimConnectionPtr& connection, SimConnection::Side side,
                   std::chrono::nanoseconds delay);
  template <typename Which>
  std::vector<SimConnectionPtr> connections(Which which);

  ManualExecutor& world_;
  std::mt19937_64& random_;
  std::vector<std::weak_ptr<SimConnection>> connections_;
  std::uint64_t numbers_ = 0;
  std::set<Pair> partitions_;
  std::map<Pair, std::uint64_t> partition_number_;
};

}  // namespace mariner::test
