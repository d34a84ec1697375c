#include "tests/logging/log_testing.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging::test {

LogId log_id(std::uint8_t first) {
  LogId id{};
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(first + i);
  return id;
}

Payload payload_of(std::uint64_t seed, std::uint32_t blocks) {
  Payload payload = Payload::allocate(std::size_t{blocks} * kBlockBytes);
  std::uint64_t word = seed * 0xd6e8feb86659fd93u;
  for (std::size_t at = 0; at < payload.size(); at += 8) {
    word += 0x9e3779b97f4a7c15u;
    store_le(payload.data() + at, word);
  }
  return payload;
}

PayloadSlice whole(Payload payload) {
  const std::size_t length = payload.size();
  return {std::move(payload), 0, length};
}

Record record_of(std::uint32_t volume, std::uint64_t sequence, std::uint32_t blocks,
                 RecordType type) {
  Record record;
  record.type = type;
  record.volume = VolumeId{volume};
  record.epoch = Epoch{1};
  record.sequence = SequenceNumber{sequence};
  record.time = VersionTime{1'000'000 + sequence};
  record.extent = {Lbn{100 * sequence}, BlockCount{blocks}};
  record.payload_blocks = type == RecordType::kZero ? 0 : blocks;
  return record;
}

bool is_same(Record found, const Record& appended) {
  found.payload_offset = appended.payload_offset;
  found.previous_sector = appended.previous_sector;
  found.previous_slot = appended.previous_slot;
  found.ordinal = appended.ordinal;
  return found == appended;
}

std::string name_of(const Record& record) {
  return "record " + std::to_string(record.sequence.value) + " of volume " +
         std::to_string(record.volume.value);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  char digits[3];
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) text += i % 16 == 0 ? "\n" : i % 4 == 0 ? " " : "";
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(bytes[i]));
    text += digits;
  }
  return text;
}

Payload area_of(BatchHeader header, std::vector<Record> records, const LogId& log) {
  std::uint64_t packed = 0;
  for (const Record& record : records) packed += record.packed_bytes();
  header.record_count = static_cast<std::uint16_t>(records.size());
  header.header_sectors = static_cast<std::uint16_t>(header_sectors_for(packed));
  Payload area = Payload::zeroed(std::size_t{header.header_sectors} * kBlockBytes);
  std::byte* to = area.data() + kBatchHeaderBytes;
  std::uint32_t offset = header.header_sectors;
  for (Record& record : records) {
    record.payload_offset = offset;
    offset += record.payload_blocks;
    const Payload payload = payload_of(record.sequence.value, record.payload_blocks);
    std::vector<std::uint32_t> crcs;
    for (std::uint32_t i = 0; i < record.payload_blocks; ++i) {
      crcs.push_back(crc32c(payload.bytes().subspan(std::size_t{i} * kBlockBytes, kBlockBytes)));
    }
    pack_record(record, crcs, to);
    to += record.packed_bytes();
  }
  header.total_sectors = offset;
  seal_batch(header, log, area.bytes());
  return area;
}

LogRig::LogRig(const Options& given)
    : options(given),
      disk(executor, {.size_bytes = kReservedBytes + given.tracks * kTrackBytes,
                      .seed = given.seed,
                      .delay_max = given.delay_max}) {
  CHECK(format_log(disk, log_id(), 0, kTrackBytes, 1).has_value());
}

LogRig::~LogRig() { close(); }

bool LogRig::open(unsigned threads) {
  const Result<Superblock> found = read_superblock(disk);
  if (!found) {
    ADD_FAILURE() << to_string(found.error());
    return false;
  }
  superblock = *found;
  visited.clear();
  const LogDiskRef ref{disk, superblock};
  Result<Recovered> result =
      recover_log({&ref, 1}, threads, [this](const Record& record, const LogLocation& at) {
        visited.push_back({record, at});
      });
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return false;
  }
  recovered = std::move(*result);
  tracks.emplace(recovered.disks.front().tracks);
  log_disk = std::make_unique<LogDisk>(
      LogDisk::Parts{through ? *through : disk, superblock, *tracks}, recovered.disks.front().tail);
  writer = std::make_unique<LogWriter>(executor, recovered.next_ordinal, options.writer);
  writer->set_withdrawn(recovered.withdrawn);
  writer->add(*log_disk);
  disks.add(0, {LogDisks::not_owned(disk), superblock.batch_format()});
  reader = std::make_unique<LogReader>(disks);
  return true;
}

void LogRig::close() {
  executor.run_until_idle();
  reader.reset();
  disks.remove(0);
  writer.reset();
  log_disk.reset();
}

void LogRig::append(const Record& record, LogWriter::Urgency urgency) {
  writer->append(record, whole(payload_of(record.sequence.value, record.payload_blocks)), urgency,
                 [this, record](Result<LoggedAt> result) {
                   outcomes.push_back({record, location_of(result)});
                 });
}

Result<LogLocation> LogRig::append_now(const Record& record, LogWriter::Urgency urgency) {
  std::optional<Result<LoggedAt>> outcome;
  writer->append(record, whole(payload_of(record.sequence.value, record.payload_blocks)), urgency,
                 [&outcome](Result<LoggedAt> result) { outcome = std::move(result); });
  executor.run_until_idle();
  CHECK(outcome.has_value());
  return location_of(*outcome);
}

std::vector<LogLocation> LogRig::append_batches(std::uint64_t sequence, std::size_t count,
                                                std::uint32_t blocks) {
  std::vector<LogLocation> locations;
  for (std::size_t i = 0; i < count; ++i) {
    const Result<LogLocation> at = append_now(record_of(1, sequence + i, blocks));
    if (at) {
      locations.push_back(*at);
    } else {
      ADD_FAILURE() << to_string(at.error());
    }
  }
  return locations;
}

Result<void> LogRig::verify(const Record& record, const LogLocation& location) {
  if (record.payload_blocks == 0) return {};
  Payload to = Payload::allocate(std::size_t{record.payload_blocks} * kBlockBytes);
  if (Result<void> r =
          read_log_blocking(disks, {location, record.volume, record.sequence, 0, to.bytes()});
      !r) {
    return r;
  }
  const Payload expected = payload_of(record.sequence.value, record.payload_blocks);
  if (std::memcmp(to.data(), expected.data(), to.size()) != 0) {
    ADD_FAILURE() << "a verified read gave wrong bytes";
    return Error{ErrorCode::kCorrupt, "a verified read gave wrong bytes"};
  }
  return {};
}

std::string damage_text(const Recovered& recovered) {
  std::string text;
  for (const LogDamage& damage : recovered.damage) {
    text += (text.empty() ? "" : "; ") + std::string("track ") + std::to_string(damage.track) +
            ": " + std::to_string(damage.first_batch) + ".." + std::to_string(damage.last_batch);
  }
  return text;
}

std::string sequences_text(const std::vector<Visited>& visited) {
  std::string text;
  for (const Visited& v : visited) {
    text += (text.empty() ? "" : " ") + std::to_string(v.record.sequence.value);
  }
  return text;
}

}  // namespace mariner::logging::test
