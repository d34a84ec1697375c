#include "tests/logging/array_rig.h"

#include <algorithm>
#include <utility>

#include "logging/rotational_placement.h"
#include "proto/check.h"

namespace mariner::logging::test {

ArrayRig::ArrayRig(const Options& given) : options(given) {
  const std::uint64_t track_bytes = options.rotating ? kRotatingTrackBytes : kTrackBytes;
  for (std::size_t i = 0; i < options.disks; ++i) {
    FaultyDisk::Options disk;
    disk.size_bytes = kReservedBytes + options.tracks * track_bytes;
    disk.seed = options.seed * 1000 + i;
    disk.delay_max = options.delay_max;
    if (options.rotating) disk.alignment = FaultyDisk::kSectorBytes;
    disks.push_back(std::make_unique<FaultyDisk>(executor, disk));
    LogShape shape;
    shape.log = log_id();
    shape.disk = static_cast<std::uint8_t>(i);
    shape.track_bytes = track_bytes;
    shape.created_ns = 1;
    if (options.rotating) {
      shape.sector_bytes = FaultyDisk::kSectorBytes;
      shape.first_sector = kReservedBytes / FaultyDisk::kSectorBytes;
      shape.tracks = options.tracks;
      shape.rotation = kRotation;
    }
    CHECK(format_log_disk(*disks.back(), shape).has_value());
  }
}

ArrayRig::~ArrayRig() { close(); }

bool ArrayRig::open(unsigned threads) {
  superblocks.clear();
  visited.clear();
  outcomes.clear();
  reports.clear();
  for (const auto& disk : disks) superblocks.push_back(*read_superblock(*disk));
  std::vector<LogDiskRef> refs;
  for (std::size_t i = 0; i < disks.size(); ++i) refs.push_back({*disks[i], superblocks[i]});
  Result<Recovered> result =
      recover_log(refs, threads, [this](const Record& record, const LogLocation& at) {
        visited.push_back({record, at});
      });
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return false;
  }
  recovered = *result;
  array = std::make_unique<LogArray>(executor, result->next_ordinal, options.writer);
  writer().set_withdrawn(result->withdrawn);
  for (std::size_t i = 0; i < disks.size(); ++i) {
    std::unique_ptr<Placement> placement;
    if (options.rotating) {
      placement = std::make_unique<RotationalPlacement>(
          RotationalPlacement::Options{.rotation = kRotation, .t_idle = Placement::Time{0}});
    }
    array->add(LogDisks::not_owned(*disks[i]), superblocks[i], std::move(result->disks[i]),
               std::move(placement));
  }
  writer().set_disk_observer(
      [this](const LogWriter::DiskReport& report) { reports.push_back(report); });
  return true;
}

void ArrayRig::close() {
  if (!array) return;
  for (const auto& disk : disks) disk->release();
  array->stop();
  executor.run_until_idle();
  array.reset();
}

void ArrayRig::crash() {
  powerless_ = true;
  for (const auto& disk : disks) disk->cut_power();
  writer().set_full_gate(nullptr);
  close();
  for (const auto& disk : disks) disk->restore_power();
  powerless_ = false;
}

void ArrayRig::append(const Record& record, Urgency urgency) {
  writer().append(record, whole(payload_of(record.sequence.value, record.payload_blocks)), urgency,
                  [this, record](Result<LoggedAt> result) {
                    if (!powerless_) outcomes.push_back({record, location_of(result)});
                  });
}

void ArrayRig::append_now(const Record& record, Urgency urgency) {
  append(record, urgency);
  executor.run_ready();
}

bool ArrayRig::readable(const Record& record, const LogLocation& location) {
  if (record.payload_blocks == 0) return true;
  Payload to = Payload::allocate(std::size_t{record.payload_blocks} * kBlockBytes);
  const Result<void> read =
      read_log_blocking(array->disks(), {location, record.volume, record.sequence, 0, to.bytes()});
  const Payload expected = payload_of(record.sequence.value, record.payload_blocks);
  return read && std::ranges::equal(to.bytes(), expected.bytes());
}

std::string ArrayRig::reopened(unsigned threads) {
  close();
  if (!open(threads)) return "failed";
  for (const Visited& v : visited) EXPECT_TRUE(readable(v.record, v.location));
  return damage_text(recovered) + "|" + sequences_text(visited);
}

std::string ArrayRig::outcomes_text() const {
  std::string text;
  for (const Outcome& outcome : outcomes) {
    text += (text.empty() ? "" : " ") + std::to_string(outcome.record.sequence.value) + ":";
    text += outcome.result ? "ok@" + std::to_string(outcome.result->disk)
                           : std::string(error_code_name(outcome.result.error().code));
  }
  return text;
}

std::string ArrayRig::reports_text() const {
  std::string text;
  for (const LogWriter::DiskReport& report : reports) {
    text += (text.empty() ? "" : " ") + std::to_string(report.disk) + ":";
    switch (report.state) {
      case LogWriter::DiskState::kGood: text += "good"; break;
      case LogWriter::DiskState::kHanging: text += "hanging"; break;
      case LogWriter::DiskState::kFailed: text += "failed"; break;
    }
  }
  return text;
}

}  // namespace mariner::logging::test
