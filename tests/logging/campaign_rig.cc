#include "tests/logging/campaign_rig.h"

#include <algorithm>

#include "logging/rotational_placement.h"
#include "logging/superblock_store.h"
#include "proto/check.h"

namespace mariner::logging::test {
namespace {

constexpr std::uint64_t kRotatingTrackBytes = 128u << 10;
constexpr auto kRotation = std::chrono::milliseconds(1);

bool overlap(ByteRange a, ByteRange b) { return a.offset < b.end() && b.offset < a.end(); }

LogShape shape_of(std::uint8_t number, CampaignRig::Media media, std::uint64_t tracks) {
  LogShape shape{.log = log_id(), .disk = number, .track_bytes = kTrackBytesMin, .created_ns = 1};
  shape.slots = media == CampaignRig::Media::kSlotted;
  if (media == CampaignRig::Media::kRotating) {
    shape.track_bytes = kRotatingTrackBytes;
    shape.sector_bytes = 512;
    shape.first_sector = kReservedBytes / 512;
    shape.tracks = tracks;
    shape.rotation = kRotation;
  }
  return shape;
}

}  // namespace

bool CampaignRig::Slot::is_damaged(ByteRange range) const {
  const auto hits = [&](ByteRange each) { return overlap(each, range); };
  return std::ranges::any_of(damaged, hits) || std::ranges::any_of(disk->lies(), hits);
}

CampaignRig::CampaignRig(const Options& given) : options(given) {}

CampaignRig::~CampaignRig() { close(); }

void CampaignRig::add_disk(Media media, std::uint64_t tracks) {
  std::uint8_t number = 0;
  while (find(number) != nullptr) ++number;
  auto slot = std::make_unique<Slot>();
  slot->number = number;
  slot->rotates = media == Media::kRotating;
  slot->slotted = media == Media::kSlotted;
  const LogShape shape = shape_of(number, media, tracks);
  slot->disk = std::make_unique<FaultyDisk>(
      executor, FaultyDisk::Options{.size_bytes = kReservedBytes + tracks * shape.track_bytes,
                                    .seed = options.seed * 64 + ++disks_made_,
                                    .delay_max = options.delay_max,
                                    .alignment = shape.sector_bytes});
  const Result<Superblock> superblock = format_log_disk(*slot->disk, shape);
  CHECK(superblock.has_value());
  slot->shape = *superblock;
  slot->spy = std::make_shared<BatchSpy>(*slot->disk, superblock->batch_format());
  if (is_open()) {
    CHECK(open_tracks(*slot, *superblock).has_value());
    set_up(*slot, *superblock, RecoveredDisk{{}, TrackList(*superblock)});
  }
  slots.push_back(std::move(slot));
}

Result<void> CampaignRig::open_tracks(Slot& slot, const Superblock& superblock) {
  if (!slot.slotted) return {};
  slot.tracks = nullptr;
  // Nobody reads beside the test's own thread: a seed is one history.
  auto opened = SlottedDisk::open(LogDisks::not_owned(*slot.disk), superblock, executor, 0);
  if (!opened) return opened.error();
  slot.tracks = *std::move(opened);
  slot.spy->stand_before(*slot.tracks);
  return {};
}

void CampaignRig::set_up(Slot& slot, const Superblock& superblock, RecoveredDisk found) {
  if (slot.slotted) {
    array->add_slotted(slot.spy, slot.tracks, superblock, std::move(found));
  } else {
    array->add(slot.spy, superblock, std::move(found),
               slot.rotates ? std::make_unique<RotationalPlacement>(
                                  RotationalPlacement::Options{.rotation = kRotation})
                            : nullptr);
  }
}

void CampaignRig::pack(std::uint8_t number, std::size_t tracks_max) {
  LogArray::Member* member = array->find(number);
  if (packing_ || member == nullptr || !member->slots) return;
  // The contents do not compress well.
  PackingJob job{.disk = member->slotted, .live = {}, .tracks = {}, .packed_part_max = 2};
  for (LiveTracks& live : live_tracks(*array)) {
    if (live.superblock.disk == number) job.live = std::move(live);
  }
  for (std::size_t i = 0; i < job.live.tracks.size() && job.tracks.size() < tracks_max; ++i) {
    const Allocated& track = job.live.tracks[i];
    const TrackPlace place = member->slotted->map().place_of(track.track);
    if (track.allocation < job.live.current && place.kind == TrackPlace::Kind::kSlot) {
      job.tracks.push_back(i);
    }
  }
  if (job.tracks.empty()) return;
  PackingResult result = pack_tracks(job, [] { return Result<void>{}; });
  if (!result) return member->slotted->end_building();
  packing_ = true;
  member->slots->add_pack(
      std::move(result->place),
      [this, slotted = member->slotted, count = job.tracks.size()](const Result<void>& added) {
        slotted->end_building();
        packing_ = false;
        if (added) packed += count;
      });
}

CampaignRig::Slot* CampaignRig::find(std::uint8_t number) {
  const auto found =
      std::ranges::find_if(slots, [&](const auto& slot) { return slot->number == number; });
  return found == slots.end() ? nullptr : found->get();
}

std::size_t CampaignRig::usable() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(slots, [](const auto& slot) { return !slot->draining; }));
}

