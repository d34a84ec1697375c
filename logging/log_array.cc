#include "logging/log_array.h"

#include <algorithm>
#include <span>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {

LogArray::LogArray(Executor& executor, std::uint64_t next_ordinal, LogWriter::Options options)
    : executor_(executor),
      writer_(std::make_unique<LogWriter>(executor, next_ordinal, options)),
      reader_(std::make_unique<LogReader>(disks_)) {
  writer_->set_track_gate([this](std::uint8_t number, std::uint64_t track) {
    const Member* member = find(number);
    CHECK(member != nullptr);
    return member->initialiser->may_write(track) &&
           (!member->slots || member->slots->may_write(track));
  });
}

LogArray::~LogArray() {
  CHECK_MSG(idle(), "a log array is destroyed in use");
  reader_.reset();
  writer_.reset();
}

LogArray::Member* LogArray::find(std::uint8_t number) const {
  const auto found = std::ranges::find_if(members_, [&](const std::unique_ptr<Member>& member) {
    return member->superblock.disk == number;
  });
  return found == members_.end() ? nullptr : found->get();
}

LogArray::Member& LogArray::add(std::shared_ptr<Disk> disk, const Superblock& superblock,
                                RecoveredDisk recovered, std::unique_ptr<Placement> placement) {
  CHECK(!superblock.has_slots());
  auto member = std::make_unique<Member>(
      Member{std::move(disk), superblock, std::move(recovered.tracks), {}, {}, {}, {}, {}, {}, {}});
  return set_up(std::move(member), std::move(recovered.tail), std::move(placement));
}

LogArray::Member& LogArray::add_slotted(std::shared_ptr<Disk> disk,
                                        std::shared_ptr<SlottedDisk> slotted,
                                        const Superblock& superblock, RecoveredDisk recovered) {
  CHECK(superblock.has_slots());
  auto member = std::make_unique<Member>(Member{std::move(disk),
                                                superblock,
                                                std::move(recovered.tracks),
                                                {},
                                                {},
                                                {},
                                                {},
                                                std::move(slotted),
                                                {},
                                                {}});
  member->slots = std::make_unique<SlotKeeper>(
      SlotKeeper::Parts{*member->slotted, member->tracks, *writer_, executor_},
      recovered.tail.allocation);
  return set_up(std::move(member), std::move(recovered.tail), nullptr);
}

std::uint64_t LogArray::Member::bytes_of(std::uint64_t allocation) const {
  const std::optional<std::uint64_t> track = tracks.track(allocation);
  return slotted != nullptr && track ? slotted->bytes_of(*track) : superblock.track_bytes();
}

LogArray::Member& LogArray::set_up(std::unique_ptr<Member> made, DiskTail tail,
                                   std::unique_ptr<Placement> placement) {
  const Superblock& superblock = made->superblock;
  CHECK(find(superblock.disk) == nullptr);
  members_.push_back(std::move(made));
  Member& member = *members_.back();
  member.log_disk = std::make_unique<LogDisk>(
      LogDisk::Parts{*member.disk, member.superblock, member.tracks, member.slots.get()},
      std::move(tail), std::move(placement));
  member.initialiser = std::make_unique<TrackInitialiser>(
      *member.log_disk, executor_, member.superblock, *writer_, member.slotted.get());
  TrackRecycler::Freed freed;
  if (member.slots) {
    member.slots->attach(*member.log_disk);
    freed = [slots = member.slots.get()](std::span<const std::uint64_t> tracks) {
      slots->released(tracks);
    };
  }
  member.recycler =
      std::make_unique<TrackRecycler>(*member.log_disk, member.tracks, *writer_, std::move(freed));
  disks_.add(superblock.disk, {member.disk, superblock.batch_format()});
  writer_->add(*member.log_disk);
  if (started_) start(member);
  if (scrub_reporter_) start_scrubber(member);
  if (packing_reporter_) start_packer(member);
  return member;
}

