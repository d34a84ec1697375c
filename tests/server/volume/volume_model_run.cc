#include "tests/server/volume/volume_model_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/server/cluster/wired_history.h"

namespace mariner::test {

using volume::Volume;

namespace {

constexpr int kSteps = 90;

}  // namespace

VolumeModelRun::VolumeModelRun(std::uint64_t seed, Variant variant)
    : random_(seed), variant_(variant), thins_(seed % 2 == 0), rig_(options(seed)) {
  lines_.push_back(std::make_unique<Line>(Line{VolumeModel(base_), {}, nullptr}));
  if (one_in(2)) {
    rig_.worker().set_duration([this] { return std::chrono::microseconds(below(1500)); });
  }
  rig_.start();
  began_ = rig_.executor().wall_time();
  lines_[0]->volume = &rig_.volume();
}

void VolumeModelRun::execute() {
  for (step_ = 0; step_ < kSteps && !failed_; ++step_) step();
  if (!failed_) settle();
  if (!failed_) restart(false);
  if (!failed_) settle();
  tracks_freed += rig_.tracks_freed();
  resumed_blocks += rig_.resumed_blocks();
  if (rig_.early_overwrites() > 0) fail("a base block was overwritten before its before-image");
  close_views();
}

VolumeRig::Options VolumeModelRun::options(std::uint64_t seed) {
  VolumeRig::Options out;
  out.seed = seed;
  out.blocks = 8 + below(24);
  blocks_max_ = out.blocks_max = out.blocks + below(16);
  base_.assign(blocks_max_ * kSectorsPerBlock, 0);
  if (variant_.base_in_image) {
    out.base_in_image = true;
    for (std::size_t i = 0; i < out.blocks * kSectorsPerBlock; ++i) {
      base_[i] = one_in(4) ? 0 : next_tag_++;
    }
    const Payload bytes = bytes_of(base_);
    out.base.assign(bytes.bytes().begin(), bytes.bytes().end());
  }
  out.log_delay_max = std::chrono::microseconds(below(2) * 200);
  out.log_disks = one_in(2) ? 1 : 2 + below(2);
  out.image_delay_max = std::chrono::microseconds(below(2) * 400);
  out.index_delay_max = std::chrono::microseconds(below(2) * 400);
  out.index_small = one_in(2);
  if (one_in(3)) out.storage.pending_memory_max = below(16) * kBlockBytes;
  if (one_in(3)) out.storage.lag_bytes_max = (4 + below(32)) * kBlockBytes;
  if (one_in(2)) out.storage.portion_bytes_max = (1 + below(8)) * kBlockBytes;
  if (one_in(2)) out.storage.unordered_bytes_max = below(4) * kBlockBytes;
  out.storage.headway_every = std::chrono::microseconds(below(3) * below(2000));
  out.storage.apply_delay = std::chrono::microseconds(below(3) * below(5000));
  if (one_in(3)) out.limits.writes_in_flight_max = 1 + below(6);
  if (one_in(3)) out.limits.bytes_in_flight_max = below(20) * kBlockBytes;
  if (variant_.far_history) {
    constexpr std::uint64_t kDelaysUs[] = {50, 500, 3000, 10'000};
    out.far_history =
        DelayedHistory::Options{.delay_max = std::chrono::microseconds(kDelaysUs[below(4)]),
                                .unavailable_in = one_in(2) ? 0 : 10 + below(90)};
  }
  if (variant_.wired) {
    constexpr std::uint64_t kDelaysUs[] = {50, 500, 3000, 10'000};
    WiredHistory::Options wired;
    wired.delay_max = std::chrono::microseconds(kDelaysUs[below(4)]);
    wired.breaks_in = one_in(2) ? 0 : 20 + below(180);
    out.between = [wired](Executor& executor, volume::History& past,
                          std::uint64_t history_seed) mutable {
      wired.seed = history_seed;
      return std::make_unique<WiredHistory>(executor, past, wired);
    };
  }
  return out;
}

void VolumeModelRun::fail(const std::string& what) {
  failed_ = true;
  ADD_FAILURE() << "step " << step_ << ": " << what;
}

ByteRange VolumeModelRun::any_range(std::uint64_t size_bytes, std::uint64_t sectors_max,
                                    bool aligned) {
  const std::uint64_t unit = aligned ? kSectorsPerBlock : 1;
  const std::uint64_t units = size_bytes / kSectorBytes / unit;
  const std::uint64_t first = below(units);
  const std::uint64_t most =
      std::min(units - first, std::max<std::uint64_t>(sectors_max / unit, 1));
  return {first * unit * kSectorBytes, (1 + below(most)) * unit * kSectorBytes};
}

void VolumeModelRun::step() {
  Line& line = any_line();
  switch (below(33)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: write(line); break;
    case 6:
    case 7: write_same(line); break;
    case 8:
    case 9: trim(line); break;
    case 10:
      rollback(line);
      if (one_in(4)) cut_power_while_restoring();
      break;
    case 11:
    case 12:
    case 13: read(line); break;
    case 14: open_view(line); break;
    case 15:
    case 16: read_view(line); break;
    case 17: open_time(line); break;
    case 18: disturb(); break;
    case 19:
      if (one_in(2)) settle();
      break;
    case 20:
      if (one_in(3)) restart(true);
      break;
    case 21:
      if (one_in(6)) restart(false);
      break;
    case 22:
      if (one_in(4)) add_overlay();
      break;
    case 23:
    case 24:
      if (rig_.writer().free_tracks() > 4) rig_.writer().leave_tracks();
      break;
    case 25:
    case 26:
    case 27:
    case 28:
      if (thins_ && one_in(3)) mark(line);
      reclaim();
      break;
    case 29: rig_.commit_index(); break;
    case 30:
    case 31: grow(); break;
    default: drain(); break;
  }
  switch (below(4)) {
    case 0: break;
    case 1: rig_.manual().turn(); break;
    case 2: rig_.manual().run_ready(); break;
    default: rig_.manual().advance(std::chrono::microseconds(below(3000))); break;
  }
  if (variant_.far()) wait_for_the_history();
  follow();
}

void VolumeModelRun::wait_for_the_history() {
  if (one_in(6)) rig_.manual().advance(std::chrono::microseconds(below(60'000)));
  if (one_in(40)) rig_.manual().advance(std::chrono::seconds(1));
}

bool VolumeModelRun::is_away(const Result<PayloadSlice>& read) const {
  return variant_.far() && !read && read.error().code == ErrorCode::kUnavailable;
}

void VolumeModelRun::ask_again(std::function<void()> ask) {
  rig_.manual().after(std::chrono::microseconds(100), [this, life = life_, ask = std::move(ask)] {
    if (life == life_) ask();
  });
}

void VolumeModelRun::follow() {
  // What is answered while the index is asked is looked at the next time.
  const std::vector<std::function<void()>> answered = std::exchange(answered_, {});
  for (const auto& line : lines_) {
    const auto& coordinator = line->volume->replicator().coordinator();
    const std::string wrong =
        line->model.follow(rig_.answers_of(*line->volume), coordinator.settled());
    if (!wrong.empty()) fail(wrong);
    if (coordinator.settled() == coordinator.last_stamped()) line->model.forget_failed();
  }
  for (const std::function<void()>& check : answered) check();
}

UniqueFunction<void(Result<void>)> VolumeModelRun::begin(Line& line, ModelWrite write) {
  const VolumeModel::Handle handle = line.model.begin(std::move(write));
  return [this, &line, handle, life = life_](const Result<void>& result) {
    if (life != life_) return;  // told to nobody: the machine is off
    line.model.answered(handle, result.has_value());
  };
}

void VolumeModelRun::disturb() {
  switch (below(5)) {
    case 4:
      rig_.index_disk().fail_writes(1 + below(2), static_cast<FaultyDisk::Remains>(below(3)));
      break;
    case 0: rig_.image_disk().fail_writes(1 + below(2), FaultyDisk::Remains::kSomeSectors); break;
    case 1: rig_.executor().step_clock(-std::chrono::milliseconds(below(5))); break;
    case 2: rig_.executor().step_clock(std::chrono::milliseconds(below(5))); break;
    default:
      if (!one_in(5)) break;
      rig_.log_disk().fail_writes(one_in(4) ? 2 : 1, static_cast<FaultyDisk::Remains>(below(3)));
      break;
  }
}

void VolumeModelRun::reclaim() {
  std::map<VolumeId, SequenceNumber> until;
  const auto any = [this](Line& line) {
    return one_in(2) ? line.volume->replicator().coordinator().settled() : any_moment(line);
  };
  until[VolumeRig::kVolume] = any(*lines_[0]);
  if (lines_.size() > 1) until[VolumeRig::kOverlay] = any(*lines_[1]);
  const std::size_t tracks_max = 1 + below(4);
  const auto keep_of = [this, until](VolumeId id) {
    const Line& line = *lines_[id == VolumeRig::kVolume ? 0 : 1];
    SequenceNumber keep = std::min(line.model.last(), until.at(id));
    if (thins_) {
      for (const index::IndexMoment& moment : wish_of(id).moments) {
        if (moment.sequence.value == 0) keep = moment.sequence;
      }
      return line.model.time_of(keep);
    }
    for (const View& view : line.views) keep = std::min(keep, view.at);
    if (!line.reading.empty()) keep = std::min(keep, *line.reading.begin());
    if (id == VolumeRig::kVolume && overlay_at_) keep = std::min(keep, *overlay_at_);
    return line.model.time_of(keep);
  };
  rig_.reclaim(keep_of, tracks_max, [this](VolumeId id) { return wish_of(id); });
}

VolumeRig::Wish VolumeModelRun::wish_of(VolumeId id) {
  VolumeRig::Wish wish;
  if (!thins_) return wish;
  const Line& line = *lines_[id == VolumeRig::kVolume ? 0 : 1];
  const auto add = [&](SequenceNumber at) { wish.moments.push_back({at, line.model.time_of(at)}); };
  for (const View& view : line.views) add(view.at);
  for (const SequenceNumber at : line.reading) add(at);
  for (const SequenceNumber at : line.marked) add(at);
  if (id == VolumeRig::kVolume && overlay_at_) add(*overlay_at_);
  // As a schedule would.
  constexpr std::uint64_t kEveryNs = 10'000'000;
  const VersionTime last = line.model.time_of(line.model.last());
  for (std::uint64_t ns = began_.ns + kEveryNs; ns < last.ns; ns += kEveryNs) {
    wish.times.push_back({ns});
  }
  return wish;
}

void VolumeModelRun::mark(Line& line) {
  if (!line.marked.empty() && one_in(2)) {
    const auto gone =
        std::next(line.marked.begin(), static_cast<std::ptrdiff_t>(below(line.marked.size())));
    line.marked.erase(gone);
  } else {
    line.marked.insert(any_moment(line));
  }
}

void VolumeModelRun::grow() {
  const std::uint64_t blocks = rig_.volume().size_bytes() / kBlockBytes;
  rig_.grow(blocks + below(std::min<std::uint64_t>(blocks_max_ - blocks, 6) + 1));
}

void VolumeModelRun::drain() {
  rig_.volume().storage()->drain([](const Result<void>&) {});
}

void VolumeModelRun::add_overlay() {
  if (rig_.overlay() != nullptr) return;
  const SequenceNumber at = any_moment(*lines_[0]);
  overlay_at_ = at;
  follow();  // to look for the moment took time
  rig_.add_overlay(at);
  lines_.push_back(
      std::make_unique<Line>(Line{VolumeModel(lines_[0]->model.at(at)), {}, rig_.overlay()}));
}

void VolumeModelRun::settle() {
  const auto busy = [this] {
    return reads_ > 0 || std::any_of(lines_.begin(), lines_.end(),
                                     [](const auto& line) { return line->model.unanswered() > 0; });
  };
  finish(busy, "a write is never answered");
  if (failed_) return;
  follow();
  for (const auto& line : lines_) {
    const SequenceNumber settled = line->volume->replicator().coordinator().settled();
    const View now{line->volume->live_layer(), settled};
    check_view(*line, now, {0, now.layer->size_bytes()});
    for (int i = 0; i < 2; ++i) {
      const SequenceNumber at = any_moment(*line);
      check_view(*line, {line->volume->view_layer(at), at}, {0, line->volume->size_bytes()});
    }
    const auto kept = line->volume->index().kept();
    for (const index::KeptMoment& each : kept) {
      const SequenceNumber at = each.moment.sequence;
      check_view(*line, {line->volume->view_layer(at), at}, {0, line->volume->size_bytes()});
    }
    for (const View& view : line->views) {
      check_view(*line, view, any_range(view.layer->size_bytes(), 256, false));
    }
  }
  finish([this] { return reads_ > 0; }, "a read is never answered");
  follow();
}

void VolumeModelRun::close_views() {
  ++life_;
  reads_ = 0;
  // Reads in flight hold their views: let them end before the volume does.
  rig_.manual().run_ready();
  for (const auto& line : lines_) {
    line->views.clear();
    line->reading.clear();
  }
}

void VolumeModelRun::restart(bool power_cut) {
  if (!power_cut) settle();
  if (failed_) return;
  close_views();
  follow();
  if (power_cut) {
    rig_.crash(one_in(4));
  } else {
    rig_.stop();
    rig_.manual().run_until_idle();
  }
  rig_.log_disk().fail_writes(0, FaultyDisk::Remains::kNothing);
  rig_.image_disk().fail_writes(0, FaultyDisk::Remains::kNothing);
  rig_.index_disk().fail_writes(0, FaultyDisk::Remains::kNothing);
  if (one_in(3)) rig_.executor().step_clock(-std::chrono::milliseconds(below(50)));
  rig_.start();
  lines_[0]->volume = &rig_.volume();
  if (lines_.size() > 1) lines_[1]->volume = rig_.overlay();
  for (const auto& line : lines_) {
    const std::string wrong =
        line->model.recover(rig_.answers_of(*line->volume),
                            [&](SequenceNumber at) { return contents(*line->volume, at); });
    if (!wrong.empty()) fail(wrong);
  }
}

void VolumeModelRun::cut_power_while_restoring() {
  for (int i = 0; i < 100 && !rig_.volume().storage()->restoring(); ++i) {
    rig_.manual().advance(std::chrono::microseconds(100));
  }
  for (std::uint64_t more = 1 + below(4); more > 0 && !failed_; --more) {
    rig_.manual().advance(std::chrono::microseconds(below(4000)));
    follow();
    restart(true);
  }
}

Sectors VolumeModelRun::contents(Volume& of, SequenceNumber at) {
  std::optional<Sectors> out;
  const std::shared_ptr<volume::Layer> view = of.view_layer(at);
  view->read({0, view->size_bytes()}, [&](const Result<PayloadSlice>& read) {
    CHECK(read.has_value());
    out.emplace(base_.size());
    for (std::size_t i = 0; i < read->length / kSectorBytes; ++i) {
      std::memcpy(&(*out)[i], read->bytes().data() + i * kSectorBytes, sizeof(std::uint64_t));
    }
  });
  finish([&] { return !out.has_value(); }, "a view's read is never answered");
  return out.value_or(Sectors(base_.size()));
}

}  // namespace mariner::test
