#include "uvfs/tsk_history.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "ifsck/each_once.h"
#include "proto/check.h"
#include "uvfs/content_comparison.h"
#include "uvfs/watch_sweep.h"

namespace mariner::uvfs {
namespace {

using Contents = TskObject::Contents;
using Watcher = WatchSweep::Watcher;

constexpr ByteRange kBoot{.offset = 0, .length = 512};

// A file system, at the moment that a sweep is at.
class AtSweep {
 public:
  AtSweep(WatchSweep& sweep, std::uint64_t size_bytes, TskFileSystem::Kind kind)
      : kind_(kind), image_(size_bytes, [&sweep](BlockRange blocks, std::span<std::byte> to) {
          return sweep.blocks().read(blocks, to);
        }) {}

  // What it was read by, whether it could be opened or not. Null: not.
  Result<std::vector<ByteRange>> open() {
    files_.reset();
    std::vector<ByteRange> read_by;
    auto opened = TskFileSystem::open(image_, kind_, &read_by);
    if (!opened && opened.error().code != ErrorCode::kNotFound) return opened.error();
    if (opened) files_ = std::move(*opened);
    return read_by;
  }
  [[nodiscard]] TskFileSystem* files() { return files_.get(); }

  // As if it had been opened for this one alone.
  Result<TskFileSystem::Look> look(ObjectNumber number, std::vector<ByteRange>& read_by) {
    if (const auto forgotten = files_->forget(); !forgotten) return forgotten.error();
    std::vector<ByteRange> reads;
    image_.record(&reads);
    auto look = files_->look(number);
    image_.record(nullptr);
    read_by = merged_ranges(std::move(reads));
    return look;
  }

 private:
  const TskFileSystem::Kind kind_;
  TskImage image_;
  std::unique_ptr<TskFileSystem> files_;
};

}  // namespace

// ---- opening

class TskHistory::Opening {
 public:
  Opening(TskHistory& all, BlockTimelines& timelines)
      : all_(all),
        sweep_(timelines),
        at_(sweep_, timelines.past().size_bytes(), all.kind_),
        boot_(timelines) {}

  // The first moment from which on it is the same file system.
  Result<SequenceNumber> beginning(const Stretch& stretch) {
    SequenceNumber begin = stretch.first;
    bool foreign = false;
    const auto done = sweep_.run([&](const Instant& now, std::span<const Watcher>) -> Result<void> {
      auto read_by = at_.open();
      if (!read_by) return read_by.error();
      if (foreign) begin = now.at;
      foreign = at_.files() == nullptr ? false : at_.files()->identity() != all_.identity_;
      if (at_.files() == nullptr) {
        const auto same = has_same_boot(now.at, stretch.last);
        if (!same) return same.error();
        foreign = !*same;
      }
      read_by->push_back(kBoot);
      return sweep_.watch(0, merged_ranges(*std::move(read_by)));
    });
    if (!done) return done.error();
    if (!foreign) return begin;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the file system at #{} is not read alike twice", stretch.last.value)};
  }

 private:
  // It is damaged, rather than another one.
  Result<bool> has_same_boot(SequenceNumber at, SequenceNumber last) {
    const BlockTimelines::Question questions[] = {{Lbn{0}, at}, {Lbn{0}, last}};
    std::vector<std::byte> then(kBlockBytes);
    bool same = false;
    const auto read = boot_.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
      if (i == 0) {
        std::ranges::copy(block, then.begin());
      } else {
        same = std::ranges::equal(std::span(then).first(kBoot.length), block.first(kBoot.length));
      }
    });
    if (!read) return read.error();
    return same;
  }

  TskHistory& all_;
  WatchSweep sweep_;
  AtSweep at_;
  BlockTimelines& boot_;
};