// What one disk may read: its part of the whole rate, as the log's disks are now.
void LogArray::start_scrubber(Member& member) {
  if (!TrackVerifier::can_verify(member.superblock)) return;
  const std::uint64_t rate =
      scrub_rate_ == 0 ? 0 : std::max<std::uint64_t>(1, scrub_rate_ / members_.size());
  TrackScrubber::Owner owner;
  owner.current_allocation = [disk = member.log_disk.get()] { return disk->current_allocation(); };
  owner.busy = [this] { return !writer_->idle(); };
  owner.report = [this, number = member.superblock.disk](const TrackDamage& damage) {
    scrub_reporter_(number, damage);
  };
  member.scrubber = std::make_unique<TrackScrubber>(
      TrackScrubber::Parts{*member.disk, executor_, member.superblock, member.tracks},
      TrackScrubber::Options{rate}, std::move(owner));
  member.scrubber->start();
}

void LogArray::start_scrubbing(std::uint64_t bytes_per_second, ScrubReporter report) {
  CHECK(!scrub_reporter_ && report);
  scrub_rate_ = bytes_per_second;
  scrub_reporter_ = std::move(report);
  for (const auto& member : members_) start_scrubber(*member);
}

void LogArray::start_packer(Member& member) {
  if (!member.slots) return;
  member.packer = std::make_unique<TrackPacker>(
      TrackPacker::Parts{member.slotted, *member.slots, *member.log_disk, member.tracks, *writer_,
                         executor_},
      [this, number = member.superblock.disk](const PackingReport& report) {
        packing_reporter_(number, report);
      });
  member.packer->set_options(packing_);
}

void LogArray::start_packing(const PackingOptions& options, PackingReporter report) {
  CHECK(!packing_reporter_ && report);
  packing_ = options;
  packing_reporter_ = std::move(report);
  for (const auto& member : members_) start_packer(*member);
}

void LogArray::set_packing(const PackingOptions& options) {
  packing_ = options;
  for (const auto& member : members_) {
    if (member->packer) member->packer->set_options(options);
  }
}

void LogArray::pack_now(UniqueFunction<void(Result<void>)> done) {
  struct All {
    std::size_t left = 1;
    Result<void> result{};
    UniqueFunction<void(Result<void>)> done;
  };
  const auto all = std::make_shared<All>();
  all->done = std::move(done);
  const auto one_done = [all](const Result<void>& result) {
    if (!result && all->result) all->result = result;
    if (--all->left == 0) all->done(all->result);
  };
  for (const auto& member : members_) {
    if (!member->packer || member->log_disk->finished()) continue;
    ++all->left;
    member->packer->pack_now(one_done);
  }
  one_done({});
}

void LogArray::drain(std::uint8_t number, UniqueFunction<void(Result<void>)> done) {
  writer_->remove(number, [this, number, done = std::move(done)](Result<void> result) mutable {
    if (result) {
      Member* member = find(number);
      CHECK(member != nullptr);
      member->initialiser->stop();
      if (member->packer) member->packer->stop();
      if (member->slots) member->slots->stop();
      member->log_disk->finish();
    }
    done(std::move(result));
  });
}

bool LogArray::is_empty(std::uint8_t number) const {
  const Member* member = find(number);
  return member != nullptr && member->log_disk->finished() && member->recycler->idle() &&
         member->initialiser->idle() && (!member->scrubber || member->scrubber->idle()) &&
         (!member->slots || member->slots->idle()) && (!member->packer || member->packer->idle()) &&
         member->tracks.oldest() >= member->log_disk->current_allocation();
}

void LogArray::remove(std::uint8_t number) {
  CHECK(is_empty(number));
  disks_.remove(number);
  std::erase_if(members_, [&](const std::unique_ptr<Member>& member) {
    return member->superblock.disk == number;
  });
}

void LogArray::start(Member& member) {
  if (member.slots) member.slots->start(*member.log_disk);
  member.initialiser->start();
}

void LogArray::start() {
  started_ = true;
  for (const auto& member : members_) {
    if (!member->log_disk->finished()) start(*member);
  }
}

void LogArray::stop() {
  started_ = false;
  for (const auto& member : members_) {
    member->initialiser->stop();
    if (member->scrubber) member->scrubber->stop();
    if (member->packer) member->packer->stop();
    if (member->slots) member->slots->stop();
  }
}

bool LogArray::idle() const {
  return writer_->idle() && std::ranges::all_of(members_, [](const std::unique_ptr<Member>& m) {
           return m->initialiser->idle() && m->recycler->idle() &&
                  (!m->scrubber || m->scrubber->idle()) && (!m->slots || m->slots->idle()) &&
                  (!m->packer || m->packer->idle());
         });
}

}  // namespace mariner::logging
