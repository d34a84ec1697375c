// A year of a volume's history in a log that is too small for it half of the time: real code on
// real files, with a clock that is put forward. Writes at rates that change, marks, locks, a
// schedule, restarts.
//
// Whatever is promised is read back, exactly: every moment of the window, what the schedule keeps,
// marks. Nothing of it goes, but for what a full log may take, and says. When room is low the
// window is no longer than it must be, and what is used of the log is what its records take.
//
// Everything follows from a seed, which each failure prints: MARINER_SEED=n.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "logging/live_tracks.h"
#include "server/client/retention.h"
#include "server/node/local_keeper.h"
#include "server/node/log_space.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using std::chrono::hours;

constexpr std::uint64_t kBlocks = testing::NodeParts::kVolumeBytes / kBlockBytes;
constexpr hours kStep{6};
constexpr int kSteps = 365 * 24 / 6;
constexpr hours kWindow{72};
constexpr int kSeason = 40;  // steps: quiet ones and busy ones take turns
constexpr Retention kRetain{.daily = 10, .weekly = 4, .monthly = 6};
constexpr std::uint64_t kTracks = 14;

using Contents = std::array<std::uint64_t, kBlocks>;

std::uint64_t ns_of(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

class HistoryYear : public ::testing::Test {
 protected:
  struct Snapshot {
    SequenceNumber at;
    VersionTime time;  // until the next one
    Contents contents;
  };
  struct Mark {
    std::size_t snapshot = 0;
    VersionTime locked_until;
  };

  HistoryYear() {
    parts_.create("db1");
    volume().meta.set_window_s(static_cast<std::uint64_t>(std::chrono::seconds(kWindow).count()));
    volume().meta.set_retain(retention_text(kRetain));
    EXPECT_TRUE(parts_.store().put_volume(volume().meta));
    created_ = parts_.executor().wall_time();
    open();
  }
  ~HistoryYear() override { close(); }

  void open() {
    keeper_ = std::make_unique<LocalKeeper>(parts_.volumes(), parts_.views(), parts_.store(),
                                            [](const std::string&) {});
    space_ = std::make_unique<LogSpace>(
        LogSpace::Parts{parts_.log_stack(), *keeper_, parts_.store(), parts_.worker(),
                        parts_.executor(), parts_.log()},
        OnFull::kShortenWindow);
  }
  void close() {
    space_->stop();
    parts_.run_until([this] { return space_->idle(); });
    space_.reset();
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  index::StoredIndex& index() { return volume().volume->index(); }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  VersionTime now() { return parts_.executor().wall_time(); }

  void write(std::size_t count) {
    std::size_t left = count;
    for (std::size_t i = 0; i < count; ++i) {
      // Four of five go to a fifth of the blocks.
      const std::uint64_t block = below(5) > 0 ? below(kBlocks / 5) : below(kBlocks);
      contents_[block] = ++last_tag_;
      Payload data = Payload::zeroed(kBlockBytes);
      std::memcpy(data.data(), &last_tag_, sizeof(last_tag_));
      volume().volume->live_layer()->write(
          {block * kBlockBytes, kBlockBytes}, {data, 0, kBlockBytes}, [&](const Result<void>& r) {
            EXPECT_TRUE(r) << "a log that may shorten the window refuses no write";
            --left;
          });
    }
    parts_.run_until([&] { return left == 0; });
    snapshots_.push_back({parts_.newest(volume()), now(), contents_});
  }
  void reclaim() {
    bool drained = false;
    volume().volume->storage()->drain([&](const Result<void>& r) { drained = r.has_value(); });
    parts_.run_until([&] { return drained; });
    // What a try gives up that is under way was settled when marks had not changed yet.
    parts_.run_until([this] { return space_->idle(); });
    freed_ = space_->tracks_freed();  // from here on
    asked_ = retained_times(kRetain, now());
    // A try that met an image which was behind, while the writes came, waits before the next one.
    for (int i = 0; i < 4; ++i) {
      parts_.advance(std::chrono::seconds(1));
      space_->check();
      parts_.run_until([this] { return space_->idle(); });
    }
  }
  // Marks that are not locked any more may go with a full log.
  void change_marks() {
    if (below(20) == 0) {
      const std::string name = "mark" + std::to_string(snapshots_.size());
      Mark mark{snapshots_.size() - 1, {}};
      if (below(2) == 0) mark.locked_until = {now().ns + ns_of(hours(24 * (1 + below(60))))};
      meta::Mark stored;
      stored.set_volume_id(volume().meta.id());
      stored.set_name(name);
      stored.set_sequence(snapshots_.back().at.value);
      stored.set_time_ns(snapshots_.back().time.ns);
      stored.set_locked_until_ns(mark.locked_until.ns);
      ASSERT_TRUE(parts_.store().put_mark(stored));
      marks_[name] = mark;
    }
    if (below(30) != 0 || marks_.empty()) return;
    const auto gone = std::next(marks_.begin(), static_cast<std::ptrdiff_t>(below(marks_.size())));
    ASSERT_TRUE(parts_.store().remove_mark(volume().meta.id(), gone->first));
    marks_.erase(gone);
  }
  // A check found a moment clean: it is to stand for its day, if no later one does.
  void find_clean() {
    if (below(3) != 0) return;
    meta::Verdict verdict;
    verdict.set_sequence(snapshots_.back().at.value);
    verdict.set_time_ns(snapshots_.back().time.ns);
    verdict.set_kind(below(4) > 0 ? meta::Verdict::CLEAN : meta::Verdict::DAMAGED);
    ASSERT_TRUE(parts_.store().change_verdicts(volume().meta.id(), {verdict}, {}));
    if (verdict.kind() == meta::Verdict::CLEAN) clean_.insert(snapshots_.size() - 1);
  }
  void drop_marks_that_went() {
    std::set<std::string> there;
    for (const meta::Mark& mark : *parts_.store().marks_of(volume().meta.id())) {
      there.insert(mark.name());
    }
    std::erase_if(marks_, [&](const auto& mark) {
      if (there.contains(mark.first)) return false;
      EXPECT_LE(mark.second.locked_until.ns, now().ns) << mark.first << " was locked, and is gone";
      ++dropped_marks_;
      return true;
    });
  }
  void restart() {
    close();
    parts_.stop();
    parts_.start();
    open();
  }

  void check(const Snapshot& snapshot, const std::string& what) {
    ASSERT_TRUE(index().can_be_opened(snapshot.at)) << what << ": #" << snapshot.at.value;
    bool done = false;
    const std::shared_ptr<volume::Layer> view = volume().volume->view_layer(snapshot.at);
    view->read({0, kBlocks * kBlockBytes}, [&](const Result<PayloadSlice>& read) {
      done = true;
      ASSERT_TRUE(read) << what << ": " << to_string(read.error());
      for (std::uint64_t block = 0; block < kBlocks; ++block) {
        std::uint64_t tag = 0;
        std::memcpy(&tag, read->bytes().data() + block * kBlockBytes, sizeof(tag));
        ASSERT_EQ(tag, snapshot.contents[block])
            << what << ": block " << block << " at #" << snapshot.at.value;
      }
    });
    parts_.run_until([&] { return done; });
    ++checked_;
  }
  const Snapshot& snapshot_at(VersionTime time) {
    const auto behind = std::ranges::upper_bound(snapshots_, time, {}, &Snapshot::time);
    return *std::prev(behind);
  }
  // What is to be kept for it: the newest clean moment of its day that could be opened before, or
  // else the last one.
  const Snapshot& snapshot_for(const RetainedTime& asked) {
    for (auto each = clean_.rbegin(); each != clean_.rend(); ++each) {
      const Snapshot& clean = snapshots_[*each];
      if (clean.time > asked.time || clean.time <= asked.after) continue;
      if (!kept_.contains(clean.at.value) && clean.at < oldest_.sequence) continue;
      ++clean_chosen_;
      return clean;
    }
    return snapshot_at(asked.time);
  }
  // How often the log said so.
  std::size_t told(const std::string& what) {
    std::ifstream log(parts_.path("daemon.log"));
    std::size_t count = 0;
    for (std::string line; std::getline(log, line);) {
      if (line.find(what) != std::string::npos) ++count;
    }
    return count;
  }

  void check_promises() {
    const index::IndexMoment oldest = index().oldest();
    const std::size_t shortened = told("history inside the window is given up");
    const VersionTime begin{now().ns - ns_of(kWindow)};
    const bool said = shortened != shortened_;
    if (!said && !said_before_) {
      const VersionTime allowed = std::max({begin, oldest_.time, created_});
      ASSERT_LE(oldest.time, allowed) << "the window was shortened, and nobody was told";
    }
    if (said) ++short_steps_;
    said_before_ = said;  // what was begun then may go on
    // Some moments from the oldest on.
    for (int i = 0; i < 2; ++i) {
      const Snapshot& any = snapshots_[below(snapshots_.size())];
      if (any.at >= oldest.sequence) check(any, "a moment of the window");
    }
    check(snapshots_.back(), "now");
    for (const auto& [name, mark] : marks_) {
      if (below(4) == 0) check(snapshots_[mark.snapshot], name);
    }
    // What the schedule keeps: what it kept before, and what has just left the window.
    const std::size_t thinned = told("moments behind the window are given up");
    std::set<std::uint64_t> kept;
    for (const RetainedTime& each : retained_times(kRetain, now())) {
      if (each.time < created_ || each.time < snapshots_.front().time) continue;
      const Snapshot& snapshot = snapshot_for(each);
      if (snapshot.at >= oldest.sequence || snapshot.at.value == 0) continue;
      const bool before = kept_.contains(snapshot.at.value) || snapshot.at >= oldest_.sequence;
      if (index().is_kept(snapshot.at)) {
        kept.insert(snapshot.at.value);
        if (below(8) == 0) check(snapshot, std::string("kept as ") + each.period);
      } else {
        ASSERT_TRUE(thinned != thinned_ || !before)
            << "#" << snapshot.at.value << " was to be kept as " << each.period;
      }
    }
    most_kept_ = std::max(most_kept_, index().kept().size());
    kept_ = std::move(kept);
    oldest_ = oldest;
    shortened_ = shortened;
    thinned_ = thinned;
  }
  // Where anything was given up, only the schedule and marks keep a moment behind the window.
  void check_that_nothing_else_is_kept() {
    const std::uint64_t freed = space_->tracks_freed();
    const bool same = freed_ == freed;
    // (A full log may have dropped a mark behind the last try.)
    if (std::exchange(dropped_before_, dropped_marks_) != dropped_marks_ || same) return;
    // (A day may have ended between two tries.)
    std::vector<RetainedTime> times = retained_times(kRetain, now());
    times.insert(times.end(), asked_.begin(), asked_.end());
    for (const index::KeptMoment& each : index().kept()) {
      const bool marked = std::ranges::any_of(marks_, [&](const auto& mark) {
        return snapshots_[mark.second.snapshot].at == each.moment.sequence;
      });
      const bool wished = std::ranges::any_of(times, [&](const RetainedTime& time) {
        return volume::is_one_of(each, std::vector{time.time}) || stands_for(each, time);
      });
      ASSERT_TRUE(marked || wished) << "#" << each.moment.sequence.value << " is kept for nobody";
    }
  }
  // A moment of the day that was found clean, or the last one of it that was kept, maybe for a mark
  // at first, when nothing is left of the end of the day.
  bool stands_for(const index::KeptMoment& kept, const RetainedTime& asked) {
    const auto is_of_day = [&](const index::KeptMoment& each) {
      return each.moment.time > asked.after && each.moment.time <= asked.time;
    };
    if (!is_of_day(kept)) return false;
    const bool is_clean = std::ranges::any_of(
        clean_, [&](std::size_t clean) { return snapshots_[clean].at == kept.moment.sequence; });
    return is_clean || std::ranges::none_of(index().kept(), [&](const index::KeptMoment& each) {
             return is_of_day(each) && each.moment.sequence > kept.moment.sequence;
           });
  }
  // When room is low, a track all of whose writes are behind the window has gone.
  void check_that_nothing_stays() {
    const logging::LogWriter& writer = parts_.log_stack().writer();
    const std::uint64_t low = writer.kept_tracks() + std::max<std::uint64_t>(4, kTracks / 16);
    if (writer.free_tracks() >= low) return;
    const logging::LiveTracks live = logging::live_tracks(parts_.log_stack().array()).front();
    if (live.tracks.size() < 2) return;  // none is complete
    const auto oldest = logging::read_live_track(live, 0);
    ASSERT_TRUE(oldest);
    VersionTime newest;
    for (const auto& [record, location] : oldest->records) {
      if (record.type == logging::RecordType::kWrite) newest = std::max(newest, record.time);
    }
    if (newest.ns == 0) return;  // what is kept goes round
    ASSERT_GE(newest.ns + ns_of(kWindow + 3 * kStep), now().ns)
        << "room is low, and a track behind the window is still there";
    ++low_steps_;
  }
  void check_accounts() {
    std::uint64_t payload = 0;
    std::uint64_t tracks = 0;
    const std::uint64_t given_up = *parts_.store().given_up(parts_.log_stack().id_bytes());
    for (const logging::LiveTracks& live : logging::live_tracks(parts_.log_stack().array())) {
      for (std::size_t i = 0; i < live.tracks.size(); ++i) {
        const auto track = logging::read_live_track(live, i);
        ASSERT_TRUE(track);
        for (const auto& [record, location] : track->records) {
          if (record.ordinal < given_up) continue;
          payload += std::uint64_t{record.payload_blocks} * kBlockBytes;
        }
      }
      tracks += live.tracks.size();
    }
    const logging::LogWriter& writer = parts_.log_stack().writer();
    EXPECT_EQ(writer.free_tracks() + tracks, kTracks);
    EXPECT_EQ(volume().volume->logged().log().payload_bytes(), payload);
  }

  testing::NodeParts parts_{kTracks};
  std::mt19937_64 random_;
  std::unique_ptr<LocalKeeper> keeper_;
  std::unique_ptr<LogSpace> space_;
  Contents contents_{};
  std::uint64_t last_tag_ = 0;
  VersionTime created_;
  std::vector<Snapshot> snapshots_;
  std::map<std::string, Mark> marks_;
  std::set<std::uint64_t> kept_;
  std::set<std::size_t> clean_;  // snapshots
  int clean_chosen_ = 0;         // so often, behind the window or in it
  std::uint64_t freed_ = 0;
  std::vector<RetainedTime> asked_;  // when it was taken
  bool said_before_ = false;
  index::IndexMoment oldest_;
  std::size_t shortened_ = 0;
  std::size_t thinned_ = 0;
  std::size_t most_kept_ = 0;
  int short_steps_ = 0;
  int low_steps_ = 0;
  int dropped_marks_ = 0;
  int dropped_before_ = 0;
  std::uint64_t checked_ = 0;
};

TEST_F(HistoryYear, EveryPromisedMomentReadsBackExactly) {
  const char* const chosen = std::getenv("MARINER_SEED");
  const std::uint64_t seed = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  SCOPED_TRACE("MARINER_SEED=" + std::to_string(seed));
  random_.seed(seed);
  for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    parts_.advance(kStep);
    const bool busy = step / kSeason % 2 == 1;
    write(busy ? 900 + below(900) : 1 + below(60));
    change_marks();
    find_clean();
    reclaim();
    drop_marks_that_went();
    check_promises();
    check_that_nothing_stays();
    check_that_nothing_else_is_kept();
    if (step % 100 == 99) check_accounts();
    if (step % 150 == 149) restart();
  }
  EXPECT_GT(short_steps_, 0) << "the log was never too small";
  EXPECT_GT(low_steps_, 0);
  EXPECT_GT(most_kept_, 8U);
  EXPECT_GT(clean_chosen_, 0);
  std::printf(
      "%d steps: %zu writes, %llu tracks freed since the last restart, %llu moments checked; "
      "the window was short at %d, room low at %d; at most %zu moments kept, %d marks "
      "dropped\n",
      kSteps, static_cast<std::size_t>(last_tag_),
      static_cast<unsigned long long>(space_->tracks_freed()),
      static_cast<unsigned long long>(checked_), short_steps_, low_steps_, most_kept_,
      dropped_marks_);
}

}  // namespace
}  // namespace mariner::node
