#include "tests/sim/cluster/sim_multicast.h"

#include <algorithm>

namespace mariner::test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kOldMax = 32;
// Of the events that a node which stands still has to look at, multicast is one channel.
constexpr std::uint64_t kChannel = UINT64_MAX;

}  // namespace

std::span<const std::byte> SimMulticast::Batch::datagram(std::size_t index) const {
  const std::size_t at = index * datagram_bytes;
  return std::span(bytes).subspan(at, std::min(datagram_bytes, bytes.size() - at));
}

SimMulticast::SimMulticast(ManualExecutor& world, std::mt19937_64& random,
                           const SimNetwork& network)
    : world_(world), random_(random), network_(network) {}

void SimMulticast::enter(Member& member) {
  if (members_.empty()) {
    constexpr unsigned kLoss[] = {0, 0, 1, 10, 50};
    calm_.loss_per_mille = kLoss[random_() % std::size(kLoss)];
    calm_.late_per_mille = random_() % 2 == 0 ? 0 : 2;
  }
  members_[member.node().id().value] = {&member, {}};
}

void SimMulticast::leave(Member& member) { members_.at(member.node().id().value) = {}; }

bool SimMulticast::join(Member& member, const trm::Group& group) {
  if (disturbs_ && rolls(20)) return false;
  members_.at(member.node().id().value).groups.insert(group);
  return true;
}

void SimMulticast::leave(Member& member, const trm::Group& group) {
  members_.at(member.node().id().value).groups.erase(group);
}

SimMulticast::Path& SimMulticast::path(std::uint32_t from, std::uint32_t to) {
  return paths_.try_emplace({from, to}, calm_).first->second;
}

// ---- datagrams

bool SimMulticast::send(Member& from, const trm::Group& to, std::span<const std::byte> datagrams,
                        std::size_t datagram_bytes) {
  const std::uint32_t sender = from.node().id().value;
  if (full_.contains(sender)) return false;
  const auto batch = std::make_shared<const Batch>(
      Batch{to, {datagrams.begin(), datagrams.end()}, datagram_bytes});
  if (random_() % 16 == 0) {
    const auto first = batch->datagram(0);
    if (old_.size() < kOldMax) {
      old_.emplace_back(first.begin(), first.end());
    } else {
      old_[random_() % old_.size()].assign(first.begin(), first.end());
    }
  }
  for (const auto& [node, joined] : members_) {
    if (node == sender || !joined.groups.contains(to)) continue;
    if (network_.partitioned(from.node(), joined.member->node())) continue;
    const Path& way = path(sender, node);
    if (rolls(way.forged_per_mille)) forge(*batch, node);
    if (!way.blocked) pass(batch, way, node);
  }
  return true;
}

void SimMulticast::pass(const BatchPtr& batch, const Path& path, std::uint32_t to) {
  Indices soon;
  soon.reserve(batch->count());
  for (std::size_t i = 0; i < batch->count(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    if (rolls(path.loss_per_mille)) continue;
    if (rolls(path.doubled_per_mille)) soon.push_back(index);
    if (rolls(path.late_per_mille)) {
      const auto late = random_() % 4 == 0 ? random_() % 6'000'000 : random_() % 30'000;
      arrive_later(std::chrono::microseconds(late), batch, {index}, to);
    } else {
      soon.push_back(index);
    }
  }
  if (soon.empty()) return;
  if (path.shuffled) std::ranges::shuffle(soon, random_);
  const auto us = random_() % 50 == 0 ? random_() % 10'000 : 20 + random_() % 150;
  arrive_later(std::chrono::microseconds(us), batch, std::move(soon), to);
}

// By nobody who has the key: changed, cut, made up, or what somebody has heard long ago.
void SimMulticast::forge(const Batch& batch, std::uint32_t to) {
  auto bytes = batch.datagram(random_() % batch.count());
  if (random_() % 2 == 0 && !old_.empty()) bytes = old_[random_() % old_.size()];
  std::vector<std::byte> forged(bytes.begin(), bytes.end());
  switch (random_() % 4) {
    case 0: break;  // replayed as it was
    case 1: forged[random_() % forged.size()] ^= static_cast<std::byte>(1 + random_() % 255); break;
    case 2: forged.resize(1 + random_() % forged.size()); break;
    default:
      for (std::size_t i = 20; i < forged.size(); i += 1 + random_() % 64) {
        forged[i] = static_cast<std::byte>(random_());
      }
  }
  const std::size_t size = forged.size();
  arrive_later(std::chrono::microseconds(random_() % 1000),
               std::make_shared<const Batch>(Batch{batch.to, std::move(forged), size}), {0}, to);
}

void SimMulticast::arrive_later(std::chrono::nanoseconds delay, BatchPtr batch, Indices which,
                                std::uint32_t to) {
  world_.after(delay, [this, batch = std::move(batch), which = std::move(which), to] {
    arrive(batch, which, to);
  });
}

// A node that stands still finds some of it in its socket's buffer.
void SimMulticast::arrive(const BatchPtr& batch, const Indices& which, std::uint32_t to) {
  const Joined& joined = members_.at(to);
  if (!joined.groups.contains(batch->to)) return;
  SimNode& node = joined.member->node();
  if (!node.paused()) return joined.member->datagrams(*batch, which);
  if (random_() % 2 == 0) return;
  node.guarded(
      [&joined, batch, which] {
        if (joined.groups.contains(batch->to)) joined.member->datagrams(*batch, which);
      },
      kChannel)();
}

// ---- what goes wrong

void SimMulticast::disturb_later() {
  world_.after(std::chrono::milliseconds(50 + random_() % 1500), [this] {
    if (!disturbs_) return;
    disturb();
    disturb_later();
  });
}

void SimMulticast::disturb() {
  const auto any = [this] {
    return std::next(members_.begin(), static_cast<std::ptrdiff_t>(random_() % members_.size()))
        ->first;
  };
  const std::uint32_t from = any();
  std::uint32_t to = any();
  while (to == from) to = any();
  const unsigned longest = random_() % 3 == 0 ? 8000 : 600;
  const auto lasts = std::chrono::milliseconds(random_() % longest);
  Path& one = path(from, to);
  switch (random_() % 8) {
    case 0: one.loss_per_mille = static_cast<unsigned>(random_() % 301); break;
    case 1: one.loss_per_mille = static_cast<unsigned>(random_() % 50); break;
    case 2: one.doubled_per_mille = 100; break;
    case 3: one.shuffled = true; break;
    case 4: one.forged_per_mille = 200; break;
    case 5: one.late_per_mille = static_cast<unsigned>(random_() % 100); break;
    case 6:
      // From all others, or some: a filter, or a switch that nobody asks any more.
      for (const auto& [node, joined] : members_) {
        if (node != to && random_() % 4 > 0) path(node, to).blocked = true;
      }
      break;
    default: return fill_socket(from, lasts % 500ms);
  }
  world_.after(lasts, [this, from, to] {
    path(from, to) = calm_;
    // (One that was blocked meanwhile by another disturbance is free a little earlier.)
    for (auto& [pair, each] : paths_) {
      if (pair.second == to) each.blocked = false;
    }
  });
}

void SimMulticast::fill_socket(std::uint32_t node, std::chrono::nanoseconds lasts) {
  if (!full_.insert(node).second) return;
  world_.after(lasts, [this, node] {
    full_.erase(node);
    if (Member* const member = members_.at(node).member) member->writable();
  });
}

void SimMulticast::heal() {
  disturbs_ = false;
  calm_ = {};
  paths_.clear();
}

}  // namespace mariner::test
