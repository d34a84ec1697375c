// A volume against a model that remembers every write: writes of every kind and alignment with
// some of them outstanding, rollbacks and their undoing, views of any moment that stay open, a
// writable view, a volume that grows, disks that fail, clocks that step back, restarts and power
// cuts. The model is as long as the volume may become, with zeros behind its end.
//
// Each once more with a history that is far away from storage and target (DelayedHistory): what
// they ask it is answered late, out of order, in parts, or not at all.
//
// Everything follows from a seed, which each failure prints. MARINER_SEED=n runs that one alone,
// MARINER_SEEDS=n so many.
#include "tests/server/volume/volume_model.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>

#include "server/volume/settled_moment.h"
#include "tests/server/cluster/wired_history.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::test {
namespace {

using index::IndexMoment;
using logging::RecordType;
using volume::Layer;
using volume::TrimMode;
using volume::Volume;

constexpr int kSteps = 90;
constexpr std::size_t kOpenViewsMax = 4;

struct Variant {
  bool base_in_image = false;
  bool far_history = false;  // from storage and target
  bool wired = false;        // the same, with bytes between them

  [[nodiscard]] bool far() const { return far_history || wired; }
};

class Run {
 public:
  Run(std::uint64_t seed, Variant variant) : random_(seed), variant_(variant), rig_(options(seed)) {
    lines_.push_back(std::make_unique<Line>(Line{VolumeModel(base_), {}, nullptr}));
    if (one_in(2)) {
      rig_.worker().set_duration([this] { return std::chrono::microseconds(below(1500)); });
    }
    rig_.start();
    lines_[0]->volume = &rig_.volume();
  }

  void execute() {
    for (step_ = 0; step_ < kSteps && !failed_; ++step_) step();
    if (!failed_) settle();
    if (!failed_) restart(false);
    if (!failed_) settle();
    tracks_freed += rig_.tracks_freed();
    if (rig_.early_overwrites() > 0) fail("a base block was overwritten before its before-image");
    close_views();
  }

  [[nodiscard]] bool failed() const { return failed_; }

  static inline std::uint64_t tracks_freed = 0;  // by all runs

 private:
  struct View {
    std::shared_ptr<Layer> layer;
    SequenceNumber at;
  };
  // The volume, or the writable view on it.
  struct Line {
    VolumeModel model;
    std::vector<View> views;
    Volume* volume = nullptr;
    std::multiset<SequenceNumber> reading{};  // moments of views that are being read
  };

