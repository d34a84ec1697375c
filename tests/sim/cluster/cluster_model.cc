#include "tests/sim/cluster/cluster_model.h"

#include <algorithm>
#include <iterator>

#include "proto/sequence_text.h"

namespace mariner::test {
namespace {}  // namespace

Blocks blocks_at(const LoggedWrites& log, SequenceNumber at,
                 const std::optional<std::set<std::uint64_t>>& only) {
  Blocks blocks;
  for (auto after = log.upper_bound(at); after != log.begin();) {
    if (only && blocks.size() == only->size()) break;
    const auto& [sequence, write] = *--after;
    if (write.back_to) {
      after = log.upper_bound(*write.back_to);
      continue;
    }
    for (std::uint64_t i = 0; i < write.extent.count.value; ++i) {
      const std::uint64_t block = write.extent.first.value + i;
      if (!only || only->contains(block)) {
        blocks.try_emplace(block, BlockValue{sequence, write.attempt});
      }
    }
  }
  return blocks;
}

std::uint64_t ClusterModel::begin(BlockRange extent) {
  attempts_.push_back({extent, {}, false, false});
  return attempts_.size() - 1;
}

void ClusterModel::stamped(const replication::WriteMessage& message) {
  const std::uint64_t attempt = attempt_of(message.write);
  const auto [given, first] =
      given_.try_emplace(message.stamp.sequence, Given{message.stamp.epoch, attempt});
  if (first) return;
  if (given->second.attempt != attempt || given->second.epoch != message.stamp.epoch) {
    violation(sequence_text(message.stamp.sequence) + " was given twice: in epoch " +
              std::to_string(given->second.epoch.value) + " and in epoch " +
              std::to_string(message.stamp.epoch.value));
  }
}

void ClusterModel::acknowledged(std::uint64_t attempt, const replication::Stamp& stamp) {
  Attempt& one = attempts_[attempt];
  one.acknowledged = true;
  one.stamp = stamp;
  ++acknowledged_;
  if (away_) ++acknowledged_away_;
  for (std::uint64_t i = 0; i < one.extent.count.value; ++i) {
    SequenceNumber& newest = newest_acknowledged_[one.extent.first.value + i];
    newest = std::max(newest, stamp.sequence);
  }
}

void ClusterModel::began(const std::optional<replication::LogAway>& away) {
  if (away && away_ != away) ++times_away_;
  away_ = away;
}

void ClusterModel::failed(std::uint64_t attempt) { attempts_[attempt].failed = true; }

bool ClusterModel::all_acknowledged_in(const LoggedWrites& log, SequenceNumber since) const {
  return std::ranges::all_of(attempts_, [&](const Attempt& one) {
    return !one.acknowledged || one.stamp->sequence <= since || log.contains(one.stamp->sequence);
  });
}

SequenceNumber ClusterModel::must_see(std::uint64_t block) const {
  const auto found = newest_acknowledged_.find(block);
  return found == newest_acknowledged_.end() ? SequenceNumber{} : found->second;
}

void ClusterModel::read(std::uint64_t block, SequenceNumber at_least, const BlockValue& value,
                        std::uint32_t node) {
  ++reads_;
  if (value.sequence < at_least) {
    violation("a read of block " + std::to_string(block) + " at node " + std::to_string(node) +
              " returns " + sequence_text(value.sequence) + ", but " + sequence_text(at_least) +
              " was acknowledged before");
  }
  seen_.push_back({block, value, node});
}

void ClusterModel::opened(VersionTime time, SequenceNumber at) { moments_.emplace_back(time, at); }

void ClusterModel::check_log(const LoggedWrites& log) {
  for (std::size_t i = 1; i < attempts_.size(); ++i) {
    const Attempt& one = attempts_[i];
    if (!one.acknowledged) continue;
    const auto found = log.find(one.stamp->sequence);
    if (found == log.end() || found->second.attempt != i) {
      violation("write " + sequence_text(one.stamp->sequence) + " of epoch " +
                std::to_string(one.stamp->epoch.value) +
                " was acknowledged, and is not in the history");
    }
  }
  VersionTime last{};
  for (const auto& [sequence, write] : log) {
    if (write.stamp.time <= last)
      violation(sequence_text(sequence) + " is not later than its predecessor");
    last = write.stamp.time;
    if (attempts_[write.attempt].failed) {
      violation("write " + sequence_text(sequence) +
                " was told to have failed, and is in the history");
    }
  }
  for (const Read& read : seen_) {
    if (read.value.sequence.value == 0) continue;
    const auto found = log.find(read.value.sequence);
    if (found == log.end() || found->second.attempt != read.value.attempt ||
        !found->second.extent.contains(Lbn{read.block})) {
      violation("a read at node " + std::to_string(read.node) + " returned " +
                sequence_text(read.value.sequence) + " of block " + std::to_string(read.block) +
                ", which is not in the history");
    }
  }
  // Times ascend: what lies on both sides of a moment says enough of the rest.
  for (const auto& [time, at] : moments_) {
    const auto wrong = [&, time = time, at = at](const auto& one) {
      violation("the moment " + std::to_string(time.ns) + " was opened as " + sequence_text(at) +
                ", but write " + sequence_text(one.first) + " has the time " +
                std::to_string(one.second.stamp.time.ns));
    };
    const auto next = log.upper_bound(at);
    if (next != log.end() && next->second.stamp.time <= time) wrong(*next);
    if (next != log.begin() && std::prev(next)->second.stamp.time > time) wrong(*std::prev(next));
  }
}

void ClusterModel::check_image(std::uint32_t node, const Blocks& image, const LoggedWrites& log) {
  const Blocks expected = blocks_at(log, SequenceNumber{UINT64_MAX});
  for (const auto& [block, value] : expected) {
    const auto found = image.find(block);
    if (found == image.end() || found->second != value) {
      violation("block " + std::to_string(block) + " of the image of node " + std::to_string(node) +
                " has " +
                (found == image.end() ? "nothing" : sequence_text(found->second.sequence)) +
                ", the history " + sequence_text(value.sequence));
    }
  }
  for (const auto& [block, value] : image) {
    if (!expected.contains(block)) {
      violation("block " + std::to_string(block) + " of the image of node " + std::to_string(node) +
                " has " + sequence_text(value.sequence) + ", which is not in the history");
    }
  }
}

}  // namespace mariner::test
