#include "tests/bench/writer_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "logging/file_disk.h"
#include "logging/recovery.h"
#include "proto/check.h"
#include "tests/bench/log_file.h"

namespace mariner::bench {
namespace {

using logging::FileDisk;

constexpr VolumeId kVolume{1};
constexpr unsigned kRecoveryThreads = 1;

}  // namespace

Result<std::unique_ptr<WriterLog>> WriterLog::create(const Options& options, RingLoop& loop) {
  std::unique_ptr<WriterLog> log(new WriterLog(options, loop));
  if (auto r = log->open(); !r) return r.error();
  return log;
}

// Formats the log and finds out how it is made durable: with a ring of its own, because in the
// loop's there is always something in flight.
Result<logging::DurableWay> WriterLog::prepare() {
  if (auto r = make_log_file(options_.path, options_.log_bytes); !r) return r.error();
  auto ring = logging::IoRing::create(loop_);
  if (!ring) return ring.error();
  auto disk = FileDisk::open(options_.path, FileDisk::Caching::kDirect, ring->get());
  if (!disk) return disk.error();
  const auto superblock =
      logging::format_log(**disk, random_log_id(), 0, options_.track_bytes, loop_.wall_time().ns);
  if (!superblock) return superblock.error();
  return logging::choose_durable_way({**disk, **ring, loop_, *superblock}, std::nullopt).way;
}

Result<void> WriterLog::open() {
  const Result<logging::DurableWay> way = prepare();
  if (!way) return way.error();
  auto disk = FileDisk::open(options_.path, FileDisk::Caching::kDirect, &loop_.ring());
  if (!disk) return disk.error();
  std::shared_ptr<FileDisk> file = std::move(*disk);
  file->set_durable_way(*way);
  auto superblock = logging::read_superblock(*file);
  if (!superblock) return superblock.error();
  superblock->initialised_tracks = superblock->track_count;  // make_log_file() has written them
  if (auto r = logging::update_superblock(*file, *superblock); !r) return r;
  const logging::LogDiskRef ref{*file, *superblock};
  auto recovered = logging::recover_log({&ref, 1}, kRecoveryThreads,
                                        [](const logging::Record&, const logging::LogLocation&) {});
  if (!recovered) return recovered.error();
  CHECK(recovered->records == 0);
  array_ = std::make_unique<logging::LogArray>(loop_, recovered->next_ordinal,
                                               logging::LogWriter::Options{});
  member_ = &array_->add(std::move(file), *superblock, std::move(recovered->disks.front()));
  array_->writer().set_observer([this](const logging::LogWriter::BatchReport& report) {
    written_bytes_ += report.bytes;
    recycle();
  });
  return {};
}

WriterLog::~WriterLog() {
  if (!array_) return;
  array_->stop();
  loop_.run_until([this] { return array_->idle(); });
}

void WriterLog::append(const PayloadSlice& payload, Done done) {
  const auto blocks = static_cast<std::uint32_t>(payload.length / kBlockBytes);
  CHECK(blocks > 0 && blocks <= logging::kRecordPayloadBlocksMax);
  sequence_ = sequence_.next();
  time_ = std::max(VersionTime{time_.ns + 1}, loop_.wall_time());
  logging::Record record;
  record.volume = kVolume;
  record.epoch = Epoch{1};
  record.sequence = sequence_;
  record.time = time_;
  record.extent = {Lbn{0}, BlockCount{blocks}};
  record.payload_blocks = blocks;
  array_->writer().append(
      record, payload, logging::LogWriter::Urgency::kOrdinary,
      [done = std::move(done)](const Result<logging::LoggedAt>& logged) mutable {
        done(logged ? Result<void>{} : Result<void>(logged.error()));
      });
}

// The oldest tracks make room, as in BenchLog.
void WriterLog::recycle() {
  const std::uint64_t current = member_->log_disk->current_allocation();
  if (!member_->recycler->idle() ||
      array_->writer().free_tracks() > member_->superblock.track_count / 3 ||
      current <= member_->tracks.oldest()) {
    return;
  }
  member_->recycler->release(current, [this](const Result<void>& released) {
    if (released) ++releases_;
  });
}

Result<void> WriterLog::read_all(const std::string& path,
                                 const std::function<void(std::span<const std::byte>)>& visit) {
  auto disk = FileDisk::open(path, FileDisk::Caching::kDirect, nullptr);
  if (!disk) return disk.error();
  const auto superblock = logging::read_superblock(**disk);
  if (!superblock) return superblock.error();
  std::vector<std::pair<logging::Record, logging::LogLocation>> records;
  const logging::LogDiskRef ref{**disk, *superblock};
  const auto recovered = logging::recover_log(
      {&ref, 1}, kRecoveryThreads,
      [&](const logging::Record& record, const logging::LogLocation& location) {
        records.emplace_back(record, location);
      });
  if (!recovered) return recovered.error();
  for (const auto& [record, location] : records) {
    Payload payload = Payload::allocate(std::size_t{record.payload_blocks} * kBlockBytes);
    if (auto r = (*disk)->read(location.payload_sector() * kBlockBytes, payload.bytes()); !r) {
      return r;
    }
    visit(payload.bytes());
  }
  return {};
}

}  // namespace mariner::bench
