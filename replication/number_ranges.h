// A set of sequence numbers, kept as ranges: what it costs grows with the gaps, not with the
// numbers.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "proto/check.h"
#include "proto/units.h"
#include "replication/cluster_messages.h"

namespace mariner::replication {

class NumberRanges {
 public:
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  // Ascending, and none follows another without a gap.
  [[nodiscard]] std::vector<SequenceRange> list() const {
    std::vector<SequenceRange> out;
    out.reserve(ranges_.size());
    for (const auto& [first, last] : ranges_) out.push_back({first, last});
    return out;
  }
  [[nodiscard]] bool contains(SequenceRange numbers) const {
    const auto found = at_or_before(numbers.first);
    return found != ranges_.end() && found->second >= numbers.last;
  }
  [[nodiscard]] bool intersects(SequenceRange numbers) const {
    const auto found = at_or_before(numbers.last);
    return found != ranges_.end() && found->second >= numbers.first;
  }

  // None of them is in it.
  void add(SequenceRange numbers) {
    CHECK(numbers.first <= numbers.last && !intersects(numbers));
    const auto next = ranges_.upper_bound(numbers.last);
    if (next != ranges_.end() && next->first == numbers.last.next()) {
      numbers.last = next->second;
      ranges_.erase(next);
    }
    const auto before = at_or_before(numbers.first);
    if (before != ranges_.end() && before->second.next() == numbers.first) {
      ranges_.at(before->first) = numbers.last;
    } else {
      ranges_.emplace(numbers.first, numbers.last);
    }
  }
  // All of them are in it.
  void remove(SequenceRange numbers) {
    CHECK(contains(numbers));
    const auto [first, last] = *at_or_before(numbers.first);
    ranges_.erase(first);
    if (first < numbers.first) ranges_.emplace(first, SequenceNumber{numbers.first.value - 1});
    if (last > numbers.last) ranges_.emplace(numbers.last.next(), last);
  }
  // Takes out the range that begins with `first`: its last number. Nothing: none does.
  std::optional<SequenceNumber> take(SequenceNumber first) {
    const auto found = ranges_.find(first);
    if (found == ranges_.end()) return std::nullopt;
    const SequenceNumber last = found->second;
    ranges_.erase(found);
    return last;
  }

 private:
  using Ranges = std::map<SequenceNumber, SequenceNumber>;  // first to last
  [[nodiscard]] Ranges::const_iterator at_or_before(SequenceNumber number) const {
    const auto next = ranges_.upper_bound(number);
    return next == ranges_.begin() ? ranges_.end() : std::prev(next);
  }

  Ranges ranges_;
};

}  // namespace mariner::replication