void CampaignRig::drain(std::uint8_t number) {
  Slot* slot = find(number);
  CHECK(slot != nullptr);
  if (slot->draining || usable() == 1) return;
  auto refused = std::make_shared<Result<void>>();
  if (is_open()) {
    array->drain(number, [refused](Result<void> result) { *refused = std::move(result); });
  }
  if (*refused) slot->draining = true;
}

void CampaignRig::retire() {
  for (auto& slot : slots) {
    if (!slot->draining || !is_open() || !array->is_empty(slot->number)) continue;
    array->remove(slot->number);
    gone_.push_back(std::move(slot));
  }
  std::erase(slots, nullptr);
}

Result<void> CampaignRig::open(unsigned threads, bool initialise) {
  CHECK(!is_open());
  visited.clear();
  std::vector<Superblock> superblocks;
  for (const auto& slot : slots) {
    Result<Superblock> superblock = read_superblock(*slot->disk);
    if (!superblock) return superblock.error();
    if (Result<void> r = open_tracks(*slot, *superblock); !r) return r;
    superblocks.push_back(*superblock);
  }
  for (const auto& slot : slots) slot->found_batches.clear();
  std::vector<LogDiskRef> refs;
  for (std::size_t i = 0; i < slots.size(); ++i) refs.push_back({*slots[i]->spy, superblocks[i]});
  Result<Recovered> result =
      recover_log(refs, threads, [this](const Record& record, const LogLocation& at) {
        Slot& slot = *find(at.disk);
        const auto batch = slot.spy->holding(record.sequence.value, at.batch_sector);
        if (batch) slot.found_batches.insert(batch->number);
        if (record.ordinal >= given_up) visited.push_back({record, at});
      });
  if (!result) return result.error();
  recovered = *std::move(result);
  array = std::make_unique<LogArray>(executor, std::max(recovered.next_ordinal, given_up),
                                     options.writer);
  array->writer().set_withdrawn(recovered.withdrawn);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i]->next_batch = recovered.disks[i].tail.next_batch;
    set_up(*slots[i], superblocks[i], std::move(recovered.disks[i]));
  }
  recovered.disks.clear();
  for (const auto& slot : slots) {
    if (slot->draining) array->drain(slot->number, [](const Result<void>&) {});
  }
  array->writer().set_full_gate([this] { return reclaiming_; });
  if (initialise) array->start();
  return {};
}

void CampaignRig::close() {
  if (!is_open()) return;
  for (const auto& slot : slots) slot->disk->release();
  for (const auto& slot : gone_) slot->disk->release();
  array->stop();
  become_idle();
  array.reset();
  gone_.clear();
}

// A disk that rotates is measured again and again: its timers never end.
void CampaignRig::become_idle() {
  const auto busy = [this] {
    const auto in_use = [](const auto& slot) { return slot->disk->in_flight() > 0; };
    return reclaiming_ || packing_ || !array->idle() || std::ranges::any_of(slots, in_use) ||
           std::ranges::any_of(gone_, in_use);
  };
  for (int i = 0; busy(); ++i) {
    CHECK_MSG(i < 10'000, "a log array does not become idle");
    executor.advance(std::chrono::microseconds(500));
    // What waits for room does not wait any longer.
    if (i == 20) array->writer().set_full_gate(nullptr);
    if (i > 20) array->writer().retry();
  }
}

void CampaignRig::cut_power() {
  for (const auto& slot : slots) slot->disk->cut_power();
  for (const auto& slot : gone_) slot->disk->cut_power();
}

void CampaignRig::restore_power() {
  for (const auto& slot : slots) {
    slot->disk->restore_power();
    slot->disk->fail_writes(0, FaultyDisk::Remains::kNothing);
    slot->disk->fail_reads({});
    slot->disk->set_capacity(UINT64_MAX);
  }
}

bool CampaignRig::powered() const {
  return std::ranges::all_of(slots, [](const auto& slot) { return slot->disk->powered(); });
}

Result<void> CampaignRig::reclaim(std::chrono::nanoseconds store_time, OldestHook given_up_hook,
                                  TrackHook freeing) {
  if (reclaiming_) return {};
  const std::uint64_t frontier = array->writer().ordinal_frontier();
  Result<std::optional<OldestRecords>> read = read_oldest_records(live_tracks(*array), given_up);
  if (!read) return read.error();
  if (!*read || (*read)->end_ordinal > frontier) return {};
  reclaiming_ = true;
  executor.after(store_time, [this, oldest = **std::move(read), given_up_hook, freeing] {
    if (!powered()) {
      reclaiming_ = false;
      return;
    }
    given_up = std::max(given_up, oldest.end_ordinal);
    given_up_hook(oldest);
    release_oldest(oldest.disk, freeing);
  });
  return {};
}

void CampaignRig::release_oldest(std::uint8_t number, const TrackHook& freeing) {
  LogArray::Member* member = array->find(number);
  const auto finish = [this](const Result<void>&) {
    reclaiming_ = false;
    array->writer().retry();
  };
  if (member == nullptr || member->tracks.oldest() >= member->log_disk->current_allocation()) {
    return finish({});
  }
  const std::uint64_t oldest = member->tracks.oldest();
  if (const auto track = member->tracks.track(oldest)) {
    const Superblock& superblock = member->superblock;
    freeing(*find(number), {superblock.track_first_sector(*track) * superblock.sector_bytes,
                            superblock.track_bytes()});
  }
  member->recycler->release(oldest + 1, finish);
}

}  // namespace mariner::logging::test
