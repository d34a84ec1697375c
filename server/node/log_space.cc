#include "server/node/log_space.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/node/retained_choice.h"

namespace mariner::node {

using volume::Reclaimer;

namespace {

constexpr auto kSoon = std::chrono::milliseconds(20);
constexpr auto kLater = std::chrono::milliseconds(500);
constexpr auto kPause = std::chrono::seconds(5);
// That a window is shortened is said once in so long: a full log gives up a little many times.
constexpr auto kSaidAgain = std::chrono::minutes(1);
// Writes wait so long before anything that is to be kept is given up, or they fail.
constexpr auto kPatience = std::chrono::seconds(2);
// ... when hosts are slowed so that windows get on: as long as they commonly bear.
constexpr auto kPatienceThrottled = std::chrono::seconds(20);
constexpr std::size_t kTracksAtOnceUrgently = 4;
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{1} << 30;

}  // namespace

LogSpace::LogSpace(Parts parts, OnFull on_full)
    : parts_(parts),
      on_full_(on_full),
      reclaimer_({parts.log_stack.array(), parts.worker, parts.executor}, *this,
                 parts.log_stack.given_up()) {
  // Writes that find the log full wait as long as there is hope.
  parts_.log_stack.writer().set_full_gate([this] {
    check();
    const bool hope = !stuck_ && !stopping_;
    if (hope) press();
    return hope;
  });
}

LogSpace::~LogSpace() {
  *alive_ = false;
  parts_.log_stack.writer().set_full_gate(nullptr);
}

std::uint64_t LogSpace::tracks_wanted(const LogStack& log) {
  return std::max<std::uint64_t>(4, log.track_count() / 16);
}

bool LogSpace::low() const {
  const logging::LogWriter& writer = parts_.log_stack.writer();
  return writer.free_tracks() < writer.kept_tracks() + tracks_wanted(parts_.log_stack);
}

bool LogSpace::wanted() const { return low() || parts_.log_stack.draining(); }

bool LogSpace::critical() const {
  const logging::LogWriter& writer = parts_.log_stack.writer();
  return writer.free_tracks() <= writer.kept_tracks_at_rest();
}

// There is less than what is worth a part of the window, for hosts to go on evenly. What the images
// lack does not count: that comes back by itself.
bool LogSpace::tight() const {
  const logging::LogWriter& writer = parts_.log_stack.writer();
  return writer.free_tracks() <= writer.kept_tracks_at_rest() + parts_.log_stack.track_count() / 16;
}

// Writes wait: until something is given up, or the images have got on.
bool LogSpace::urgent() const {
  return pressed_ || critical() || parts_.log_stack.writer().waits_for_room();
}

// Where history is compacted, that makes the room first, as long as it can.
void LogSpace::press() {
  if (on_full_ != OnFull::kShortenWindow || !tight()) return;
  if (parts_.log_stack.array().packing().enabled) return;
  pressed_ = true;
  if (told_pressed_) told_pressed_();
}

void LogSpace::check() {
  (void)now();  // sees steps of the clock
  warn();
  end_patience();
  if (!tight()) pressed_ = false;
  if (wanted()) begin();
}

void LogSpace::set_on_full(OnFull on_full) {
  if (std::exchange(on_full_, on_full) == on_full) return;
  stuck_ = pressed_ = false;
  not_before_ = {};
  check();
}

// The more at once, the less each costs; but who waits for room is to have some soon.
std::size_t LogSpace::tracks_at_once() const {
  if (urgent()) return kTracksAtOnceUrgently;
  const std::uint64_t tracks = parts_.log_stack.track_count();
  const std::uint64_t bytes = std::max<std::uint64_t>(parts_.log_stack.writer().limit_bytes(), 1);
  const std::uint64_t most = kBytesAtOnce * tracks / bytes;
  return std::clamp<std::size_t>(std::min(tracks / 32, most), 1, Reclaimer::kTracksMax);
}

void LogSpace::begin() {
  if (stopping_ || waiting_ || running_ || !errands_.empty() || !reclaimer_.idle()) return;
  // What is needed is so for a while.
  if (!urgent() && parts_.executor.monotonic_time() < not_before_) return;
  began_critical_ = critical();
  reclaimer_.reclaim(tracks_at_once(),
                     [this](const Result<Reclaimer::Report>& report) { ended_try(report); });
}

void LogSpace::ended_try(const Result<Reclaimer::Report>& report) {
  if (!tight()) pressed_ = false;
  ended(report);
  run_next();
}

bool LogSpace::locked(VolumeId volume) const {
  const Result<std::vector<meta::Mark>> marks = parts_.keeper.marks(volume);
  if (!marks) return true;
  const std::uint64_t now = parts_.executor.wall_time().ns;
  return std::ranges::any_of(*marks,
                             [&](const meta::Mark& mark) { return mark.locked_until_ns() > now; });
}

void LogSpace::forget_past(VolumeId volume, SequenceNumber last_rollback, Done done) {
  errands_.push_back({[this, volume, last_rollback](Done then) {
                        begin_forgetting(volume, last_rollback, std::move(then));
                      },
                      std::move(done)});
  run_next();
}

void LogSpace::prune(VolumeId volume, Done done) {
  errands_.push_back(
      {[this, volume](Done then) { prune_now(volume, std::move(then)); }, std::move(done)});
  run_next();
}

void LogSpace::run_next() {
  if (running_ || errands_.empty() || !reclaimer_.idle()) return;
  running_ = true;
  Errand next = std::move(errands_.front());
  errands_.pop_front();
  Done done = [this, done = std::move(next.done)](Result<void> result) mutable {
    running_ = false;
    done(std::move(result));
    run_next();
    if (wanted()) begin();
  };
  if (stopping_) return done(Error{ErrorCode::kAborted, "the server is stopping"});
  next.run(std::move(done));
}

void LogSpace::begin_forgetting(VolumeId id, SequenceNumber last_rollback, Done done) {
  const std::shared_ptr<volume::Reclaimable> volume = find(id);
  if (volume == nullptr) return done(Error{ErrorCode::kNotFound, "the volume is gone"});
  volume->logged().index().moment_of(
      volume->settled(), [this, id, volume, last_rollback,
                          done = std::move(done)](const Result<index::IndexMoment>& at) mutable {
        if (!at) return done(at.error());
        forget(id, volume, *at, last_rollback, std::move(done));
      });
}

void LogSpace::prune_now(VolumeId id, Done done) {
  const std::shared_ptr<volume::Reclaimable> volume = find(id);
  if (volume == nullptr) return done(Error{ErrorCode::kNotFound, "the volume is gone"});
  if (!parts_.keeper.knows()) {
    return done(Error{ErrorCode::kUnavailable, "marks and views are not known now"});
  }
  index::StoredIndex& index = volume->logged().index();
  std::vector<index::KeptMoment> kept = still_kept(volume->logged(), to_keep(id));
  volume::BaseMap& base = volume->logged().base_map();
  volume::VolumeRelease release{id,
                                {.moment = index.oldest(),
                                 .last = {},
                                 .frontier = volume->durable(),
                                 .given_up = {},
                                 .kept = kept},
                                base.changed()};
  index.set_kept(std::move(kept));
  store({std::move(release)}, std::nullopt,
        [volume, done = std::move(done)](Result<void> stored) mutable {
          if (stored) volume->logged().base_map().stored();
          done(std::move(stored));
        });
}

void LogSpace::forget(VolumeId id, const std::shared_ptr<volume::Reclaimable>& volume,
                      index::IndexMoment at, SequenceNumber last_rollback, Done done) {
  volume->drop_snapshots();
  index::StoredIndex& index = volume->logged().index();
  if (!parts_.keeper.views(id).empty() || locked(id) || volume->oldest_pinned() ||
      index.last_rollback() > last_rollback || volume->durable() < at.sequence) {
    return done(Error{ErrorCode::kBusy, "an older moment of the volume is needed"});
  }
  index.set_horizon(at);
  index.set_kept({});
  volume::BaseMap& base = volume->logged().base_map();
  volume::VolumeRelease release{
      id,
      {.moment = at, .last = at.sequence, .frontier = volume->durable(), .given_up = {}},
      base.changed()};
  store({std::move(release)}, std::nullopt,
        [volume, at, done = std::move(done)](Result<void> stored) mutable {
          if (stored) {
            volume->logged().base_map().stored();
            volume->logged().index().set_stored_horizon(at.sequence);
          }
          done(std::move(stored));
        });
}

void LogSpace::again(std::chrono::nanoseconds delay) {
  if (std::exchange(waiting_, true)) return;
  patient_ = delay > kSoon;
  parts_.executor.after(delay, [this, alive = alive_, number = ++waits_] {
    if (!*alive || number != waits_) return;
    waiting_ = false;
    if (wanted()) begin();
  });
}

// Somebody has begun to wait for room since.
void LogSpace::end_patience() {
  if (!waiting_ || !patient_ || !urgent()) return;
  ++waits_;
  waiting_ = false;
}

void LogSpace::ended(const Result<Reclaimer::Report>& report) {
  if (stopping_) return;
  if (!report && report.error().code == ErrorCode::kAborted) {
    return again(urgent() ? kSoon : kLater);  // a volume has been closed meanwhile
  }
  if (!report) {
    parts_.log.error("the oldest track of the log cannot be given up",
                     {{"error", to_string(report.error())}});
    stuck_ = critical() && !be_patient();
    if (stuck_) parts_.log_stack.writer().retry();
    return;  // the next tick tries again
  }
  switch (report->outcome) {
    case Reclaimer::Outcome::kFreed:
      tracks_freed_ += report->tracks;
      if (!gains(*report)) {
        needed_ = true;
        break;
      }
      stuck_ = needed_ = false;
      shortened_.clear();
      thinned_.clear();
      if (on_full_ != OnFull::kShortenWindow) needed_since_.reset();
      if (wanted()) begin();
      return;
    case Reclaimer::Outcome::kLater:
      stuck_ = false;  // there is hope again
      if (!urgent()) return again(kLater);
      if (const auto behind = find(report->volume); critical() && behind) behind->want_room();
      return again(kSoon);
    case Reclaimer::Outcome::kNothing:
      // A track has become complete since: the writer has begun another one.
      if (critical() && !began_critical_) return again(kSoon);
      break;
    case Reclaimer::Outcome::kNeeded:
      needed_ = true;
      if (!critical() && !pressed_) {
        if (urgent()) return again(kSoon);
        break;
      }
      if (is_journal(report->volume)) return again(kLater);
      if (be_patient()) return again(kSoon);
      if (on_full_ == OnFull::kShortenWindow && give_up(report->volume)) return again(kSoon);
      break;
  }
  // The windows move on with time: the next tick tries again.
  shortened_.clear();
  thinned_.clear();
  not_before_ = parts_.executor.monotonic_time() + kPause;
  if (!critical() && on_full_ != OnFull::kShortenWindow) needed_since_.reset();
  stuck_ = critical();
  if (!stuck_) return;
  pressed_ = false;  // what is refused is not to be held back
  parts_.log_stack.writer().retry();
}

// What is kept behind the windows is written again when its track comes up. Where there is little
// else in the whole log, that goes round for nothing.
bool LogSpace::gains(const Reclaimer::Report& report) {
  const std::uint64_t tracks = std::max<std::uint64_t>(parts_.log_stack.track_count(), 1);
  const bool any = report.written_again < report.room / 8 * 7;
  gained_nothing_ = any ? 0 : gained_nothing_ + report.tracks;
  return gained_nothing_ < tracks;
}

std::shared_ptr<volume::Reclaimable> LogSpace::find(VolumeId volume) {
  return parts_.keeper.find(volume);
}

void LogSpace::store(std::vector<volume::VolumeRelease> releases,
                     std::optional<std::uint64_t> ordinal, Done done) {
  std::optional<meta::LogRelease> log;
  if (ordinal) {
    log.emplace().set_log(parts_.log_stack.id_bytes());
    log->set_ordinal(*ordinal);
  }
  parts_.worker.run([store = &parts_.store, releases = std::move(releases),
                     log] { return store->put_releases(releases, log); },
                    std::move(done));
}

// Its writes wait until the logger is back and the image has got on: nothing is given up for them.
bool LogSpace::is_journal(VolumeId volume) {
  const std::shared_ptr<volume::Reclaimable> of = find(volume);
  return of != nullptr && of->spare_through().has_value();
}

// Windows move on with time: what is needed now may not be in a moment. Who writes on in a log that
// is full of what is kept waits once, not for each track.
bool LogSpace::be_patient() {
  const auto now = parts_.executor.monotonic_time();
  if (now - std::exchange(needed_last_, now) > kPause) needed_since_.reset();
  if (!needed_since_) needed_since_ = now;
  return now - *needed_since_ < (on_full_ == OnFull::kThrottle ? kPatienceThrottled : kPatience);
}

bool LogSpace::give_up(VolumeId volume) {
  if (!parts_.keeper.knows()) return false;
  const VersionTime begin = window_begin(volume);
  if (drop_snapshots(volume) || drop_view(volume, begin) || drop_mark(volume, begin) ||
      thin_out(volume) || shorten_window(volume)) {
    return true;
  }
  constexpr VersionTime kAny{std::numeric_limits<std::uint64_t>::max()};
  return drop_view(volume, kAny) || drop_mark(volume, kAny);
}

bool LogSpace::drop_snapshots(VolumeId volume) {
  const std::shared_ptr<volume::Reclaimable> of = find(volume);
  if (of == nullptr || !of->drop_snapshots()) return false;
  parts_.log.warning("the log is full: tokens of copies are cancelled",
                     {{"volume_id", volume.value}});
  return true;
}

bool LogSpace::drop_view(VolumeId volume, VersionTime before) {
  std::vector<meta::View> views = parts_.keeper.views(volume);
  std::erase_if(views, [&](const meta::View& view) {
    return view.keep() || (view.volume_id() == volume.value && view.time_ns() >= before.ns);
  });
  const auto oldest = std::ranges::min_element(views, {}, &meta::View::sequence);
  if (oldest == views.end()) return false;
  parts_.log.warning("the log is full: a view is dropped", {{"view", oldest->name()}});
  parts_.keeper.drop_view(oldest->name());
  return true;
}

bool LogSpace::drop_mark(VolumeId volume, VersionTime before) {
  Result<std::vector<meta::Mark>> marks = parts_.keeper.marks(volume);
  if (!marks) return false;
  const std::uint64_t now = parts_.executor.wall_time().ns;
  std::erase_if(*marks, [&](const meta::Mark& mark) {
    return mark.locked_until_ns() > now || mark.time_ns() >= before.ns;
  });
  const auto oldest = std::ranges::min_element(*marks, {}, &meta::Mark::sequence);
  if (oldest == marks->end()) return false;
  parts_.log.warning("the log is full: a mark is dropped", {{"mark", oldest->name()}});
  return parts_.keeper.drop_mark(*oldest);
}

// Of what its schedule keeps the oldest moments, some more with each try that does not do.
bool LogSpace::thin_out(VolumeId volume) {
  const std::shared_ptr<volume::Reclaimable> of = find(volume);
  const auto asked = parts_.keeper.window(volume);
  if (of == nullptr || !asked || asked->retain.none()) return false;
  const VersionTime window_begin = keep_from(volume);
  std::vector<RetainedTime> times = retained_times(asked->retain, now());
  std::erase_if(times, [&](const RetainedTime& each) { return each.time < asked->created; });
  const auto kept = static_cast<std::size_t>(std::ranges::count_if(
      times, [&](const RetainedTime& each) { return each.time < window_begin; }));
  std::size_t& thinned = thinned_[volume];
  if (thinned >= kept) return false;
  if (thinned == 0) {
    parts_.log.warning("the log is full: moments behind the window are given up",
                       {{"volume", asked->volume}, {"retain", retention_text(asked->retain)}});
  }
  thinned += (kept - thinned + 7) / 8;
  return true;
}

// By more with each try that does not do, until only what is locked is left.
bool LogSpace::shorten_window(VolumeId volume) {
  const auto window = parts_.keeper.window(volume);
  if (!window) return false;
  const auto now = parts_.executor.monotonic_time();
  const auto said = said_shortened_.find(volume);
  if (!shortened_.shortened(volume) &&
      (said == said_shortened_.end() || now - said->second >= kSaidAgain)) {
    said_shortened_[volume] = now;
    parts_.log.warning("the log is full: history inside the window is given up",
                       {{"volume", window->volume}, {"window_s", window->seconds}});
  }
  return shortened_.shorten(volume, is_greedy(volume));
}

// Its history takes an equal share of what all take, or more.
bool LogSpace::is_greedy(VolumeId volume) const {
  std::uint64_t all = 0;
  std::uint64_t own = 0;
  const std::vector<VolumeId> volumes = parts_.keeper.volumes();
  for (const VolumeId each : volumes) {
    const std::shared_ptr<volume::Reclaimable> of = parts_.keeper.find(each);
    if (of == nullptr) continue;
    const std::uint64_t bytes = of->logged().log().payload_bytes();
    all += bytes;
    if (each == volume) own = bytes;
  }
  return own * volumes.size() >= all;
}

// A line at each threshold, once: an administrator hears of a log that fills up before the hosts
// do. (A log that is only being given up less fast than it is written does not.)
LogSpace::Room LogSpace::room() const {
  if (stuck_) return Room::kFull;
  return critical() && needed_ ? Room::kShort : Room::kEnough;
}

void LogSpace::warn() {
  if (!stuck_ && !low()) warned_percent_ = 0;
  if (room() == Room::kEnough) return;
  const logging::LogWriter& writer = parts_.log_stack.writer();
  const bool full = stuck_;
  const unsigned level = full ? 100 : 90;
  if (warned_percent_ >= level) return;
  warned_percent_ = level;
  if (full) {
    parts_.log.error("the log is full: writes are refused; what was written stays readable",
                     {{"log", parts_.log_stack.paths()}});
  } else {
    parts_.log.warning(
        "the log fills up with history that is to be kept: writes fail with SPACE ALLOCATION "
        "FAILED "
        "when it is full",
        {{"used_bytes", writer.used_bytes()}, {"limit_bytes", writer.limit_bytes()}});
  }
}

void LogSpace::stop() {
  stopping_ = true;
  pressed_ = false;
  reclaimer_.stop();
  run_next();  // tells whoever waits
  parts_.log_stack.writer().retry();
}

}  // namespace mariner::node
