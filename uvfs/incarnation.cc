#include "uvfs/incarnation.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace mariner::uvfs {
namespace {

using State = ObjectHistory::State;
using Stamp = ObjectHistory::Stamp;

// The states at which an operation was under way: true for those that are no versions. The first
// one is that of the stretch if `begins`.
class UnderWay {
  static constexpr std::uint64_t kSecond_ns = 1'000'000'000;
  // As much as contents may come before their inode where all is written at once, and more than a
  // host's clock is coarse.
  static constexpr std::int64_t kMargin_ns = 1'000'000'000;

 public:
  struct Options {
    bool begins = false;
    ObjectHistory::Stamp stamp{};
    // Of the write with which nobody has the path any more, if that is about the object, too.
    std::optional<VersionTime> end;
  };
  UnderWay(std::span<const State> states, const Options& options, const VersionRule& rule)
      : states_(states), options_(options), rule_(rule), passing_(states.size()) {}

  std::vector<bool> find() {
    for (std::size_t i = 1; i < states_.size(); ++i) {
      if (same_time(i - 1, i)) continue;
      ahead_ns_ = std::min(ahead_ns_.value_or(ahead_ns(i, i)), ahead_ns(i, i));
    }
    if (options_.stamp == Stamp::kLast) {
      take_until_stamped();
      return std::move(passing_);
    }
    for (std::size_t i = 1; i < states_.size(); ++i) {
      if (!same_time(i - 1, i)) continue;
      if (options_.stamp == Stamp::kNone) {
        if (is_unstamped(i)) take_nearest(i);
      } else if (!states_[i].object.looks_like(states_[i - 1].object)) {
        // The inode is being written in parts.
        passing_[i - 1] = within(i - 1, i);
      } else {
        take_contents(i);
      }
    }
    return std::move(passing_);
  }

 private:
  // What has no time of its own is under way until something follows; not for longer, all together,
  // than an operation takes (who has a file open for hours may say so in the end only).
  void take_until_stamped() {
    std::size_t begun = 1;
    for (std::size_t i = 1; i < states_.size(); ++i) {
      passing_[i] =
          same_time(i - 1, i) && is_within(until(i, i + 1)) && is_within(until(begun, i + 1));
      if (!passing_[i]) begun = i + 1;
    }
  }
  // Contents, without an inode that says so: it comes next, unless they were written before the
  // host did what that one is about. Then they complete what the one before said.
  void take_contents(std::size_t i) {
    // An inode with the same time came behind them, as of two directories that were made within one
    // tick of the host's clock: it completes them.
    const bool complete =
        is_inode(i) || (i + 1 < states_.size() && same_time(i, i + 1) && is_inode(i + 1));
    std::size_t next = i + 1;
    while (next < states_.size() && same_time(i, next)) ++next;
    if (!complete && next < states_.size() && ahead_ns(i, next) + kMargin_ns >= *ahead_ns_) {
      passing_[i] = within(i, next);
    } else if (i > 1 || !options_.begins) {
      passing_[i - 1] = within(i - 1, i);
    }
  }
  // Nothing was written but the inode, and what it says is not what is seen: how many names it has.
  [[nodiscard]] bool is_inode(std::size_t i) const {
    return !states_[i].contents_changed && states_[i].object.links != states_[i - 1].object.links;
  }
  // Contents, and the entry of the directory that says what the object is has stayed as it was.
  [[nodiscard]] bool is_unstamped(std::size_t i) const {
    return i > 0 && same_time(i - 1, i) && states_[i].object.looks_like(states_[i - 1].object);
  }
  // They belong to the entry that was written next, or to the last one: to whichever is nearer.
  void take_nearest(std::size_t i) {
    std::size_t next = i + 1;
    while (next < states_.size() && is_unstamped(next)) ++next;
    std::size_t last = i - 1;
    while (is_unstamped(last)) --last;
    const bool known = last > 0 || !options_.begins;  // when it was written
    const auto ahead = until(i, next);
    if (is_within(ahead) && (!known || *ahead <= passed(last, i))) {
      passing_[i] = true;
    } else if (known && (states_[i].object.mode & S_IFMT) != S_IFDIR) {
      // (Of a directory often nothing but the names is written.)
      passing_[i - 1] = within(i - 1, i);
    }
  }
  // How far the write of a state was behind the time of change that another one has, by the clocks
  // of this machine and of the host: least where they are alike and all is written at once.
  [[nodiscard]] std::int64_t ahead_ns(std::size_t i, std::size_t said) const {
    const FileTime& changed = states_[said].object.changed;
    return static_cast<std::int64_t>(
        states_[i].time.ns - static_cast<std::uint64_t>(changed.seconds) * kSecond_ns - changed.ns);
  }
  // The inode says that it was changed last at the same time.
  [[nodiscard]] bool same_time(std::size_t i, std::size_t j) const {
    return states_[i].object.changed == states_[j].object.changed;
  }
  [[nodiscard]] std::uint64_t passed(std::size_t i, std::size_t j) const {
    return states_[j].time.ns - states_[i].time.ns;
  }
  [[nodiscard]] bool within(std::size_t i, std::size_t j) const { return is_within(passed(i, j)); }
  // To the state behind, or to the end. Nothing: there is none.
  [[nodiscard]] std::optional<std::uint64_t> until(std::size_t i, std::size_t next) const {
    if (next < states_.size()) return passed(i, next);
    if (!options_.end) return {};
    return options_.end->ns - states_[i].time.ns;
  }
  [[nodiscard]] bool is_within(std::optional<std::uint64_t> passed_ns) const {
    return passed_ns && *passed_ns <= static_cast<std::uint64_t>(rule_.under_way_max.count());
  }

  std::span<const State> states_;
  const Options options_;
  const VersionRule& rule_;
  std::vector<bool> passing_;
  std::optional<std::int64_t> ahead_ns_;  // the least that there is
};

}  // namespace

std::vector<FileVersion> versions_of(const ObjectHistory& history, const Instant& from,
                                     SequenceNumber end, const VersionRule& rule) {
  const auto& all = history.states;
  auto first = std::ranges::upper_bound(all, from.at, {}, &State::from);
  if (first != all.begin()) --first;
  const auto last = std::ranges::lower_bound(first, all.end(), end, {}, &State::from);
  const std::span<const State> states(first, last);
  std::vector<bool> passing(states.size());
  if (!rule.every_write) {
    const bool ends = last != all.end() && last->from == end;
    const UnderWay::Options options{
        .begins = first == all.begin(),
        .stamp = history.stamp,
        .end = ends ? std::optional(last->time) : std::nullopt,
    };
    passing = UnderWay(states, options, rule).find();
  }
  std::vector<FileVersion> versions;
  bool due = true;  // something was seen to change, and is to be a version
  for (std::size_t i = 0; i < states.size(); ++i) {
    due = due || states[i].seen;
    if (passing[i] || !due) continue;
    due = false;
    if (!versions.empty()) versions.back().end = states[i].from;
    const bool earlier = states[i].from < from.at;
    versions.push_back({.from = earlier ? from : Instant{states[i].from, states[i].time},
                        .end = end,
                        .object = states[i].object});
  }
  return versions;
}

}  // namespace mariner::uvfs
