#include "tests/sim/cluster/sim_network.h"

#include <algorithm>

namespace mariner::test {

using Side = SimConnection::Side;

std::chrono::nanoseconds SimNetwork::delay() {
  const std::uint64_t roll = random_() % 100;
  const std::uint64_t us = roll < 90 ? 30 + random_() % 200 : 500 + random_() % 20'000;
  return std::chrono::microseconds(us);
}

SimConnectionPtr SimNetwork::connect(SimNode& from, SimNode& to) {
  if (!to.up() || partitioned(from, to)) return nullptr;
  auto connection = std::make_shared<SimConnection>();
  connection->network_ = this;
  connection->number_ = ++numbers_;
  connection->ends_[0].node = &from;
  connection->ends_[1].node = &to;
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  connections_.push_back(connection);
  return connection;
}

void SimConnection::send(Side from, UniqueFunction<void()> arrives) {
  if (broken_ || !end(from).open) return;
  End& to = end(other(from));
  const auto now = network_->world_.monotonic_time();
  to.last_arrival = std::max(to.last_arrival, now + network_->delay());
  network_->world_.after(to.last_arrival - now,
                         [self = shared_from_this(), side = other(from),
                          what = Arriving{to.node->life(), std::move(arrives)}]() mutable {
                           self->network_->deliver(self, side, what);
                         });
}

void SimNetwork::deliver(const SimConnectionPtr& connection, Side to,
                         SimConnection::Arriving& what) {
  SimConnection::End& end = connection->end(to);
  if (connection->broken_ || !end.open) return;
  if (partitioned(*connection->ends_[0].node, *connection->ends_[1].node) ||
      !end.arriving.empty()) {
    end.arriving.push_back(std::move(what));
    return;
  }
  end.node->run(what.life, connection->number_, what.work);
}

// The end comes behind what was sent before, through the same network.
void SimConnection::close(Side by) {
  if (!end(by).open) return;
  send(by, [self = shared_from_this(), side = other(by)] { ended(*self, side); });
  end(by).open = false;
  end(by).closed = nullptr;
}

void SimConnection::ended(SimConnection& connection, Side side) {
  End& end = connection.end(side);
  if (!end.open) return;
  end.open = false;
  if (auto closed = std::exchange(end.closed, nullptr)) closed();
}

void SimNetwork::tell_closed(const SimConnectionPtr& connection, Side side,
                             std::chrono::nanoseconds delay) {
  world_.after(delay, connection->end(side).node->guarded(
                          [connection, side] { SimConnection::ended(*connection, side); },
                          connection->number_));
}

void SimNetwork::break_connection(const SimConnectionPtr& connection,
                                  std::chrono::nanoseconds until_noticed) {
  if (connection->broken_) return;
  connection->broken_ = true;
  for (const Side side : {Side::kDialled, Side::kAccepted}) {
    connection->end(side).arriving.clear();
    const auto jitter = std::chrono::microseconds(random_() % (1 + until_noticed.count() / 4000));
    tell_closed(connection, side, until_noticed + jitter + delay());
  }
}

template <typename Which>
std::vector<SimConnectionPtr> SimNetwork::connections(Which which) {
  std::vector<SimConnectionPtr> found;
  for (const auto& weak : connections_) {
    if (auto held = weak.lock(); held && which(*held->ends_[0].node, *held->ends_[1].node)) {
      found.push_back(std::move(held));
    }
  }
  return found;
}

void SimNetwork::partition(const SimNode& a, const SimNode& b) {
  const Pair pair = pair_of(a, b);
  if (!partitions_.insert(pair).second) return;
  const std::uint64_t number = ++partition_number_[pair];
  world_.after(kDeadAfter, [this, pair, number] {
    if (!partitions_.contains(pair) || partition_number_[pair] != number) return;
    for (const auto& connection :
         connections([&](const SimNode& x, const SimNode& y) { return pair_of(x, y) == pair; })) {
      break_connection(connection, std::chrono::milliseconds(500));
    }
  });
}

void SimNetwork::heal(const SimNode& a, const SimNode& b) {
  if (partitions_.erase(pair_of(a, b)) == 0) return;
  for (const auto& connection : connections(
           [&](const SimNode& x, const SimNode& y) { return pair_of(x, y) == pair_of(a, b); })) {
    for (const Side side : {Side::kDialled, Side::kAccepted}) {
      SimConnection::End& end = connection->end(side);
      for (auto& what : std::exchange(end.arriving, {})) {
        if (connection->broken_ || !end.open) continue;
        end.node->run(what.life, connection->number_, what.work);
      }
    }
  }
}

void SimNetwork::crashed(const SimNode& node, bool noticed_at_once) {
  for (const auto& connection : connections(
           [&](const SimNode& x, const SimNode& y) { return &x == &node || &y == &node; })) {
    for (SimConnection::End& end : connection->ends_) {
      if (end.node != &node) continue;
      end.open = false;  // nobody is left to be told
      end.closed = nullptr;
    }
    break_connection(connection, noticed_at_once ? std::chrono::nanoseconds(0)
                                                 : std::chrono::nanoseconds(kDeadAfter));
  }
}

void SimNetwork::reset(const SimNode& a, const SimNode& b) {
  for (const auto& connection : connections(
           [&](const SimNode& x, const SimNode& y) { return pair_of(x, y) == pair_of(a, b); })) {
    break_connection(connection, std::chrono::milliseconds(1));
  }
}

}  // namespace mariner::test
