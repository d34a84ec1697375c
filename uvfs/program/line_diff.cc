#include "uvfs/program/line_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

namespace mariner::uvfs {
namespace {

constexpr std::ptrdiff_t kEffortMax = 2048;  // steps from each end, before a place is settled on
constexpr std::size_t kContextLines = 3;

using Ids = std::vector<std::uint32_t>;

// A place in both texts.
struct Point {
  std::ptrdiff_t x = 0;
  std::ptrdiff_t y = 0;
};

// Marks what is changed of two sequences of numbers.
class Comparison {
 public:
  Comparison(const Ids& before, const Ids& after)
      : before_(before),
        after_(after),
        removed_(before.size()),
        added_(after.size()),
        offset_(static_cast<std::ptrdiff_t>(after.size()) + 1),
        forward_(before.size() + after.size() + 3),
        backward_(before.size() + after.size() + 3) {}

  void run() {
    std::vector<std::pair<Point, Point>> left{{{}, {size(before_), size(after_)}}};
    // (No recursion: an adversary's texts would make it deep.)
    while (!left.empty()) {
      auto [begin, end] = left.back();
      left.pop_back();
      trim(begin, end);
      if (begin.x == end.x || begin.y == end.y) {
        for (auto x = begin.x; x < end.x; ++x) removed_[static_cast<std::size_t>(x)] = true;
        for (auto y = begin.y; y < end.y; ++y) added_[static_cast<std::size_t>(y)] = true;
        continue;
      }
      const Point middle = split(begin, end);
      left.push_back({begin, middle});
      left.push_back({middle, end});
    }
  }
  [[nodiscard]] const std::vector<bool>& removed() const { return removed_; }
  [[nodiscard]] const std::vector<bool>& added() const { return added_; }

 private:
  static std::ptrdiff_t size(const Ids& ids) { return static_cast<std::ptrdiff_t>(ids.size()); }
  [[nodiscard]] bool same(std::ptrdiff_t x, std::ptrdiff_t y) const {
    return before_[static_cast<std::size_t>(x)] == after_[static_cast<std::size_t>(y)];
  }
  void trim(Point& begin, Point& end) const {
    while (begin.x < end.x && begin.y < end.y && same(begin.x, begin.y)) ++begin.x, ++begin.y;
    while (begin.x < end.x && begin.y < end.y && same(end.x - 1, end.y - 1)) --end.x, --end.y;
  }
  std::ptrdiff_t& forward(std::ptrdiff_t diagonal) {
    return forward_[static_cast<std::size_t>(diagonal + offset_)];
  }
  std::ptrdiff_t& backward(std::ptrdiff_t diagonal) {
    return backward_[static_cast<std::size_t>(diagonal + offset_)];
  }

  // A place on the way from `begin` to `end`, which is neither of both: paths from both ends, over
  // ever more changes, meet there. Diagonals are x - y; what is kept of each is its furthest x.
  Point split(Point begin, Point end) {
    const std::ptrdiff_t lowest = begin.x - end.y;
    const std::ptrdiff_t highest = end.x - begin.y;
    const std::ptrdiff_t first = begin.x - begin.y;
    const std::ptrdiff_t last = end.x - end.y;
    const bool odd = ((first - last) & 1) != 0;
    forward(first) = begin.x;
    backward(last) = end.x;
    for (std::ptrdiff_t cost = 1;; ++cost) {
      for (auto k = from(first, cost, lowest); k <= std::min(first + cost, highest); k += 2) {
        const bool down = k == first - cost ||
                          (k != first + cost && reach(forward_, k - 1, lowest, highest, -1) <
                                                    reach(forward_, k + 1, lowest, highest, -1));
        std::ptrdiff_t x = down ? forward(k + 1) : forward(k - 1) + 1;
        while (x < end.x && x - k < end.y && same(x, x - k)) ++x;
        forward(k) = x;
        const bool meets = odd && k >= last - (cost - 1) && k <= last + (cost - 1);
        if (meets && x >= backward(k)) return {x, x - k};
      }
      for (auto k = from(last, cost, lowest); k <= std::min(last + cost, highest); k += 2) {
        const bool up = k == last + cost ||
                        (k != last - cost && reach(backward_, k - 1, lowest, highest, kFar) <
                                                 reach(backward_, k + 1, lowest, highest, kFar));
        std::ptrdiff_t x = up ? backward(k - 1) : backward(k + 1) - 1;
        while (x > begin.x && x - k > begin.y && same(x - 1, x - k - 1)) --x;
        backward(k) = x;
        const bool meets = !odd && k >= first - cost && k <= first + cost;
        if (meets && forward(k) >= x) return {x, x - k};
      }
      if (cost >= kEffortMax) return furthest(begin, end, cost);
    }
  }
  static constexpr std::ptrdiff_t kFar = std::ptrdiff_t{1} << 60;

