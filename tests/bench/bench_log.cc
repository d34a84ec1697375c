#include "tests/bench/bench_log.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "logging/recovery.h"
#include "proto/check.h"

namespace mariner::bench {
namespace {

using logging::ConstBytes;
using logging::Durability;
using logging::FileDisk;

constexpr std::uint64_t kPieceBytes = 1u << 20;
constexpr VolumeId kVolume{1};
constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;
constexpr unsigned kRecoveryThreads = 1;

void fill_randomly(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = ::getrandom(to.data(), std::min<std::size_t>(to.size(), 256), 0);
    CHECK(n > 0);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

Result<void> BenchLog::create_file(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    if (std::filesystem::file_size(path, error) == bytes) return {};
    std::filesystem::remove(path, error);
  }
  // A file that is not written to its end must not be taken for one that is.
  const std::string fresh = path + ".new";
  std::filesystem::remove(fresh, error);
  if (auto r = FileDisk::create(fresh, FileDisk::Caching::kDirect, bytes); !r) return r;
  {
    auto disk = FileDisk::open(fresh, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    Payload piece = Payload::allocate(kPieceBytes);
    fill_randomly(piece.bytes());
    for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const ConstBytes part(piece.data(), std::min(kPieceBytes, bytes - at));
      if (auto r = (*disk)->write(at, {&part, 1}, Durability::kVolatile); !r) return r;
    }
    if (auto r = (*disk)->flush(); !r) return r;
  }
  std::filesystem::rename(fresh, path, error);
  if (error) return errno_error(error.value(), path + ": rename");
  return logging::sync_directory_of(path);
}

Result<std::unique_ptr<BenchLog>> BenchLog::create(const Options& options, node::EventLoop& loop) {
  std::unique_ptr<BenchLog> log(new BenchLog(options, loop));
  if (auto r = log->open(); !r) return r.error();
  return log;
}

Result<void> BenchLog::open() {
  const std::string path = options_.folder + "/log";
  if (auto r = create_file(path, options_.log_bytes); !r) return r;
  auto ring = logging::IoRing::create(loop_);
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  auto disk = FileDisk::open(path, FileDisk::Caching::kDirect, ring_.get());
  if (!disk) return disk.error();
  disk_ = std::move(*disk);

  // A new identity: what an earlier run left is nothing to this log.
  logging::LogId id{};
  fill_randomly(id);
  auto superblock = logging::format_log(*disk_, id, 0, options_.track_bytes, loop_.wall_time().ns);
  if (!superblock) return superblock.error();
  superblock_ = *superblock;
  durable_choice_ =
      logging::choose_durable_way({*disk_, *ring_, loop_, superblock_}, options_.durable_way);
  superblock_.initialised_tracks = superblock_.track_count;  // create_file() has written them
  if (auto r = logging::update_superblock(*disk_, superblock_); !r) return r;
  const logging::LogDiskRef ref{*disk_, superblock_};
  auto recovered = logging::recover_log({&ref, 1}, kRecoveryThreads,
                                        [](const logging::Record&, const logging::LogLocation&) {});
  if (!recovered) return recovered.error();
  CHECK(recovered->records == 0);

  logging::RecoveredDisk& found = recovered->disks.front();
  tracks_.emplace(std::move(found.tracks));
  log_disk_ = std::make_unique<logging::LogDisk>(
      logging::LogDisk::Parts{*disk_, superblock_, *tracks_}, std::move(found.tail));
  writer_ = std::make_unique<logging::LogWriter>(loop_, recovered->next_ordinal,
                                                 logging::LogWriter::Options{});
  writer_->add(*log_disk_);
  recycler_ = std::make_unique<logging::TrackRecycler>(*log_disk_, *tracks_, *writer_);
  writer_->set_observer([this](const logging::LogWriter::BatchReport& report) {
    const auto now = loop_.monotonic_time();
    batch_ = {now - report.duration, now, report.records, report.bytes};
    written_bytes_ += report.bytes;
    patience_.batch_done(report.records, report.duration);
    recycle();
    if (observer_) observer_(batch_);
  });
  loop_.set_turn_hook([this] { ring_->reap(); });
  loop_.set_patience(
      [this] { return writer_->idle() ? std::chrono::nanoseconds{0} : patience_.value(); });
  return loop_.wake_on(ring_->fd());
}

BenchLog::~BenchLog() {
  while (recycler_ && !recycler_->idle()) ring_->wait();
  loop_.set_turn_hook(nullptr);
  loop_.set_patience(nullptr);
  loop_.stop_waking();
}

void BenchLog::append(const PayloadSlice& payload, Done done) {
  const std::uint64_t blocks = payload.length / kBlockBytes;
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's, MMIX
  sequence_ = sequence_.next();
  time_ = std::max(VersionTime{time_.ns + 1}, loop_.wall_time());
  logging::Record record;
  record.volume = kVolume;
  record.epoch = Epoch{1};
  record.sequence = sequence_;
  record.time = time_;
  record.extent = {Lbn{(random_ >> 33) % (kVolumeBlocks - blocks)}, BlockCount{blocks}};
  record.payload_blocks = static_cast<std::uint32_t>(blocks);
  writer_->append(record, payload, logging::LogWriter::Urgency::kOrdinary, std::move(done));
}

// The oldest tracks make room: a log that goes round, as it does in use.
void BenchLog::recycle() {
  const std::uint64_t current = log_disk_->current_allocation();
  if (!recycler_->idle() || writer_->free_tracks() > superblock_.track_count / 3 ||
      current <= tracks_->oldest()) {
    return;
  }
  recycler_->release(current, [this](const Result<void>& released) {
    if (released) ++releases_;
  });
}

bool BenchLog::full() const {
  // Headers, ends of tracks and the reserve take their part; twice the payload is more than enough.
  const std::uint64_t margin = 2 * options_.outstanding_bytes / options_.track_bytes + 4;
  return writer_->free_tracks() < margin;
}

}  // namespace mariner::bench
