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
    logging::kReservedBytes + 8 * std::uint64_t{logging::kTrackBytesMin};
constexpr auto kStep = std::chrono::milliseconds(100);

}  // namespace

VolumeRig::VolumeRig(Options options)
    : options_(std::move(options)),
      image_disk_(executor_, {std::max(options_.blocks, options_.blocks_max) * kBlockBytes,
                              options_.seed * 2 + 2, options_.image_delay_max}),
      index_disk_(executor_,
                  {std::uint64_t{16} << 20, options_.seed * 2 + 3, options_.index_delay_max}) {
  index::IndexShape shape;
  shape.block_bytes = 4096;
  shape.group_blocks = 8;
  CHECK(index::format_index_file(index_disk_, shape).has_value());
  for (std::size_t number = 0; number < options_.log_disks; ++number) {
    log_disks_.push_back(std::make_unique<FaultyDisk>(
        executor_,
        FaultyDisk::Options{kLogBytes, options_.seed * 64 + number + 1, options_.log_delay_max}));
    CHECK(logging::format_log(*log_disks_.back(), logging::LogId{std::byte{0x4d}},
                              static_cast<std::uint8_t>(number), logging::kTrackBytesMin, 1)
              .has_value());
  }
  if (!options_.base.empty()) image_disk_.overwrite(0, options_.base);
}

VolumeRig::~VolumeRig() {
  if (volume_ != nullptr) stop();
}

// Before a block of the base is overwritten, its before-image stands in the index, and so in the
// log. `volume_` is null while it is made, and nothing is applied then.
void VolumeRig::watch(ByteRange range) {
  if (volume_->base_map().empty() || !powered_) return;
  // On the worker, as it were: the index answers while that waits.
  for (const index::LocatedRun& run :
       IndexAnswers(volume_->index())
           .locate(range.covering_blocks(), volume_->index().oldest().sequence)) {
    if (run.source != index::LocatedRun::Source::kBase) continue;
    volume_->base_map().visit(run.range, [&](BlockRange part, bool in_image) {
      if (in_image) early_overwrites_ += part.count.value;
    });
  }
}

std::shared_ptr<volume::Reclaimable> VolumeRig::find(VolumeId volume) {
  return volume == kVolume ? volume_ : overlay_;
}

bool VolumeRig::reclaim(std::function<VersionTime(VolumeId)> keep, std::size_t tracks_max,
                        std::function<Wish(VolumeId)> wish) {
  if (!reclaimer_->idle()) return false;
  keep_ = std::move(keep);
  wish_ = std::move(wish);
  reclaimer_->reclaim(tracks_max, [this](const Result<volume::Reclaimer::Report>& report) {
    if (report && report->outcome == volume::Reclaimer::Outcome::kFreed) {
      tracks_freed_ += report->tracks;
    }
    writer().retry();  // what has waited for it finds room or fails
  });
  return true;
}

void VolumeRig::store(std::vector<volume::VolumeRelease> releases,
                      std::optional<std::uint64_t> ordinal, Done done) {
  executor_.post([this, releases = std::move(releases), ordinal, done = std::move(done)]() mutable {
    if (!powered_) return done(Error{ErrorCode::kIo, "the power is off"});
    for (volume::VolumeRelease& release : releases) {
      Kept& kept = kept_[release.volume];
      volume::Horizon& horizon = kept.horizon;
      horizon.moment = release.horizon.moment;
      horizon.kept = release.horizon.kept;
      horizon.last = std::max(horizon.last, release.horizon.last);
      horizon.frontier = std::max(horizon.frontier, release.horizon.frontier);
      horizon.given_up = std::max(horizon.given_up, release.horizon.given_up);
      for (volume::BaseMap::Page& page : release.base_pages) kept.pages[page.number] = page;
    }
    if (ordinal) given_up_ = *ordinal;
    done({});
  });
}