  // The first diagonal of a step, no lower than there is one.
  static std::ptrdiff_t from(std::ptrdiff_t middle, std::ptrdiff_t cost, std::ptrdiff_t lowest) {
    const std::ptrdiff_t k = middle - cost;
    return k >= lowest ? k : lowest + ((lowest - k) & 1);
  }
  std::ptrdiff_t reach(const std::vector<std::ptrdiff_t>& of, std::ptrdiff_t diagonal,
                       std::ptrdiff_t lowest, std::ptrdiff_t highest, std::ptrdiff_t none) const {
    if (diagonal < lowest || diagonal > highest) return none;
    return of[static_cast<std::size_t>(diagonal + offset_)];
  }
  // Of the paths from the beginning, where the longest has come to.
  Point furthest(Point begin, Point end, std::ptrdiff_t cost) {
    const std::ptrdiff_t first = begin.x - begin.y;
    Point best = begin;
    for (auto k = from(first, cost, begin.x - end.y); k <= std::min(first + cost, end.x - begin.y);
         k += 2) {
      const Point point{forward(k), forward(k) - k};
      const bool inside = point.x <= end.x && point.y <= end.y && point.y >= begin.y;
      if (inside && point.x + point.y > best.x + best.y) best = point;
    }
    return best;
  }

  const Ids& before_;
  const Ids& after_;
  std::vector<bool> removed_;
  std::vector<bool> added_;
  const std::ptrdiff_t offset_;
  std::vector<std::ptrdiff_t> forward_;
  std::vector<std::ptrdiff_t> backward_;
};

// Lines as numbers that are the same where they are, without those that the other text lacks.
struct Numbered {
  Ids ids;
  std::vector<std::size_t> lines;  // where each of `ids` stands
};

class Numbering {
 public:
  Numbering(const std::vector<std::string_view>& before,
            const std::vector<std::string_view>& after) {
    std::unordered_map<std::string_view, std::uint32_t> known;
    std::vector<unsigned> in;  // 1: the first text has it; 2: the second
    const auto number = [&](const std::vector<std::string_view>& lines, unsigned text, Ids& to) {
      for (const std::string_view line : lines) {
        const auto [place, first] = known.emplace(line, static_cast<std::uint32_t>(in.size()));
        if (first) in.push_back(0);
        in[place->second] |= text;
        to.push_back(place->second);
      }
    };
    Ids all_before;
    Ids all_after;
    number(before, 1, all_before);
    number(after, 2, all_after);
    const auto keep = [&](const Ids& all, Numbered& to) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (in[all[i]] != 3) continue;
        to.ids.push_back(all[i]);
        to.lines.push_back(i);
      }
    };
    keep(all_before, before_);
    keep(all_after, after_);
  }
  [[nodiscard]] const Numbered& before() const { return before_; }
  [[nodiscard]] const Numbered& after() const { return after_; }

 private:
  Numbered before_;
  Numbered after_;
};

// True for lines that stay.
std::vector<bool> kept(std::size_t lines, const Numbered& of, const std::vector<bool>& changed) {
  std::vector<bool> stays(lines);
  for (std::size_t i = 0; i < of.lines.size(); ++i) stays[of.lines[i]] = !changed[i];
  return stays;
}

std::string range_text(std::size_t begin, std::size_t end) {
  // (Of none, the line before is named.)
  if (begin == end) return fmt::format("{},0", begin);
  return end - begin == 1 ? std::to_string(begin + 1)
                          : fmt::format("{},{}", begin + 1, end - begin);
}

void add_line(char sign, std::string_view line, std::string& to) {
  to += sign;
  to += line;
  if (!line.ends_with('\n')) to += "\n\\ No newline at end of file\n";
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::vector<LineChange> changed_lines(const Texts& texts) {
  const auto before = lines_of(texts.before);
  const auto after = lines_of(texts.after);
  const Numbering numbers(before, after);
  Comparison comparison(numbers.before().ids, numbers.after().ids);
  comparison.run();
  const auto old = kept(before.size(), numbers.before(), comparison.removed());
  const auto young = kept(after.size(), numbers.after(), comparison.added());
  std::vector<LineChange> changes;
  std::size_t x = 0;
  std::size_t y = 0;
  while (x < old.size() || y < young.size()) {
    if (x < old.size() && y < young.size() && old[x] && young[y]) {
      ++x, ++y;
      continue;
    }
    LineChange change{x, x, y, y};
    while (x < old.size() && !old[x]) ++x;
    while (y < young.size() && !young[y]) ++y;
    change.before_end = x;
    change.after_end = y;
    changes.push_back(change);
  }
  return changes;
}

std::string unified_diff(const Texts& texts, const DiffLabels& labels) {
  const auto changes = changed_lines(texts);
  if (changes.empty()) return {};
  const auto before = lines_of(texts.before);
  const auto after = lines_of(texts.after);
  std::string text = fmt::format("--- {}\n+++ {}\n", labels.before, labels.after);
  for (auto first = changes.begin(); first != changes.end();) {
    // Changes whose surroundings touch are one piece.
    auto end = first + 1;
    while (end != changes.end() && end->before - (end - 1)->before_end <= 2 * kContextLines) ++end;
    const std::size_t ahead = std::min(first->before, kContextLines);
    const std::size_t behind = std::min(before.size() - (end - 1)->before_end, kContextLines);
    text += fmt::format("@@ -{} +{} @@\n",
                        range_text(first->before - ahead, (end - 1)->before_end + behind),
                        range_text(first->after - ahead, (end - 1)->after_end + behind));
    std::size_t at = first->before - ahead;
    for (; first != end; ++first) {
      for (; at < first->before; ++at) add_line(' ', before[at], text);
      for (; at < first->before_end; ++at) add_line('-', before[at], text);
      for (auto i = first->after; i < first->after_end; ++i) add_line('+', after[i], text);
    }
    for (const std::size_t stop = at + behind; at < stop; ++at) add_line(' ', before[at], text);
  }
  return text;
}

}  // namespace mariner::uvfs
