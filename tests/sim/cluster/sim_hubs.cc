#include "tests/sim/cluster/sim_hubs.h"

#include <algorithm>
#include <utility>

namespace mariner::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);

}  // namespace

SimHubs::SimHubs(SimNode& node, std::mt19937_64& random, SimMulticast& network,
                 Connections& connections, const trm::SenderHub::Options& options, Planted planted)
    : node_(node),
      random_(random),
      same_each_life_(node.id().value),
      network_(network),
      connections_(connections),
      sender_(*this, options),
      receiver_(*this, {}),
      planted_(planted) {
  network_.enter(*this);
}

void SimHubs::begin_flow(trm::FlowNumber flow, const trm::Group& group,
                         const std::vector<trm::PeerNumber>& peers) {
  sender().begin_flow(flow, group, peers);
  if (!std::exchange(ticking_, true)) tick_later();
}

bool SimHubs::multicast(const trm::Group& to, std::span<const std::byte> datagrams,
                        std::size_t datagram_bytes) {
  const bool taken = network_.send(*this, to, datagrams, datagram_bytes);
  if (!taken) waiting_.insert(to);
  return taken;
}

void SimHubs::random(std::span<std::byte> to) {
  std::mt19937_64& from = planted_ == Planted::kStreamReused ? same_each_life_ : random_;
  for (std::byte& each : to) each = static_cast<std::byte>(from());
}

Result<void> SimHubs::listen(const trm::Group& group) {
  if (network_.join(*this, group)) return {};
  return Error{ErrorCode::kNotFound, std::string(kDeaf)};
}

void SimHubs::datagrams(const SimMulticast::Batch& batch, const SimMulticast::Indices& which) {
  const Turn turn(*this);
  for (const std::uint16_t index : which) receiver().datagram(batch.datagram(index), now());
}

void SimHubs::writable() {
  node_.post([this] {
    for (const trm::Group& group : std::exchange(waiting_, {})) sender().writable(group, now());
  });
}

// ---- turns

void SimHubs::flush_later(bool& which) {
  which = true;
  if (in_turn_ || std::exchange(flush_set_, true)) return;
  node_.defer([this] {
    flush_set_ = false;
    flush();
  });
}

// The one to which something was said.
void SimHubs::flush() {
  const auto time = now();
  if (std::exchange(flush_sender_, false)) {
    sender_.flush(time);
    if (const auto at = sender_.next_at(time)) wake_at(*at);
  }
  if (std::exchange(flush_receiver_, false)) {
    receiver_.flush(time);
    if (const auto at = receiver_.next_at()) wake_at(*at);
  }
}

void SimHubs::wake_at(std::chrono::nanoseconds at) {
  if (wakes_at_ && *wakes_at_ <= at) return;
  wakes_at_ = at;
  node_.after(std::max(at - now(), std::chrono::nanoseconds(0)), [this, at] {
    // (An earlier one has been here if it is not the one.)
    if (wakes_at_ != at) return;
    wakes_at_.reset();
    flush_sender_ = flush_receiver_ = true;
    flush();
  });
}

// As long as there is a stream.
void SimHubs::tick_later() {
  node_.after(kTick, [this] {
    sender().tick(now());
    ticking_ = sender_.streams() > 0;
    if (ticking_) tick_later();
  });
}

}  // namespace mariner::test