Result<std::unique_ptr<TskHistory>> TskHistory::open(ifsck::Past& past, const Stretch& wanted) {
  const auto last = TskMoment::open(past, wanted.last);
  if (!last) return last.error();
  const TskFileSystem& files = (*last)->file_system();
  std::unique_ptr<TskHistory> history(new TskHistory(past));
  history->kind_ = files.kind();
  history->identity_ = files.identity();
  history->root_ = files.root();
  history->stamp_ = files.stamp();
  auto timelines = BlockTimelines::open(past, wanted);
  if (!timelines) return timelines.error();
  const auto begin = Opening(*history, *timelines).beginning(wanted);
  if (!begin) return begin.error();
  if (*begin > wanted.first) {
    timelines = BlockTimelines::open(past, {*begin, wanted.last});
    if (!timelines) return timelines.error();
  }
  history->timelines_ = std::make_unique<BlockTimelines>(std::move(*timelines));
  return history;
}

// ---- loading

// Some objects at once.
class TskHistory::Loading {
 public:
  Loading(TskHistory& all, std::span<const ObjectNumber> numbers)
      : all_(all),
        timelines_(*all.timelines_),
        numbers_(numbers.begin(), numbers.end()),
        made_(numbers.size()),
        sweep_(timelines_),
        at_(sweep_, timelines_.past().size_bytes(), all.kind_),
        comparison_(timelines_) {}

