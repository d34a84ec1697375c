#include "tests/logging/slot_rig.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging::test {

using namespace std::chrono_literals;

Payload text_of(std::uint64_t seed, std::uint32_t blocks) {
  Payload payload = Payload::allocate(std::size_t{blocks} * kBlockBytes);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload.data()[i] = static_cast<std::byte>('a' + i % 23);
  }
  for (std::uint32_t i = 0; i < blocks; ++i) {
    store_le(payload.data() + std::size_t{i} * kBlockBytes, seed * 0x9e3779b97f4a7c15u + i);
  }
  return payload;
}

Payload noise_of(std::uint64_t seed, std::uint32_t blocks) {
  Payload payload = Payload::allocate(std::size_t{blocks} * kBlockBytes);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < payload.size(); i += 8) store_le(payload.data() + i, random());
  return payload;
}

SlotRig::SlotRig(const Options& given)
    : options(given),
      disk(executor, {.size_bytes = kReservedBytes + given.slots * kTrackBytes,
                      .seed = given.seed,
                      .delay_max = given.delay_max}) {
  CHECK(format_log(disk, log_id(), 0, kTrackBytes, 1, true).has_value());
}

SlotRig::~SlotRig() { close(); }

bool SlotRig::open() {
  const Result<Superblock> found = read_superblock(disk);
  if (!found) {
    ADD_FAILURE() << to_string(found.error());
    return false;
  }
  superblock = *found;
  auto opened = SlottedDisk::open(hooked, superblock, executor);
  if (!opened) {
    ADD_FAILURE() << to_string(opened.error());
    return false;
  }
  const std::shared_ptr<SlottedDisk> through = *std::move(opened);
  visited.clear();
  reports.clear();
  const LogDiskRef ref{*through, superblock};
  Result<Recovered> result = recover_log(
      {&ref, 1}, 0,
      [this](const Record& record, const LogLocation& at) { visited[record.sequence.value] = at; });
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return false;
  }
  recovered = *result;
  array = std::make_unique<LogArray>(executor, result->next_ordinal, LogWriter::Options{});
  array->writer().set_withdrawn(result->withdrawn);
  array->add_slotted(through, through, superblock, std::move(result->disks.front()));
  array->find(0)->slots->start(*array->find(0)->log_disk);
  executor.run_ready();
  return true;
}

bool SlotRig::wait(const std::function<bool()>& reached) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (;;) {
    executor.run_ready();
    if (reached()) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    executor.advance(1ms);
    std::this_thread::sleep_for(100us);
  }
}

void SlotRig::close() {
  if (!array) return;
  disk.release();
  array->stop();
  CHECK(wait([this] { return array->idle(); }));
  array.reset();
}

void SlotRig::crash() {
  disk.cut_power();
  close();
  disk.restore_power();
}

void SlotRig::append(std::uint64_t sequence, std::uint32_t blocks, bool text) {
  bool told = false;
  Payload payload = text ? text_of(sequence, blocks) : noise_of(sequence, blocks);
  const Record record =
      blocks > 0 ? record_of(1, sequence, blocks) : record_of(1, sequence, 4, RecordType::kZero);
  array->writer().append(record, whole(std::move(payload)), Urgency::kOrdinary,
                         [&, this](const Result<LoggedAt>& result) {
                           told = true;
                           if (result) {
                             durable[sequence] = {result->location,
                                                  member().log_disk->current_allocation(), blocks,
                                                  text};
                           } else {
                             failures.push_back(std::string(error_code_name(result.error().code)));
                           }
                         });
  CHECK_MSG(wait([&] { return told; }), "a record waits for ever");
}

void SlotRig::fill_tracks(std::uint64_t first_sequence, std::uint64_t count, bool text) {
  for (std::uint64_t i = 0; i <= count; ++i) {
    leave_track();
    append(first_sequence + i, text ? 16 : 64, text);
  }
}

Result<void> SlotRig::release(std::uint64_t oldest) {
  released = std::max(released, oldest);
  std::optional<Result<void>> outcome;
  member().recycler->release(oldest,
                             [&outcome](Result<void> result) { outcome = std::move(result); });
  CHECK(wait([&] { return outcome.has_value(); }));
  return *outcome;
}

