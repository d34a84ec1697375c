#include "server/volume/backlog.h"

#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::volume {

Backlog::Backlog() {
  older_.runs = std::make_shared<PendingTable>();
  newer_.runs = std::make_shared<PendingTable>();
}

template <typename Remove>
void Backlog::Part::removing(Remove remove) {
  const auto before = static_cast<double>(runs->cost_bytes());
  remove(*runs);
  if (before > 0) bytes *= static_cast<double>(runs->cost_bytes()) / before;
}

// What the older part has of it gets its newest contents there: the image lacks something older of
// these blocks, too, and is not to wait for the newer part.
void Backlog::add(BlockRange range, const PendingContent& content) {
  CHECK(content.kind == PendingContent::Kind::kHistory);
  std::vector<BlockRange> in_older;
  older_.runs->visit(range, [&](BlockRange part, const PendingContent* older) {
    if (older != nullptr) return in_older.push_back(part);
    newer_.runs->put(part, content);
  });
  for (const BlockRange& part : in_older) older_.runs->put(part, content);
}

void Backlog::add_all(std::shared_ptr<PendingTable> table) {
  CHECK(empty() && table->history_bytes() == table->cost_bytes());
  newer_.runs = std::move(table);
}

void Backlog::added(const Share& share) {
  newer_.bytes += static_cast<double>(share.bytes);
  newer_.missed |= share.missed;
  newer_.restores |= share.restores;
  if (!newer_.since) newer_.since = share.since;
}

void Backlog::remove(BlockRange range) {
  for (Part* part : {&older_, &newer_}) {
    part->removing([&](PendingTable& runs) { runs.erase(range); });
  }
}

void Backlog::remove_first(BlockRange range) {
  older_.removing([&](PendingTable& runs) { runs.erase(range); });
}

SequenceNumber Backlog::advance(SequenceNumber applied) {
  if (!older_.runs->empty()) return {};
  const SequenceNumber held = older_.last;
  older_ = std::exchange(newer_, Part{});
  older_.last = applied;
  newer_.runs = std::make_shared<PendingTable>();
  if (!older_.runs->empty()) return held;
  older_.bytes = 0;
  older_.missed = older_.restores = false;
  older_.since.reset();
  return applied;
}

void Backlog::visit(BlockRange range,
                    const std::function<void(BlockRange, const PendingContent*)>& visitor) const {
  newer_.runs->visit(range, [&](BlockRange part, const PendingContent* content) {
    if (content != nullptr) return visitor(part, content);
    older_.runs->visit(part, visitor);
  });
}

std::uint64_t Backlog::missed_bytes() const {
  return (older_.missed ? older_.runs->cost_bytes() : 0) +
         (newer_.missed ? newer_.runs->cost_bytes() : 0);
}

std::uint64_t Backlog::restoring_bytes() const {
  return (older_.restores ? older_.runs->cost_bytes() : 0) +
         (newer_.restores ? newer_.runs->cost_bytes() : 0);
}

}  // namespace mariner::volume