  Result<void> run() {
    const auto read = sweep_.run([this](const Instant& now, std::span<const Watcher> watchers) {
      return read_all(now, watchers);
    });
    if (!read) return read;
    if (const auto loaded = load_contents(); !loaded) return loaded;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (const auto found = find_states(i); !found) return found;
    }
    if (const auto compared = comparison_.run(); !compared) return compared;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      drop_same(i);
      made_[i].history.stamp = all_.stamp_;
      all_.all_.insert_or_assign(numbers_[i], std::move(made_[i]));
    }
    return {};
  }

 private:
  struct Event {
    VersionTime time;
    bool reading = false;
    bool names = false;
    std::vector<Lbn> written;  // of its contents; ascending
  };
  // A state that is seen only if what is compared is not the same.
  struct Doubtful {
    std::size_t state = 0;
    bool otherwise = false;  // something else about it is not as before
    std::size_t compared = 0;
  };

  // Behind the objects: the file system itself.
  [[nodiscard]] Watcher opener() const { return numbers_.size(); }

  Result<void> read_all(const Instant& now, std::span<const Watcher> watchers) {
    bool all = watchers.empty();
    if (all || watchers.back() == opener()) {
      auto read_by = at_.open();
      if (!read_by) return read_by.error();
      if (const auto set = sweep_.watch(opener(), std::move(*read_by)); !set) return set;
      std::string learned = at_.files() == nullptr ? std::string() : at_.files()->learned();
      all = all || learned.empty() || learned != learned_;
      learned_ = std::move(learned);
      if (!all) watchers = watchers.first(watchers.size() - 1);
    }
    for (std::size_t i = 0; i < (all ? numbers_.size() : watchers.size()); ++i) {
      if (const auto read = this->read(all ? i : watchers[i], now); !read) return read;
    }
    return {};
  }

  Result<void> read(std::size_t i, const Instant& now) {
    TskFileSystem::Look look;
    std::vector<ByteRange> read_by;
    if (at_.files() != nullptr && at_.files()->identity() == all_.identity_) {
      auto found = at_.look(numbers_[i], read_by);
      if (!found) return found.error();
      look = std::move(*found);
    }
    if (const auto set = sweep_.watch(i, std::move(read_by)); !set) return set;
    One& one = made_[i];
    take_names(one, now, look);
    if (!one.readings.empty() && one.readings.back().object == look.object) return {};
    one.readings.push_back({now, std::move(look.object)});
    if (++readings_ <= kReadingsMax) return {};
    return Error{ErrorCode::kLimit,
                 fmt::format("more than {} changes of what is to be looked at, between #{} and "
                             "#{}: ask for a shorter time, or for fewer files",
                             kReadingsMax, timelines_.stretch().first.value,
                             timelines_.stretch().last.value)};
  }

  static void take_names(One& one, const Instant& now, TskFileSystem::Look& look) {
    if (S_ISDIR(look.object.state.mode)) {
      if (one.names == nullptr) one.names = std::make_unique<NameHistory>();
      std::vector<NameHistory::Entry> entries;
      entries.reserve(look.names.size());
      for (TskName& each : look.names) entries.emplace_back(std::move(each.name), each.number);
      one.names->set_all(now, std::move(entries), look.names_whole);
    } else if (one.names != nullptr) {
      one.names->forget_all(now);
    }
  }

  // Whose contents may change without it being read again.
  static bool is_in_place(const TskObject& object) {
    return !object.runs.empty() && !object.digest;
  }

  Result<void> load_contents() {
    std::vector<Lbn> blocks;
    for (const One& one : made_) {
      for (const Reading& each : one.readings) {
        if (!is_in_place(each.object)) continue;
        for (const ByteRun& run : each.object.runs) {
          timelines_.add_written(ByteRange{run.place, run.bytes}.covering_blocks(), blocks);
        }
      }
      ifsck::sort_each_once(blocks);
    }
    return timelines_.load(std::move(blocks));
  }

  [[nodiscard]] SequenceNumber before(SequenceNumber moment) const {
    return moment <= timelines_.stretch().first ? moment : SequenceNumber{moment.value - 1};
  }

  std::map<SequenceNumber, Event> events_of(const One& one) const {
    std::map<SequenceNumber, Event> events;
    const auto at = [&](SequenceNumber moment, VersionTime time) -> Event& {
      Event& event = events[moment];
      event.time = time;
      return event;
    };
    for (const Reading& each : one.readings) at(each.from.at, each.from.time).reading = true;
    if (one.names != nullptr) {
      for (const Instant& each : one.names->changes()) at(each.at, each.time).names = true;
    }
    std::vector<Lbn> blocks;
    for (std::size_t i = 0; i < one.readings.size(); ++i) {
      const Reading& each = one.readings[i];
      if (!is_in_place(each.object)) continue;
      const SequenceNumber end =
          i + 1 < one.readings.size() ? one.readings[i + 1].from.at : kEndless;
      blocks.clear();
      for (const ByteRun& run : each.object.runs) {
        timelines_.add_written(ByteRange{run.place, run.bytes}.covering_blocks(), blocks);
      }
      ifsck::sort_each_once(blocks);
      for (const Lbn lbn : blocks) {
        for (const auto& version : timelines_.of(lbn, before(each.from.at), end)) {
          at(version.sequence, version.time).written.push_back(lbn);
        }
      }
    }
    return events;
  }

  Result<void> find_states(std::size_t number) {
    One& one = made_[number];
    auto& states = one.history.states;
    std::size_t reading = 0;
    for (const auto& [moment, event] : events_of(one)) {
      if (states.empty()) {
        states.push_back({moment, event.time, one.readings[0].object.state, false});
        continue;
      }
      const TskObject& was = one.readings[reading].object;
      if (event.reading) ++reading;
      const TskObject& is = one.readings[reading].object;
      ObjectHistory::State next{moment, event.time, is.state, false};
      if (!next.object.exists && !was.state.exists) continue;
      if (!is.state.looks_like(was.state)) {
        next.contents_changed = true;
        states.push_back(next);
        continue;
      }
      next.contents_changed = true;
      if (event.names || was.attributes != is.attributes) {
        states.push_back(next);
        continue;
      }
      const bool otherwise = !(was.state == is.state);
      const auto same = compare(number, {was, is}, event.written, moment);
      if (!same) return same.error();
      if (same->compared) {
        states.push_back(next);
        doubtful_[number].push_back({states.size() - 1, otherwise, *same->compared});
      } else if (!same->same) {
        states.push_back(next);
      } else if (otherwise) {
        next.contents_changed = next.seen = false;
        states.push_back(next);
      }
    }
    return {};
  }

  struct Compared {
    bool same = true;
    std::optional<std::size_t> compared;  // not known yet
  };
  struct Pair {
    const TskObject& was;
    const TskObject& is;
  };
  // Of objects that are alike.
  Result<Compared> compare(std::size_t number, const Pair& pair, std::span<const Lbn> written,
                           SequenceNumber moment) {
    const auto& [was, is] = pair;
    if (was.digest && is.digest) return Compared{*was.digest == *is.digest, {}};
    const bool in_place = !was.digest && !is.digest && was.contents == is.contents;
    if (in_place) {
      if (was.runs == is.runs && written.empty()) return Compared{};
      std::uint64_t size = is.state.size;
      // (Of what is compressed all that there is.)
      if (is.contents != Contents::kRuns) size = std::max(end_of(was.runs), end_of(is.runs));
      return Compared{.same = true,
                      .compared = comparison_.add({.before = &was.runs,
                                                   .after = &is.runs,
                                                   .size = size,
                                                   .written = written,
                                                   .at = moment})};
    }
    const auto same = same_bytes(numbers_[number], moment);
    if (!same) return same.error();
    return Compared{*same, {}};
  }
  static std::uint64_t end_of(const ByteRuns& runs) {
    return runs.empty() ? 0 : runs.back().logical + runs.back().bytes;
  }

  // As they are read: contents went from one form to another. Large ones are said to differ, and
  // those that cannot be read.
  Result<bool> same_bytes(ObjectNumber number, SequenceNumber moment) {
    auto before = all_.contents(number, SequenceNumber{moment.value - 1});
    auto after = all_.contents(number, moment);
    for (const auto* const each : {&before, &after}) {
      if (!*each && !is_of_one_object(each->error())) return each->error();
    }
    if (!before || !after || after->size() > TskFileSystem::kDigestBytesMax) return false;
    return have_same_bytes(*before, *after);
  }

  void drop_same(std::size_t number) {
    const auto found = doubtful_.find(number);
    if (found == doubtful_.end()) return;
    auto& states = made_[number].history.states;
    std::vector<bool> dropped(states.size());
    for (const Doubtful& each : found->second) {
      if (!comparison_.same(each.compared)) continue;
      states[each.state].contents_changed = states[each.state].seen = false;
      dropped[each.state] = !each.otherwise;
    }
    std::size_t i = 0;
    std::erase_if(states, [&](const auto&) { return dropped[i++]; });
  }

  TskHistory& all_;
  BlockTimelines& timelines_;
  const std::vector<ObjectNumber> numbers_;
  std::vector<One> made_;  // of these
  std::size_t readings_ = 0;
  WatchSweep sweep_;
  AtSweep at_;
  std::string learned_;  // by the file system when it was opened
  ContentComparison comparison_;
  std::map<std::size_t, std::vector<Doubtful>> doubtful_;
};