std::shared_ptr<Volume> VolumeRig::make(VolumeOptions options, VolumeHistory history) {
  Volume::Events events;
  if (options.image != nullptr) {
    events.durable = [this](SequenceNumber sequence) { saved_frontier_ = sequence; };
    events.apply_failed = [this](const Error&) { ++apply_failures_; };
    events.headway = [this](volume::Headway::Change change, Done kept) {
      executor_.post([this, change = std::move(change), kept = std::move(kept)]() mutable {
        if (!powered_) return kept(Error{ErrorCode::kIo, "the power is off"});
        headway_before_ = headway_;
        headway_.keep(change);
        kept({});
      });
    };
  }
  options.size_bytes =
      (options.parent != nullptr ? overlay_blocks_ : options_.blocks) * kBlockBytes;
  options.epoch = epoch_;
  options.floor = floor_;
  options.index = indexes_.at(options.id);
  options.storage = options_.storage;
  options.limits = options_.limits;
  if (options_.far_history) {
    options.between = [this](volume::History& past) -> std::unique_ptr<volume::History> {
      DelayedHistory::Options far = *options_.far_history;
      far.seed = options_.seed * 1024 + ++histories_;
      return std::make_unique<DelayedHistory>(executor_, past, far);
    };
  }
  if (options_.between) {
    options.between = [this](volume::History& past) {
      return options_.between(executor_, past, options_.seed * 1024 + ++histories_);
    };
  }
  return std::make_shared<Volume>(std::move(options), std::move(history),
                                  volume::LogParts{log_->disks(), log_->writer(), log_->reader()},
                                  &worker_, executor_, std::move(events));
}

void VolumeRig::make_volume(VolumeHistory history) {
  VolumeOptions options;
  options.id = kVolume;
  options.image =
      std::make_unique<TellingDisk>(image_disk_, [this](ByteRange range, bool discards) {
        // Zeros whose base nobody needs any more are punched when their track is given up.
        if (!discards || reclaimer_->idle()) watch(range);
      });
  options.base_in_image = options_.base_in_image;
  for (const auto& [number, page] : kept_[kVolume].pages) options.base_pages.push_back(page);
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
  overlay_blocks_ = options_.blocks;
  open_index_of(kOverlay);
  learn(kOverlay);
  make_overlay({});
}

void VolumeRig::grow(std::uint64_t blocks) {
  CHECK(blocks >= options_.blocks && blocks * kBlockBytes <= image_disk_.size_bytes());
  options_.blocks = blocks;
  volume_->grow(blocks * kBlockBytes);
}

void VolumeRig::open_index() {
  index::BoscOptions options;
  options.run_blocks_max = 8;
  options.memory_bytes = std::size_t{4} << 20;
  options.cache_bytes = index_opened_ % 2 == 0 ? 0 : std::size_t{64} << 10;
  if (options_.index_small) options.commit_at = 0.005;
  ++index_opened_;
  index_store_ = *index::Bosc::open(executor_, index_disk_, options);
  // All of them before one is asked: what nobody has opened is no part of the next checkpoint.
  open_index_of(kVolume);
  if (overlay_at_) open_index_of(kOverlay);
  learn(kVolume);
  if (overlay_at_) learn(kOverlay);
}

void VolumeRig::open_index_of(VolumeId volume) {
  std::shared_ptr<index::StoredIndex> index = *index::StoredIndex::open(*index_store_, volume);
  const volume::Horizon& horizon = kept_[volume].horizon;
  index->set_horizon(horizon.moment);
  index->set_stored_horizon(horizon.moment.sequence);
  index->set_kept(horizon.kept);
  index->forget_through(horizon.given_up, given_up_ == 0 ? 0 : given_up_ - 1);
  indexes_[volume] = index;
}

void VolumeRig::learn(VolumeId volume) {
  bool learnt = false;
  indexes_.at(volume)->learn([&](const Result<void>& r) { learnt = r.has_value(); });
  while (!learnt) manual().advance(std::chrono::milliseconds(1));
}

void VolumeRig::find_unapplied(VolumeHistory& history) {
  const IndexAnswers answers(*indexes_[kVolume],
                             [this] { manual().advance(std::chrono::milliseconds(1)); });
  constexpr SequenceNumber kNewest{UINT64_MAX};
  history.unapplied = answers.changed(history.frontier, kNewest);
  history.headway = volume::Headway(headway_.kept());
  if (history.headway.as_of() <= history.frontier) return;
  const auto blocks_of = [](const std::vector<BlockRange>& ranges) {
    std::uint64_t blocks = 0;
    for (const BlockRange& range : ranges) blocks += range.count.value;
    return blocks;
  };
  resumed_blocks_ += blocks_of(history.unapplied);
  history.unapplied =
      history.headway.lacking(history.unapplied, answers.changed(history.headway.as_of(), kNewest));
  resumed_blocks_ -= blocks_of(history.unapplied);
}

IndexAnswers VolumeRig::answers_of(Volume& volume) {
  return IndexAnswers(volume.index(), [this] {
    if (manual().turn() == 0) manual().advance(std::chrono::microseconds(100));
  });
}

