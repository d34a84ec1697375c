#include "tests/bench/bench_log.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "logging/recovery.h"
#include "proto/check.h"
#include "tests/bench/log_file.h"

namespace mariner::bench {
namespace {

using logging::FileDisk;

constexpr VolumeId kVolume{1};
constexpr std::uint64_t kVolumeBlocks = std::uint64_t{1} << 28;
constexpr unsigned kRecoveryThreads = 1;

}  // namespace

Result<std::unique_ptr<BenchLog>> BenchLog::create(const Options& options, node::EventLoop& loop) {
  std::unique_ptr<BenchLog> log(new BenchLog(options, loop));
  if (auto r = log->open(); !r) return r.error();
  return log;
}

Result<void> BenchLog::open() {
  if (options_.appends_to_file) return open_to_append();
  const std::string path = options_.folder + "/log";
  if (auto r = make_log_file(path, options_.log_bytes); !r) return r;
  auto ring = logging::IoRing::create(loop_);
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  auto disk = FileDisk::open(path, FileDisk::Caching::kDirect, ring_.get());
  if (!disk) return disk.error();
  std::shared_ptr<FileDisk> file = std::move(*disk);

  auto superblock =
      logging::format_log(*file, random_log_id(), 0, options_.track_bytes, loop_.wall_time().ns);
  if (!superblock) return superblock.error();
  durable_choice_ =
      logging::choose_durable_way({*file, *ring_, loop_, *superblock}, options_.durable_way);
  if (!options_.scrub_rate) {
    superblock->initialised_tracks = superblock->track_count;  // make_log_file() has written them
    if (auto r = logging::update_superblock(*file, *superblock); !r) return r;
  }
  const logging::LogDiskRef ref{*file, *superblock};
  auto recovered = logging::recover_log({&ref, 1}, kRecoveryThreads,
                                        [](const logging::Record&, const logging::LogLocation&) {});
  if (!recovered) return recovered.error();
  CHECK(recovered->records == 0);

  array_ = std::make_unique<logging::LogArray>(loop_, recovered->next_ordinal,
                                               logging::LogWriter::Options{});
  member_ = &array_->add(std::move(file), *superblock, std::move(recovered->disks.front()));
  array_->writer().set_observer([this](const logging::LogWriter::BatchReport& report) {
    const auto now = loop_.monotonic_time();
    batch_ = {now - report.duration, now, report.records, report.bytes};
    written_bytes_ += report.bytes;
    patience_.batch_done(report.records, report.bytes, report.duration);
    recycle();
    if (observer_) observer_(batch_);
  });
  loop_.set_turn_hook([this] { ring_->reap(); });
  if (auto r = loop_.set_outlook([this](std::chrono::nanoseconds now) {
        return patience_.outlook(now, !array_->writer().idle());
      });
      !r) {
    return r;
  }
  if (options_.scrub_rate) {
    array_->start();
    array_->start_scrubbing(*options_.scrub_rate,
                            [](std::uint8_t, const logging::TrackDamage& damage) {
                              CHECK_MSG(false, "the log is damaged while it is measured");
                              static_cast<void>(damage);
                            });
  }
  return loop_.wake_on(ring_->fd());
}

Result<void> BenchLog::open_to_append() {
  auto ring = logging::IoRing::create(loop_);  // for what indexes it
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  auto log = AppendLog::create(options_.folder + "/append-log", loop_);
  if (!log) return log.error();
  append_log_ = *std::move(log);
  loop_.set_turn_hook([this] { ring_->reap(); });
  return loop_.wake_on(ring_->fd());
}

BenchLog::~BenchLog() {
  if (array_) {
    array_->stop();
    while (!array_->idle()) ring_->wait();
  }
  loop_.set_turn_hook(nullptr);
  loop_.no_outlook();
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
  if (!indexer_) return write(record, payload, std::move(done));
  record.ordinal = record.sequence.value;  // of one volume, they are the same
  logged_.push_back({record, {}});
  appended_.push_back({std::move(done)});
  write(record, payload, [this, number = record.sequence.value](const Outcome& outcome) {
    finished(number, outcome);
  });
}

void BenchLog::write(const logging::Record& record, const PayloadSlice& payload, Done done) {
  if (!append_log_) {
    return array_->writer().append(record, payload, logging::LogWriter::Urgency::kOrdinary,
                                   std::move(done));
  }
  const logging::LogLocation location{written_bytes_ / kBlockBytes + 1, 0, 0, 1, 0};
  written_bytes_ += payload.length;
  append_log_->append(payload,
                      [this, location, done = std::move(done)](const Result<void>& result) mutable {
                        batch_ = {loop_.monotonic_time(), loop_.monotonic_time(), 1, 0};
                        done(result ? Outcome(location) : Outcome(result.error()));
                      });
}

void BenchLog::finished(std::uint64_t number, const Outcome& outcome) {
  const std::size_t at = number - first_appended_;
  appended_[at].finished = true;
  if (outcome) logged_[at].location = outcome->location;
  // When what follows in the log is with the disk.
  if (!std::exchange(indexes_soon_, true)) loop_.post([this] { index_finished(); });
  std::exchange(appended_[at].done, nullptr)(outcome);
}

void BenchLog::index_finished() {
  indexes_soon_ = false;
  std::size_t count = 0;
  for (; !appended_.empty() && appended_.front().finished; ++count) appended_.pop_front();
  if (count == 0) return;
  indexer_(std::span(logged_).first(count));
  logged_.erase(logged_.begin(), logged_.begin() + static_cast<std::ptrdiff_t>(count));
  first_appended_ += count;
}

// The oldest tracks make room: a log that goes round, as it does in use.
void BenchLog::recycle() {
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

std::uint64_t BenchLog::initialised_tracks() const {
  return member_ == nullptr ? 0 : member_->superblock.initialised_tracks;
}

std::uint64_t BenchLog::scrubbed_bytes() const {
  return member_ != nullptr && member_->scrubber ? member_->scrubber->progress().bytes : 0;
}

bool BenchLog::full() const {
  if (append_log_) return false;
  // Headers, ends of tracks and the reserve take their part; twice the payload is more than enough.
  const std::uint64_t margin = 2 * options_.outstanding_bytes / options_.track_bytes + 4;
  return array_->writer().free_tracks() < margin;
}

}  // namespace mariner::bench
