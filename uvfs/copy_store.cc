#include "uvfs/copy_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::FsBlock;
using ifsck::JournalBlock;

namespace {

// A difference is made of stretches: where it begins, how long it is, and its bytes.
using Short = std::uint16_t;
constexpr std::size_t kStretchHead = 2 * sizeof(Short);
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kBlockBytesMax = 64u << 10;

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, kWord);
  return word;
}

}  // namespace

std::span<std::byte> CopyStore::room(std::size_t bytes, Copy& copy) {
  if (used_ + bytes > kPieceBytes) {
    pieces_.push_back(std::make_unique<Piece>());
    used_ = 0;
  }
  copy.piece = static_cast<std::uint32_t>(pieces_.size() - 1);
  copy.at = static_cast<std::uint32_t>(used_);
  copy.bytes = static_cast<std::uint32_t>(bytes);
  used_ += bytes;
  bytes_ += bytes;
  return std::span(*pieces_.back()).subspan(copy.at, bytes);
}

std::span<const std::byte> CopyStore::bytes_of(const Copy& copy) const {
  return std::span(std::as_const(*pieces_[copy.piece])).subspan(copy.at, copy.bytes);
}

bool CopyStore::tell_difference(std::span<const std::byte> before, std::span<const std::byte> now) {
  difference_.clear();
  const std::size_t most = now.size() / 2;
  for (std::size_t at = 0; at < now.size();) {
    if (word_at(before, at) == word_at(now, at)) {
      at += kWord;
      continue;
    }
    std::size_t end = at + kWord;
    // (Two words that are the same between others cost less than another head and its test.)
    for (std::size_t same = 0; end + same < now.size() && same <= 2 * kWord;) {
      if (word_at(before, end + same) == word_at(now, end + same)) {
        same += kWord;
      } else {
        end += same + kWord;
        same = 0;
      }
    }
    if (difference_.size() + kStretchHead + (end - at) > most) return false;
    const Short head[] = {static_cast<Short>(at), static_cast<Short>(end - at)};
    const auto bytes = std::as_bytes(std::span(head));
    difference_.insert(difference_.end(), bytes.begin(), bytes.end());
    const auto stretch = now.subspan(at, end - at);
    difference_.insert(difference_.end(), stretch.begin(), stretch.end());
    at = end;
  }
  return true;
}

void CopyStore::apply(std::span<const std::byte> difference, std::span<std::byte> to) {
  while (!difference.empty()) {
    Short head[2];
    std::memcpy(head, difference.data(), sizeof head);
    std::memcpy(to.data() + head[0], difference.data() + kStretchHead, head[1]);
    difference = difference.subspan(kStretchHead + head[1]);
  }
}

void CopyStore::put(JournalBlock from, SequenceNumber since, FsBlock to,
                    std::span<const std::byte> bytes) {
  CHECK(bytes.size() % kWord == 0 && bytes.size() <= kBlockBytesMax);
  auto& place = places_[from];
  if (!place.empty() && place.back().first == since) place.pop_back();
  if (bytes_ >= kBytesMax) {
    // What is known of the place from before holds no more.
    if (!place.empty()) place.emplace_back(since, kNone);
    return;
  }
  Last& last = last_[to];
  Copy copy;
  const bool alone = last.copy == kNone || copies_[last.copy].depth == kDepthMax ||
                     !tell_difference(last.bytes, bytes);
  if (!alone) {
    copy.before = last.copy;
    copy.first = copies_[last.copy].first;
    copy.depth = copies_[last.copy].depth + 1;
  } else {
    copy.first = static_cast<Index>(copies_.size());
  }
  const std::span<const std::byte> kept = alone ? bytes : std::span(std::as_const(difference_));
  std::ranges::copy(kept, room(kept.size(), copy).begin());
  last.bytes.assign(bytes.begin(), bytes.end());
  last.copy = static_cast<Index>(copies_.size());
  copies_.push_back(copy);
  place.emplace_back(since, last.copy);
}

CopyStore::Index CopyStore::find(JournalBlock from, SequenceNumber at) const {
  const auto place = places_.find(from);
  if (place == places_.end()) return kNone;
  const auto behind =
      std::ranges::upper_bound(place->second, at, {}, [](const auto& each) { return each.first; });
  return behind == place->second.begin() ? kNone : std::prev(behind)->second;
}

bool CopyStore::get(JournalBlock from, SequenceNumber at, std::span<std::byte> to) {
  const Index wanted = find(from, at);
  if (wanted == kNone) return false;
  const Index first = copies_[wanted].first;
  if (made_.size() >= kMadeMax && !made_.contains(first)) made_.clear();
  Last& made = made_[first];
  if (made.copy == kNone || copies_[made.copy].depth > copies_[wanted].depth) {
    const auto whole = bytes_of(copies_[first]);
    made.bytes.assign(whole.begin(), whole.end());
    made.copy = first;
  }
  // From it each is told by the one before.
  std::array<Index, kDepthMax + 1> chain{};
  std::size_t length = 0;
  for (Index each = wanted; each != made.copy; each = copies_[each].before) chain[length++] = each;
  while (length-- > 0) apply(bytes_of(copies_[chain[length]]), made.bytes);
  made.copy = wanted;
  CHECK(made.bytes.size() == to.size());
  std::ranges::copy(made.bytes, to.begin());
  return true;
}

}  // namespace mariner::uvfs