void SlotRig::start_packing(const PackingOptions& packing) {
  PackingOptions fast = packing;
  fast.cpu_share = 1;
  if (packing.pack_bytes == PackingOptions{}.pack_bytes) {
    fast.pack_bytes = kTrackBytes;  // each track by itself
  }
  array->start_packing(
      fast, [this](std::uint8_t, const PackingReport& report) { reports.push_back(report); });
}

Result<void> SlotRig::pack() {
  // It may be told after this has given up.
  const auto outcome = std::make_shared<std::optional<Result<void>>>();
  array->pack_now([outcome](Result<void> result) { *outcome = std::move(result); });
  CHECK(wait([&] { return outcome->has_value() || !disk.powered(); }));
  return outcome->value_or(Error{ErrorCode::kAborted, "the power is off"});
}

bool SlotRig::readable(std::uint64_t sequence) {
  const Durable& record = durable.at(sequence);
  if (record.blocks == 0) return true;
  Payload to = Payload::allocate(std::size_t{record.blocks} * kBlockBytes);
  const Result<void> read = read_log_blocking(
      array->disks(), {record.location, VolumeId{1}, SequenceNumber{sequence}, 0, to.bytes()});
  const Payload expected =
      record.text ? text_of(sequence, record.blocks) : noise_of(sequence, record.blocks);
  return read && std::ranges::equal(to.bytes(), expected.bytes());
}

std::string SlotRig::check_records() {
  if (!recovered.damage.empty()) return "damage: " + damage_text(recovered);
  for (const auto& [sequence, record] : durable) {
    if (record.allocation < released) continue;
    const auto found = visited.find(sequence);
    if (found == visited.end()) return std::to_string(sequence) + " is lost";
    if (!(found->second == record.location)) return std::to_string(sequence) + " is elsewhere";
    if (!readable(sequence)) return std::to_string(sequence) + " cannot be read";
  }
  return "ok";
}

std::string SlotRig::check_slots() {
  const SlotMap& map = slotted().map();
  const TrackList& list = member().tracks;
  std::set<std::uint64_t> needed;  // tracks
  for (std::uint64_t a = list.oldest(); a < list.end(); ++a) needed.insert(*list.track(a));
  std::set<std::uint64_t> used;
  const std::uint64_t current = member().log_disk->current_allocation();
  std::uint64_t ahead = 0;
  for (std::uint64_t a = list.oldest(); a < list.end(); ++a) {
    const TrackPlace place = map.place_of(*list.track(a));
    if (place.kind == TrackPlace::Kind::kNowhere) continue;
    if (place.kind == TrackPlace::Kind::kPack && a > current) {
      return "allocation " + std::to_string(a) + " is planned, and packed";
    }
    if (a > current) ++ahead;
    if (place.kind == TrackPlace::Kind::kSlot && !used.insert(place.number).second) {
      return "slot " + std::to_string(place.number) + " is held twice";
    }
  }
  for (const auto& [id, pack] : map.packs()) {
    const bool lives = std::ranges::any_of(pack.tracks, [&](std::uint64_t track) {
      return track != PackPlace::kFreed && needed.contains(track);
    });
    if (!lives) return "pack " + std::to_string(id) + " holds nothing";
    for (const PackExtent& extent : pack.extents) used.insert(extent.slot);
  }
  for (std::uint64_t slot = 0; slot < map.slot_count(); ++slot) {
    if (map.is_free(slot) == used.contains(slot)) {
      return "slot " + std::to_string(slot) + (map.is_free(slot) ? " is taken" : " is lost");
    }
  }
  if (slotted().usable_slots() != map.free_slots()) {
    return std::to_string(slotted().usable_slots()) + " slots of " +
           std::to_string(map.free_slots()) + " can be used";
  }
  if (slots().free_tracks(current) != map.free_slots() + ahead) return "tracks are miscounted";
  return "ok";
}

}  // namespace mariner::logging::test
