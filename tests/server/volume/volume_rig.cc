#include "tests/server/volume/volume_rig.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::test {

using logging::LogLocation;
using logging::Record;
using volume::Volume;
using volume::VolumeHistory;
using volume::VolumeOptions;

namespace {

constexpr std::uint64_t kLogBytes =
    logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin};
constexpr auto kStep = std::chrono::milliseconds(100);

}  // namespace

VolumeRig::VolumeRig(Options options)
    : options_(std::move(options)),
      log_disk_(executor_, {kLogBytes, options_.seed * 2 + 1, options_.log_delay_max}),
      image_disk_(executor_, {options_.blocks * kBlockBytes, options_.seed * 2 + 2,
                              options_.image_delay_max}) {
  Result<logging::Superblock> superblock = logging::format_log(
      log_disk_, logging::LogId{std::byte{0x4d}}, 0, logging::kTrackBytesMin, 1);
  CHECK(superblock.has_value());
  superblock_ = *superblock;
  if (!options_.base.empty()) image_disk_.overwrite(0, options_.base);
}

VolumeRig::~VolumeRig() {
  if (volume_ != nullptr) stop();
}

// Before a block of the base is overwritten, its before-image stands in the index, and so in the
// log. `volume_` is null while it is made, and nothing is applied then.
void VolumeRig::watch(ByteRange range) {
  if (!options_.base_in_image) return;
  for (const index::LocatedRun& run :
       volume_->index().locate(range.covering_blocks(), SequenceNumber{0})) {
    if (run.source == index::LocatedRun::Source::kBase) {
      early_overwrites_ += run.range.count.value;
    }
  }
}

std::shared_ptr<Volume> VolumeRig::make(VolumeOptions options, VolumeHistory history) {
  Volume::Events events;
  if (options.image != nullptr) {
    events.durable = [this](SequenceNumber sequence) { saved_frontier_ = sequence; };
    events.apply_failed = [this](const Error&) { ++apply_failures_; };
  }
  options.size_bytes = options_.blocks * kBlockBytes;
  options.epoch = epoch_;
  options.floor = floor_;
  options.storage = options_.storage;
  options.limits = options_.limits;
  return std::make_shared<Volume>(std::move(options), std::move(history),
                                  volume::LogParts{log_disk_, superblock_.log, *writer_, *reader_},
                                  &worker_, executor_, std::move(events));
}

void VolumeRig::make_volume(VolumeHistory history) {
  VolumeOptions options;
  options.id = kVolume;
  options.image =
      std::make_unique<WatchedDisk>(image_disk_, [this](ByteRange range, bool) { watch(range); });
  options.base_in_image = options_.base_in_image;
  volume_ = make(std::move(options), std::move(history));
}

void VolumeRig::make_overlay(VolumeHistory history) {
  VolumeOptions options;
  options.id = kOverlay;
  options.parent = volume_;
  options.parent_at = *overlay_at_;
  overlay_ = make(std::move(options), std::move(history));
}

void VolumeRig::add_overlay(SequenceNumber at) {
  CHECK(!overlay_at_);
  overlay_at_ = at;
  make_overlay({});
}

void VolumeRig::start() {
  epoch_ = epoch_.next();
  std::map<VolumeId, VolumeHistory> histories;
  Result<logging::Recovered> recovered = logging::recover_log(
      log_disk_, superblock_, 0, [&](const Record& record, const LogLocation& location) {
        const Result<void> added =
            histories[record.volume].add(record, location, BlockCount{options_.blocks});
        CHECK(added.has_value());
      });
  CHECK(recovered.has_value());
  CHECK(recovered->damage.empty());
  tracks_.emplace(std::move(recovered->tracks));
  writer_ = std::make_unique<logging::LogWriter>(log_disk_, executor_, superblock_, *tracks_,
                                                 recovered->tail, logging::LogWriter::Options{});
  reader_ = std::make_unique<logging::LogReader>(log_disk_, superblock_.log);
  VolumeHistory& history = histories[kVolume];
  history.frontier = std::max(history.frontier, saved_frontier_);
  make_volume(std::move(history));
  if (overlay_at_) make_overlay(std::move(histories[kOverlay]));
}

void VolumeRig::stop() {
  const Error stopping{ErrorCode::kUnavailable, "the rig stops"};
  if (overlay_ != nullptr) overlay_->close(stopping);
  volume_->close(stopping);
  const auto busy = [this] {
    return !volume_->idle() || (overlay_ != nullptr && !overlay_->idle()) || !writer_->idle() ||
           log_disk_.in_flight() + image_disk_.in_flight() > 0;
  };
  for (int i = 0; busy(); ++i) {
    CHECK_MSG(i < 1000, "a closed volume does not become idle");
    manual().advance(kStep);
  }
  overlay_.reset();
  CHECK_MSG(volume_.use_count() == 1, "somebody still holds the volume");
  volume_.reset();
  reader_.reset();
  writer_.reset();
}

void VolumeRig::crash() {
  log_disk_.cut_power();
  image_disk_.cut_power();
  // What happens in a machine without power happens to nobody.
  const SequenceNumber saved = saved_frontier_;
  stop();
  saved_frontier_ = saved;
  manual().run_until_idle();
  log_disk_.restore_power();
  image_disk_.restore_power();
}

}  // namespace mariner::test