void VolumeRig::commit_index() {
  for (const auto& [id, index] : indexes_) index->flush();
  index_store_->commit_all([](const Result<void>&) {});
}

void VolumeRig::start() {
  epoch_ = epoch_.next();
  open_index();
  std::map<VolumeId, VolumeHistory> histories;
  std::vector<logging::Superblock> superblocks;
  for (const auto& disk : log_disks_) superblocks.push_back(*logging::read_superblock(*disk));
  std::vector<logging::LogDiskRef> refs;
  for (std::size_t i = 0; i < log_disks_.size(); ++i) {
    refs.push_back({*log_disks_[i], superblocks[i]});
  }
  Result<logging::Recovered> recovered =
      logging::recover_log(refs, 0, [&](const Record& record, const LogLocation& location) {
        if (record.ordinal < given_up_) return;
        const Result<bool> taken =
            histories[record.volume].add(record, BlockCount{options_.blocks});
        CHECK(taken.has_value());
        const auto index = indexes_.find(record.volume);
        if (index == indexes_.end() || !*taken || record.ordinal <= index_store_->frontier()) {
          return;
        }
        index->second->insert(record, location);
      });
  CHECK(recovered.has_value());
  CHECK(recovered->damage.empty());
  log_ = std::make_unique<logging::LogArray>(
      executor_, std::max({recovered->next_ordinal, given_up_, index_store_->last_number() + 1}),
      logging::LogWriter::Options{});
  writer().set_withdrawn(recovered->withdrawn);
  for (std::size_t i = 0; i < log_disks_.size(); ++i) {
    log_->add(logging::LogDisks::not_owned(*log_disks_[i]), superblocks[i],
              std::move(recovered->disks[i]));
  }
  index_store_->on_checkpoint_begin([this] {
    for (const auto& [id, index] : indexes_) index->flush();
    index_store_->set_used_through(log_->writer().ordinal_frontier() - 1);
  });
  reclaimer_ = std::make_unique<volume::Reclaimer>(
      volume::Reclaimer::Parts{*log_, worker_, executor_}, *this, given_up_);
  writer().set_full_gate([this] { return !reclaimer_->idle(); });
  for (const auto& [id, kept] : kept_) histories[id].set_horizon(kept.horizon);
  for (auto& [id, history] : histories) {
    CHECK_MSG(history.lost().empty(), "acknowledged writes are lost");
  }
  VolumeHistory& history = histories[kVolume];
  history.frontier = std::max(history.frontier, saved_frontier_);
  find_unapplied(history);
  make_volume(std::move(history));
  if (overlay_at_) make_overlay(std::move(histories[kOverlay]));
}

void VolumeRig::stop() {
  const Error stopping{ErrorCode::kUnavailable, "the rig stops"};
  if (overlay_ != nullptr) overlay_->close(stopping);
  volume_->close(stopping);
  reclaimer_->stop();
  const auto busy = [this] {
    return !reclaimer_->idle() || !volume_->idle() || (overlay_ != nullptr && !overlay_->idle()) ||
           !log_->idle() || image_disk_.in_flight() > 0 || index_disk_.in_flight() > 0 ||
           std::ranges::any_of(log_disks_, [](const auto& disk) { return disk->in_flight() > 0; });
  };
  for (int i = 0; busy(); ++i) {
    CHECK_MSG(i < 1000, "a closed volume does not become idle");
    manual().advance(kStep);
  }
  writer().set_full_gate(nullptr);
  reclaimer_.reset();
  overlay_.reset();
  CHECK_MSG(volume_.use_count() == 1, "somebody still holds the volume");
  volume_.reset();
  index_store_->drain(nullptr);
  manual().run_until_idle();
  index_store_.reset();  // before its functions
  indexes_.clear();
  log_.reset();
}

void VolumeRig::crash(bool loses_headway) {
  if (loses_headway) headway_ = headway_before_;
  for (const auto& disk : log_disks_) disk->cut_power();
  image_disk_.cut_power();
  index_disk_.cut_power();
  // What happens in a machine without power happens to nobody.
  const SequenceNumber saved = saved_frontier_;
  powered_ = false;
  stop();
  powered_ = true;
  saved_frontier_ = saved;
  manual().run_until_idle();
  for (const auto& disk : log_disks_) disk->restore_power();
  image_disk_.restore_power();
  index_disk_.restore_power();
}

}  // namespace mariner::test
