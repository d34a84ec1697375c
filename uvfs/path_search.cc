#include "uvfs/path_search.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "proto/check.h"

namespace mariner::uvfs {
namespace {

// In ext2, ext3 and ext4 of bytes; in NTFS, exFAT and FAT of characters.
constexpr std::size_t kNameLengthMax = 255;
constexpr std::size_t kCharacterBytesMax = 4;

// Of which there are as many as bytes, or fewer.
std::size_t characters(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      name, [](char each) { return (static_cast<unsigned char>(each) & 0xC0) != 0x80; }));
}

bool is_too_long(std::string_view name) {
  return characters(name) > kNameLengthMax || name.size() > kCharacterBytesMax * kNameLengthMax;
}

using State = ObjectHistory::State;

Error invalid(std::string_view path, std::string_view why) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("\"{}\" is no path of a file system: {}", path, why)};
}

Error too_many() {
  return {ErrorCode::kLimit,
          fmt::format("more than {} paths below this directory: ask for one further down, or for a "
                      "shorter time",
                      PathSearch::kObjectsMax)};
}

// The same object as before, without a moment in between.
bool goes_on(const Presence& before, const Presence& next) {
  return before.inode == next.inode && before.end.at == next.from.at;
}

const Instant kNever{kEndless, {}};

// A directory is below itself: damage, which would have no end.
bool is_within(const Presence& one, const std::vector<Presence>& above) {
  return std::ranges::any_of(above, [&](const Presence& each) {
    return each.inode == one.inode && each.from.at < one.end.at && one.from.at < each.end.at;
  });
}

}  // namespace

Result<std::vector<std::string>> PathSearch::components_of(std::string_view path) {
  if (!path.starts_with('/')) return invalid(path, "it does not begin with \"/\"");
  std::vector<std::string> all;
  while (!path.empty()) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    if (name.empty() || name == ".") continue;
    if (name == "..") return invalid(path, "\"..\" is not followed");
    if (is_too_long(name)) {
      return invalid(path, fmt::format("a name has {} bytes, and its characters are {} at most",
                                       name.size(), kNameLengthMax));
    }
    all.emplace_back(name);
    if (all.size() > kDepthMax) {
      return invalid(path, fmt::format("it has more than {} names", kDepthMax));
    }
  }
  return all;
}

Result<std::vector<Presence>> PathSearch::presences_of(std::string_view path) {
  const auto components = components_of(path);
  if (!components) return components.error();
  const Stretch& stretch = history_.stretch();
  const Instant begin{stretch.first, history_.first_time()};
  std::vector<Presence> current{{history_.root(), begin, kNever}};
  if (const auto loaded = load(current); !loaded) return loaded.error();
  current = existing(std::move(current));
  for (const std::string& name : *components) {
    std::vector<Presence> next;
    add_children(current, name, next);
    if (const auto loaded = load(next); !loaded) return loaded.error();
    current = joined(existing(std::move(next)));
  }
  return current;
}

Result<PathHistory> PathSearch::find(std::string_view path) {
  const auto presences = presences_of(path);
  if (!presences) return presences.error();
  return history_of(std::string(path), *presences);
}

Result<std::vector<std::string>> PathSearch::names_in(std::string_view path) {
  const auto presences = presences_of(path);
  if (!presences) return presences.error();
  std::set<std::string, std::less<>> all;
  for (const Presence& parent : *presences) {
    const NameHistory* const names = history_.names(parent.inode);
    if (names == nullptr) continue;
    names->for_each([&](std::string_view name, std::span<const NameHistory::Span> spans) {
      std::vector<Presence> some;
      add_spans(parent, spans, some);
      if (!some.empty()) all.emplace(name);
    });
  }
  return std::vector<std::string>(all.begin(), all.end());
}

Result<std::vector<PathHistory>> PathSearch::find_below(std::string_view path) {
  const auto top = presences_of(path);
  if (!top) return top.error();
  using Presences = std::vector<Presence>;
  struct Place {
    std::string path;
    Presences presences;
    std::shared_ptr<const Presences> above;  // of the directories on the way
  };
  std::vector<PathHistory> all;
  std::string root(path);
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  std::vector<Place> level;
  if (!top->empty()) level.push_back({root, *top, std::make_shared<const Presences>()});
  std::size_t found = level.size();
  // Level by level: so that all of one are asked for at once.
  for (std::size_t depth = 0; !level.empty() && depth < kDepthMax; ++depth) {
    std::vector<Place> next;
    std::vector<Presence> children;
    for (Place& place : level) {
      std::map<std::string, Presences, std::less<>> by_name;
      auto above = std::make_shared<Presences>(*place.above);
      above->insert(above->end(), place.presences.begin(), place.presences.end());
      for (const Presence& parent : place.presences) {
        const NameHistory* const names = history_.names(parent.inode);
        if (names == nullptr) continue;
        names->for_each([&](std::string_view name, std::span<const NameHistory::Span> spans) {
          add_spans(parent, spans, by_name[std::string(name)]);
        });
      }
      for (auto& [name, presences] : by_name) {
        std::erase_if(presences, [&](const Presence& each) { return is_within(each, *above); });
        if (presences.empty()) continue;
        if (++found > kObjectsMax) return too_many();
        children.insert(children.end(), presences.begin(), presences.end());
        next.push_back(
            {(place.path == "/" ? "" : place.path) + "/" + name, std::move(presences), above});
      }
      all.push_back(history_of(std::move(place.path), place.presences));
    }
    if (const auto loaded = load(children); !loaded) return loaded.error();
    for (Place& place : next) place.presences = joined(existing(std::move(place.presences)));
    std::erase_if(next, [](const Place& place) { return place.presences.empty(); });
    level = std::move(next);
  }
  std::ranges::sort(all, {}, &PathHistory::path);
  return all;
}

