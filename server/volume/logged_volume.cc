#include "server/volume/logged_volume.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

LoggedVolume::LoggedVolume(Options options, LogParts log, Base& base)
    : base_map_(options.based_everywhere),
      index_(std::move(options.index)),
      log_(options.id, options.epoch, {log.writer, *index_, base_map_}, options.images),
      history_({options.id, *index_, log.disks, log.reader, log_, base_map_}),
      reader_(history_, base) {
  for (const BaseMap::Page& page : options.base_pages) CHECK(base_map_.load(page));
  log_.count_payload(options.payload_bytes);
  log_.found(options.unapplied);
}

LoggedVolume::~LoggedVolume() { CHECK_MSG(idle(), "a logged volume is destroyed in use"); }

std::optional<SequenceNumber> LoggedVolume::oldest_pinned() const {
  const SequenceNumber from = index_->oldest().sequence;
  const auto held = history_.oldest_held(from);
  const auto snapshot = snapshots_->oldest(from);
  if (!held || !snapshot) return held ? held : snapshot;
  return std::min(*held, *snapshot);
}

void LoggedVolume::forget_through(SequenceNumber sequence, std::uint64_t ordinal,
                                  std::uint64_t payload_bytes) {
  index_->forget_through(sequence, ordinal);
  log_.uncount_payload(payload_bytes);
}

void LoggedVolume::close(const Error& error) {
  snapshots_->drop_all();
  log_.close(error);
}

}  // namespace mariner::volume