  VolumeRig::Options options(std::uint64_t seed) {
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

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  void fail(const std::string& what) {
    failed_ = true;
    ADD_FAILURE() << "step " << step_ << ": " << what;
  }

  Line& any_line() { return *lines_[below(lines_.size())]; }

  ByteRange any_range(std::uint64_t size_bytes, std::uint64_t sectors_max, bool aligned) {
    const std::uint64_t unit = aligned ? kSectorsPerBlock : 1;
    const std::uint64_t units = size_bytes / kSectorBytes / unit;
    const std::uint64_t first = below(units);
    const std::uint64_t most =
        std::min(units - first, std::max<std::uint64_t>(sectors_max / unit, 1));
    return {first * unit * kSectorBytes, (1 + below(most)) * unit * kSectorBytes};
  }

  void step() {
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
      case 10: rollback(line); break;
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
      case 28: reclaim(); break;
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

  // Sometimes, as long as it may take, or until what failed is tried again.
  void wait_for_the_history() {
    if (one_in(6)) rig_.manual().advance(std::chrono::microseconds(below(60'000)));
    if (one_in(40)) rig_.manual().advance(std::chrono::seconds(1));
  }
  // The history could not be asked, which initiators are told: they ask again.
  bool is_away(const Result<PayloadSlice>& read) const {
    return variant_.far() && !read && read.error().code == ErrorCode::kUnavailable;
  }

  // A little later, in the same life.
  void ask_again(std::function<void()> ask) {
    rig_.manual().after(std::chrono::microseconds(100), [this, life = life_, ask = std::move(ask)] {
      if (life == life_) ask();
    });
  }

  void follow() {
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

  UniqueFunction<void(Result<void>)> begin(Line& line, ModelWrite write) {
    const VolumeModel::Handle handle = line.model.begin(std::move(write));
    return [this, &line, handle, life = life_](const Result<void>& result) {
      if (life != life_) return;  // told to nobody: the machine is off
      line.model.answered(handle, result.has_value());
    };
  }

  void write(Line& line) {
    const ByteRange range = any_range(line.volume->size_bytes(), one_in(4) ? 128 : 24, one_in(2));
    ModelWrite write{RecordType::kWrite, range.covering_blocks(), range, {}, {}};
    for (std::uint64_t at = 0; at < range.length; at += kSectorBytes) {
      write.sectors.push_back(next_tag_++);
    }
    Payload data = bytes_of(write.sectors);
    const std::size_t length = data.size();
    line.volume->live_layer()->write(range, {std::move(data), 0, length},
                                     begin(line, std::move(write)));
  }

  void write_same(Line& line) {
    const bool aligned = one_in(2);
    const ByteRange range = any_range(line.volume->size_bytes(), one_in(3) ? 200 : 20, aligned);
    Sectors pattern(aligned && one_in(2) ? kSectorsPerBlock : 1);
    for (std::uint64_t& sector : pattern) sector = next_tag_++;
    const bool zero = one_in(6);
    if (zero) pattern.assign(1, 0);
    ModelWrite write{zero && !range.inner_blocks().empty() ? RecordType::kZero : RecordType::kWrite,
                     range.covering_blocks(),
                     range,
                     {},
                     {}};
    for (std::uint64_t i = 0; i < range.length / kSectorBytes; ++i) {
      write.sectors.push_back(pattern[i % pattern.size()]);
    }
    Payload data = bytes_of(pattern);
    const std::size_t length = data.size();
    line.volume->live_layer()->write_same(range, {std::move(data), 0, length},
                                          begin(line, std::move(write)));
  }

  void trim(Line& line) {
    const ByteRange range = any_range(line.volume->size_bytes(), one_in(3) ? 200 : 20, one_in(3));
    const BlockRange inner = range.inner_blocks();
    const TrimMode mode = one_in(2) ? TrimMode::kUnmap : TrimMode::kZero;
    if (mode == TrimMode::kUnmap && inner.empty()) return;  // changes nothing, and is not logged
    const bool unmap = mode == TrimMode::kUnmap;
    ModelWrite write{inner.empty() ? RecordType::kWrite : RecordType::kZero,
                     unmap ? inner : range.covering_blocks(),
                     unmap ? to_bytes(inner) : range,
                     {},
                     {}};
    write.sectors.assign(write.range.length / kSectorBytes, 0);
    line.volume->live_layer()->trim(range, mode, begin(line, std::move(write)));
  }

  // Any settled moment; often one of the last.
  SequenceNumber any_moment(Line& line) {
    const SequenceNumber settled = line.volume->replicator().coordinator().settled();
    if (one_in(4)) return settled;
    const SequenceNumber oldest = line.volume->index().oldest().sequence;
    std::vector<SequenceNumber> all{oldest};
    rig_.answers_of(*line.volume).for_each(oldest, settled, [&](const index::IndexedWrite& w) {
      all.push_back(w.sequence);
      return true;
    });
    // That took time.
    std::erase_if(all,
                  [&](SequenceNumber at) { return at < line.volume->index().oldest().sequence; });
    if (all.empty()) return settled;
    return one_in(2) ? all[below(all.size())]
                     : all[all.size() - 1 - below(std::min<std::size_t>(all.size(), 5))];
  }

  void rollback(Line& line) {
    const IndexAnswers answers = rig_.answers_of(*line.volume);
    IndexMoment target = answers.moment_of(any_moment(line));
    if (one_in(3)) {  // undo, and the undoing of that
      std::optional<SequenceNumber> newest;
      answers.for_each(SequenceNumber{0}, line.volume->replicator().coordinator().settled(),
                       [&](const index::IndexedWrite& write) {
                         if (write.type == RecordType::kRollback) newest = write.sequence;
                         return true;
                       });
      if (newest && newest->value > line.volume->index().oldest().sequence.value) {
        target = answers.moment_of(SequenceNumber{newest->value - 1});
      }
    }
    ModelWrite write{RecordType::kRollback, {}, {}, {}, target.sequence};
    line.volume->live().rollback(target, [done = begin(line, std::move(write))](
                                             const Result<replication::Stamp>& r) mutable {
      if (!r) return done(r.error());
      done({});
    });
  }

  void read(Line& line) { read_live(line, any_range(line.volume->size_bytes(), 256, one_in(2))); }

  void read_live(Line& line, ByteRange range) {
    const auto& coordinator = line.volume->replicator().coordinator();
    const SequenceNumber from = std::max(coordinator.settled(), coordinator.acknowledged());
    ++reads_;
    line.volume->live_layer()->read(
        range, [this, &line, range, from, life = life_](const Result<PayloadSlice>& read) {
          if (life != life_) return;
          if (is_away(read)) {
            return ask_again([this, &line, range] {
              --reads_;
              read_live(line, range);
            });
          }
          --reads_;
          if (!read) return fail("a live read failed: " + to_string(read.error()));
          const SequenceNumber to = line.volume->replicator().coordinator().settled();
          answered_.push_back([this, &line, range, read = *read, from, to] {
            check_concurrent(line, range, read, from, to);
          });
        });
  }

  // Each whole block of a read is as at some moment while it ran.
  void check_concurrent(Line& line, ByteRange range, const PayloadSlice& read, SequenceNumber from,
                        SequenceNumber to) {
    const BlockRange inner = range.inner_blocks();
    if (read.length != range.length) return fail("a live read has another length");
    for (Lbn block = inner.first; block < inner.end(); block = block + BlockCount{1}) {
      const std::size_t at = block.byte_offset() - range.offset;
      if (!line.model.block_was(block.value, read.bytes().subspan(at, kBlockBytes), from, to)) {
        return fail("block " + std::to_string(block.value) +
                    " of a live read is as at no moment of [" + std::to_string(from.value) + ", " +
                    std::to_string(to.value) + "]");
      }
    }
  }

  void open_view(Line& line) {
    const SequenceNumber at = any_moment(line);
    if (line.views.size() == kOpenViewsMax) line.views.erase(line.views.begin());
    line.views.push_back({line.volume->view_layer(at), at});
  }

  void read_view(Line& line) {
    if (line.views.empty()) return open_view(line);
    const View view = line.views[below(line.views.size())];
    check_view(line, view, any_range(view.layer->size_bytes(), 256, one_in(2)));
  }

  void check_view(Line& line, const View& view, ByteRange range) {
    ++reads_;
    line.reading.insert(view.at);
    view.layer->read(range,
                     [this, &line, view, range, life = life_](const Result<PayloadSlice>& read) {
                       if (life != life_) return;
                       if (is_away(read)) {
                         return ask_again([this, &line, view, range] {
                           --reads_;
                           line.reading.erase(line.reading.find(view.at));
                           check_view(line, view, range);
                         });
                       }
                       --reads_;
                       line.reading.erase(line.reading.find(view.at));
                       if (!read) return fail("a view's read failed: " + to_string(read.error()));
                       answered_.push_back([this, &line, at = view.at, range, read = *read] {
                         const auto bad = mismatch(read.bytes(), part_of(line.model.at(at), range));
                         if (bad) {
                           fail("sector " + std::to_string(range.offset / kSectorBytes + *bad) +
                                " of the view at #" + std::to_string(at.value) + " is wrong");
                         }
                       });
                     });
  }

  // A moment that was opened by its time means the same ever after.
  void open_time(Line& line) {
    if (line.volume == rig_.overlay()) return;
    const SequenceNumber oldest = line.volume->index().oldest().sequence;
    std::erase_if(opened_, [&](const auto& opened) { return opened.second < oldest; });
    if (!opened_.empty() && one_in(2)) {
      const auto [time, sequence] = opened_[below(opened_.size())];
      const IndexMoment again = rig_.answers_of(*line.volume).moment_at(time);
      if (again.sequence != sequence) {
        fail("the moment " + std::to_string(time.ns) + " was #" + std::to_string(sequence.value) +
             " and is #" + std::to_string(again.sequence.value));
      }
      return;
    }
    const VersionTime time{rig_.executor().wall_time().ns + below(1000)};
    rig_.opened(time);
    volume::settled_moment(
        line.volume->replicator(), line.volume->history().history(), time,
        [this, time, life = life_](const Result<volume::History::Moment>& found) {
          if (!found || life != life_) return;
          opened_.emplace_back(time, found->at.sequence);
        });
  }

  void disturb() {
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

  // Gives up the oldest track if it can: of a random stretch of history, but for what is open.
  void reclaim() {
    std::map<VolumeId, SequenceNumber> until;
    const auto any = [this](Line& line) {
      return one_in(2) ? line.volume->replicator().coordinator().settled() : any_moment(line);
    };
    until[VolumeRig::kVolume] = any(*lines_[0]);
    if (lines_.size() > 1) until[VolumeRig::kOverlay] = any(*lines_[1]);
    rig_.reclaim([this, until](VolumeId id) {
      const Line& line = *lines_[id == VolumeRig::kVolume ? 0 : 1];
      SequenceNumber keep = std::min(line.model.last(), until.at(id));
      for (const View& view : line.views) keep = std::min(keep, view.at);
      if (!line.reading.empty()) keep = std::min(keep, *line.reading.begin());
      if (id == VolumeRig::kVolume && overlay_at_) keep = std::min(keep, *overlay_at_);
      return line.model.time_of(keep);
    });
  }

  void grow() {
    const std::uint64_t blocks = rig_.volume().size_bytes() / kBlockBytes;
    rig_.grow(blocks + below(std::min<std::uint64_t>(blocks_max_ - blocks, 6) + 1));
  }

  void drain() {
    rig_.volume().storage()->drain([](const Result<void>&) {});
  }

  void add_overlay() {
    if (rig_.overlay() != nullptr) return;
    const SequenceNumber at = any_moment(*lines_[0]);
    overlay_at_ = at;
    follow();  // to look for the moment took time
    rig_.add_overlay(at);
    lines_.push_back(
        std::make_unique<Line>(Line{VolumeModel(lines_[0]->model.at(at)), {}, rig_.overlay()}));
  }

  // Everything is answered; then the newest contents and some moments must be exact.
  void settle() {
    const auto busy = [this] {
      return reads_ > 0 || std::any_of(lines_.begin(), lines_.end(), [](const auto& line) {
               return line->model.unanswered() > 0;
             });
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
      for (const View& view : line->views) {
        check_view(*line, view, any_range(view.layer->size_bytes(), 256, false));
      }
    }
    finish([this] { return reads_ > 0; }, "a read is never answered");
    follow();
  }

  template <typename Busy>
  void finish(Busy busy, const char* what) {
    for (int i = 0; busy(); ++i) {
      if (i == 500) return fail(what);
      rig_.manual().advance(std::chrono::milliseconds(i < 100 ? 1 : 100));
    }
  }

  void close_views() {
    ++life_;
    reads_ = 0;
    // Reads in flight hold their views: let them end before the volume does.
    rig_.manual().run_ready();
    for (const auto& line : lines_) {
      line->views.clear();
      line->reading.clear();
    }
  }

  void restart(bool power_cut) {
    if (!power_cut) settle();
    if (failed_) return;
    close_views();
    follow();
    if (power_cut) {
      rig_.crash();
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

  Sectors contents(Volume& of, SequenceNumber at) {
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

  // Reads that were answered, to be looked at when the model has followed.
  std::vector<std::function<void()>> answered_;
  std::mt19937_64 random_;
  const Variant variant_;
  std::uint64_t next_tag_ = 1;
  Sectors base_;
  std::uint64_t blocks_max_ = 0;
  VolumeRig rig_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::pair<VersionTime, SequenceNumber>> opened_;
  std::optional<SequenceNumber> overlay_at_;
  int life_ = 0;
  int reads_ = 0;
  int step_ = 0;
  bool failed_ = false;
};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void run_seeds(Variant variant) {
  const bool one = std::getenv("MARINER_SEED") != nullptr;
  const std::uint64_t first = from_environment("MARINER_SEED", 1);
  const std::uint64_t count = from_environment("MARINER_SEEDS", one                   ? 1
                                                                : variant.far_history ? 2000
                                                                                      : 1500);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("MARINER_SEED=" + std::to_string(seed));
    Run run(seed, variant);
    run.execute();
    if (run.failed()) return;
  }
  std::printf("%llu tracks given up\n", static_cast<unsigned long long>(Run::tracks_freed));
}

TEST(VolumeModel, ZeroBase) { run_seeds({}); }
TEST(VolumeModel, ImportedBase) { run_seeds({.base_in_image = true}); }
TEST(VolumeModel, ZeroBaseFarFromItsHistory) { run_seeds({.far_history = true}); }
TEST(VolumeModel, ImportedBaseFarFromItsHistory) {
  run_seeds({.base_in_image = true, .far_history = true});
}
TEST(VolumeModel, ZeroBaseWiredToItsHistory) { run_seeds({.wired = true}); }
TEST(VolumeModel, ImportedBaseWiredToItsHistory) {
  run_seeds({.base_in_image = true, .wired = true});
}

}  // namespace
}  // namespace mariner::test