void PathSearch::add_children(const std::vector<Presence>& parents, std::string_view name,
                              std::vector<Presence>& to) const {
  for (const Presence& parent : parents) {
    const NameHistory* const names = history_.names(parent.inode);
    const auto* const spans = names == nullptr ? nullptr : names->find(name);
    if (spans != nullptr) add_spans(parent, *spans, to);
  }
}

void PathSearch::add_spans(const Presence& parent, std::span<const NameHistory::Span> spans,
                           std::vector<Presence>& to) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].inode == 0) continue;
    const Instant end = i + 1 < spans.size() ? spans[i + 1].from : kNever;
    const Presence one{spans[i].inode, std::max(spans[i].from, parent.from),
                       std::min(end, parent.end)};
    if (one.from.at < one.end.at) to.push_back(one);
  }
}

std::vector<Presence> PathSearch::existing(std::vector<Presence> some) const {
  std::vector<Presence> all;
  const auto add = [&](const Presence& one) {
    if (one.from.at >= one.end.at) return;
    if (!all.empty() && goes_on(all.back(), one) && !is_another(one)) {
      all.back().end = one.end;
    } else {
      all.push_back(one);
    }
  };
  for (const Presence& each : some) {
    const ObjectHistory* const history = history_.find(each.inode);
    if (history == nullptr) continue;
    const auto& states = history->states;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!states[i].object.exists) continue;
      const Instant from{states[i].from, states[i].time};
      const Instant end =
          i + 1 < states.size() ? Instant{states[i + 1].from, states[i + 1].time} : kNever;
      add({each.inode, std::max(each.from, from), std::min(each.end, end)});
    }
  }
  return all;
}

std::vector<Presence> PathSearch::joined(std::vector<Presence> some) const {
  if (rule_.every_write) return some;
  std::vector<Presence> all;
  for (const Presence& each : some) {
    if (!all.empty() && is_gap(all.back(), each)) {
      all.back().end = each.end;
    } else {
      all.push_back(each);
    }
  }
  return all;
}

bool PathSearch::is_gap(const Presence& before, const Presence& next) const {
  if (before.inode != next.inode || next.from.time.ns - before.end.time.ns >
                                        static_cast<std::uint64_t>(rule_.under_way_max.count())) {
    return false;
  }
  const auto& states = history_.find(before.inode)->states;
  const auto state_at = [&](SequenceNumber at) -> const ObjectState& {
    return std::prev(std::ranges::upper_bound(states, at, {}, &State::from))->object;
  };
  const ObjectState& was = state_at(SequenceNumber{before.end.at.value - 1});
  const ObjectState& is = state_at(next.from.at);
  const auto same = [&](const ObjectState& object) {
    return was.generation == object.generation && was.mode == object.mode &&
           was.changed == object.changed;
  };
  // Nor may it have been another one in between, with another name: where the entry of a directory
  // is the object (FAT, exFAT), a third one may have the time of the first.
  const auto first = std::ranges::lower_bound(states, before.end.at, {}, &State::from);
  const auto last = std::ranges::lower_bound(states, next.from.at, {}, &State::from);
  return same(is) && std::all_of(first, last, [&](const State& each) {
           return !each.object.exists || same(each.object);
         });
}

bool PathSearch::is_another(const Presence& one) const {
  const auto& states = history_.find(one.inode)->states;
  const auto at = std::ranges::lower_bound(states, one.from.at, {}, &State::from);
  // (Of an object that goes on there is a state that goes on, or one that follows another.)
  if (at == states.end() || at->from != one.from.at || at == states.begin()) return false;
  const ObjectState& before = std::prev(at)->object;
  return !before.exists || before.generation != at->object.generation ||
         (before.mode & LINUX_S_IFMT) != (at->object.mode & LINUX_S_IFMT);
}

Result<void> PathSearch::load(const std::vector<Presence>& some) {
  std::vector<ObjectNumber> numbers;
  std::ranges::transform(some, std::back_inserter(numbers), &Presence::inode);
  return history_.load(numbers);
}

PathHistory PathSearch::history_of(std::string path, const std::vector<Presence>& some) const {
  PathHistory all{std::move(path), {}};
  for (const Presence& each : some) {
    Incarnation one{.inode = each.inode,
                    .from = each.from,
                    .end = each.end,
                    .from_before = each.from.at == history_.stretch().first};
    one.versions = versions_of(*history_.find(each.inode), each.from, each.end.at, rule_);
    CHECK(!one.versions.empty());
    all.incarnations.push_back(std::move(one));
  }
  return all;
}

}  // namespace mariner::uvfs