Result<void> TskHistory::load(std::span<const ObjectNumber> numbers) {
  std::vector<ObjectNumber> some;
  std::ranges::copy_if(numbers, std::back_inserter(some),
                       [this](ObjectNumber each) { return each != 0 && !all_.contains(each); });
  ifsck::sort_each_once(some);
  return some.empty() ? Result<void>{} : Loading(*this, some).run();
}

const ObjectHistory* TskHistory::find(ObjectNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second.history;
}

const NameHistory* TskHistory::names(ObjectNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second.names.get();
}

ObjectState TskHistory::state(ObjectNumber number, SequenceNumber at) const {
  const auto found = all_.find(number);
  CHECK(found != all_.end());
  const auto& readings = found->second.readings;
  const auto behind =
      std::ranges::upper_bound(readings, at, {}, [](const Reading& each) { return each.from.at; });
  CHECK(behind != readings.begin());
  return std::prev(behind)->object.state;
}

Result<TskMoment*> TskHistory::moment(SequenceNumber at) {
  const auto known = std::ranges::find(moments_, at, [](const auto& each) { return each->at(); });
  if (known != moments_.end()) {
    moments_.splice(moments_.begin(), moments_, known);
    return moments_.front().get();
  }
  auto opened = TskMoment::open(past_, at);
  if (!opened) return opened.error();
  moments_.push_front(std::move(*opened));
  if (moments_.size() > kMomentsMax) moments_.pop_back();
  return moments_.front().get();
}

Result<FileContents> TskHistory::contents(ObjectNumber number, SequenceNumber at) {
  const auto of = moment(at);
  return of ? (*of)->contents(number) : of.error();
}

Result<ObjectAttributes> TskHistory::attributes(ObjectNumber number, SequenceNumber at) {
  const auto of = moment(at);
  return of ? (*of)->attributes(number) : of.error();
}

}  // namespace mariner::uvfs
