#include "trm-multicast/stream_receiver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::trm {
namespace {

using Range = ByteRanges::Range;

// How fast patience is lost again, with each payload that came whole before it ran out.
constexpr int kPatienceShift = 8;
constexpr auto kProbeSizeLife = std::chrono::seconds(1);
// Of one message. It fits into a frame's header, whatever the numbers are.
constexpr std::size_t kMissingPartsMax = 2048;
static_assert(kMissingPartsMax <= kPartsMax);

// What a payload takes of memory: however small it is, a block.
std::uint64_t memory_of(std::uint64_t length) {
  return std::max<std::uint64_t>(length, kBlockBytes);
}

Range range_of(const SealedDatagram& datagram) {
  const std::uint32_t offset = datagram.header.offset;
  return {offset, offset + static_cast<std::uint32_t>(datagram.body.size())};
}

// Of the whole payload; leaves those of its blocks with it, for the log.
std::uint32_t crc_of(Payload& payload) {
  std::uint32_t crc = 0;
  const std::span<const std::byte> bytes = payload.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    const auto block = bytes.subspan(at, std::min<std::size_t>(kBlockBytes, bytes.size() - at));
    const std::uint32_t own = crc32c(block);
    if (block.size() == kBlockBytes) payload.set_block_crc(at / kBlockBytes, own);
    crc = at == 0 ? own : crc32c_combine(crc, own, block.size());
  }
  return crc;
}

Error out_of_order(const Reference& reference, Position expected) {
  return {ErrorCode::kProtocol,
          "a frame refers to position " + std::to_string(reference.start.value) + " (" +
              std::to_string(reference.length) + " bytes) of multicast stream " +
              std::to_string(reference.stream.value) + ", where " + std::to_string(expected.value) +
              " or what follows, within the window, is expected"};
}

}  // namespace

StreamReceiver::StreamReceiver(const OpenStream& stream, const Options& options)
    : stream_(stream),
      options_(options),
      sealer_(stream.key, stream.encrypted),
      patience_(options.patience_min) {}

// Frames may still wait for what is whole, behind those of other streams.
Result<void> StreamReceiver::admit(Position begin) {
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kProtocol, "a receiver of multicast stream " +
                                           std::to_string(stream_.stream.value) + " is admitted " +
                                           why};
  };
  if (begin < referred_)
    return refuse("from position " + std::to_string(begin.value) + ", which is over");
  for (const auto& [start, entry] : entries_) {
    if (entry.waiting == 0 || entry.whole()) continue;
    return refuse("that still waits for position " + std::to_string(start.value));
  }
  admitted_ = true;
  erase_if([](Position, const Entry& entry) { return entry.waiting == 0; });
  asking_.clear();
  through_ = reported_ = referred_ = begin;
  return {};
}

void StreamReceiver::dismiss() { admitted_ = false; }

StreamReceiver::Entries::iterator StreamReceiver::erase(Entries::iterator entry) {
  held_bytes_ -= memory_of(entry->second.payload.size());
  return entries_.erase(entry);
}

template <typename If>
void StreamReceiver::erase_if(If condition) {
  for (auto each = entries_.begin(); each != entries_.end();) {
    each = condition(each->first, each->second) ? erase(each) : std::next(each);
  }
}

// What is older is less likely to be referred to; what a frame refers to comes before all that may
// be.
bool StreamReceiver::make_room(Position start, std::uint32_t length, bool referred) {
  const std::uint64_t most = 2 * stream_.window_bytes;
  for (auto each = entries_.lower_bound(referred_); held_bytes_ + memory_of(length) > most;) {
    if (each == entries_.end() || (!referred && each->first > start)) return false;
    each = each->second.referred ? std::next(each) : erase(each);
  }
  return true;
}

bool StreamReceiver::is_free(Position start, std::uint32_t length) const {
  const auto next = entries_.lower_bound(start);
  if (next != entries_.end() && next->first.value < start.value + length) return false;
  if (next == entries_.begin()) return true;
  const auto& [before, entry] = *std::prev(next);
  return before.value + entry.payload.size() <= start.value;
}

bool StreamReceiver::open(const SealedDatagram& datagram, std::span<std::byte> to) {
  if (!sealer_.open(datagram, to)) {
    ++unsealed_;
    return false;
  }
  bytes_ += datagram.body.size();
  highest_ = std::max(highest_, Position{datagram.header.position().value + datagram.body.size()});
  return true;
}

StreamReceiver::Taken StreamReceiver::datagram(const SealedDatagram& datagram, Nanoseconds now) {
  CHECK(datagram.header.stream == stream_.stream);
  const DatagramHeader& header = datagram.header;
  if (header.kind == DatagramKind::kProbe) return probe(datagram, now);
  const auto found = entries_.find(header.start);
  if (found != entries_.end()) {
    if (found->second.payload.size() != header.length) return Taken::kOutside;
    return part_of(found->second, datagram);
  }
  // What comes after a frame has referred to something later is not for this receiver.
  if (!admitted_ || header.start < referred_ || !is_free(header.start, header.length)) {
    return Taken::kOutside;
  }
  return first_of(datagram, now);
}

// Positions of probes ascend: what was seen is not counted again.
StreamReceiver::Taken StreamReceiver::probe(const SealedDatagram& datagram, Nanoseconds now) {
  const Position position = datagram.header.position();
  if (position < probed_) return Taken::kDuplicate;
  scratch_.resize(datagram.body.size());
  if (!open(datagram, scratch_)) return Taken::kUnsealed;
  const auto bytes = static_cast<std::uint32_t>(datagram.body.size());
  probed_ = {position.value + bytes};
  ++probes_;
  if (bytes >= largest_probe_ || now - largest_probe_at_ >= kProbeSizeLife) {
    largest_probe_ = bytes;
    largest_probe_at_ = now;
  }
  return Taken::kProbe;
}

// Nothing is remembered of who has no key: the memory stays for the next one.
StreamReceiver::Taken StreamReceiver::first_of(const SealedDatagram& datagram, Nanoseconds now) {
  const DatagramHeader& header = datagram.header;
  if (spare_.size() != header.length) spare_ = Payload::allocate(header.length);
  const Range range = range_of(datagram);
  if (!open(datagram, spare_.bytes().subspan(range.begin, datagram.body.size()))) {
    return Taken::kUnsealed;
  }
  if (!make_room(header.start, header.length, false)) return Taken::kOutside;
  Entry& entry = entries_[header.start];
  held_bytes_ += memory_of(header.length);
  entry.payload = std::exchange(spare_, {});
  entry.here.add(range);
  entry.since = now;
  return Taken::kNew;
}

StreamReceiver::Taken StreamReceiver::part_of(Entry& entry, const SealedDatagram& datagram) {
  const Range range = range_of(datagram);
  if (entry.here.contains(range)) return Taken::kDuplicate;
  const std::span<std::byte> place =
      entry.payload.bytes().subspan(range.begin, datagram.body.size());
  if (!entry.here.overlaps(range)) {
    if (!open(datagram, place)) return Taken::kUnsealed;
  } else {
    // A repair has cut it elsewhere. What is here stays as it is.
    scratch_.resize(datagram.body.size());
    if (!open(datagram, scratch_)) return Taken::kUnsealed;
    for (const Range& gap : entry.here.gaps(range)) {
      std::memcpy(entry.payload.data() + gap.begin, scratch_.data() + (gap.begin - range.begin),
                  gap.end - gap.begin);
    }
  }
  // It was only late: it pays to wait longer.
  if (entry.asked.overlaps(range)) {
    patience_ = std::min(patience_ * 2, options_.patience_max);
  }
  entry.here.add(range);
  return Taken::kNew;
}

Result<void> StreamReceiver::refer(const Reference& reference, Nanoseconds now) {
  CHECK(reference.stream == stream_.stream);
  const auto found = entries_.find(reference.start);
  const bool known = found != entries_.end();
  if (reference.start < referred_ || (known && found->second.payload.size() != reference.length)) {
    return out_of_order(reference, referred_);
  }
  skip_to(reference.start);
  if (!known && (!is_free(reference.start, reference.length) ||
                 !make_room(reference.start, reference.length, true))) {
    return out_of_order(reference, referred_);
  }
  Entry& entry = known ? found->second : entries_[reference.start];
  if (!known) {
    held_bytes_ += memory_of(reference.length);
    entry.payload = Payload::allocate(reference.length);
    entry.since = now;
  }
  ++entry.waiting;
  if (std::exchange(entry.referred, true)) return {};
  if (entry.whole()) {
    patience_ -= (patience_ - options_.patience_min) / (1 << kPatienceShift);
  } else {
    asking_.push_back({now + patience_, reference.start});
  }
  return {};
}

Result<void> StreamReceiver::repair(const Repair& repair) {
  const Part& part = repair.part;
  const Range range{part.offset, part.offset + part.length};
  const auto found = entries_.find(part.start);
  // What was asked for may have come by multicast, and be over.
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  if (part.length == 0 || repair.bytes.length != part.length || range.end > entry.payload.size() ||
      range.end < range.begin || !entry.asked.contains(range)) {
    return Error{ErrorCode::kProtocol,
                 "bytes " + std::to_string(range.begin) + " to " + std::to_string(range.end) +
                     " of a payload of multicast stream " + std::to_string(stream_.stream.value) +
                     " are sent again that were not asked for"};
  }
  for (const Range& gap : entry.here.gaps(range)) {
    std::memcpy(entry.payload.data() + gap.begin,
                repair.bytes.bytes().data() + (gap.begin - range.begin), gap.end - gap.begin);
    repaired_bytes_ += gap.end - gap.begin;
  }
  entry.here.add(range);
  return {};
}

Result<Payload> StreamReceiver::complete(const Reference& reference) {
  const auto found_entry = entries_.find(reference.start);
  CHECK(found_entry != entries_.end());
  Entry& entry = found_entry->second;
  CHECK(entry.waiting > 0 && entry.payload.size() == reference.length);
  if (!entry.whole()) return Payload{};
  if (!entry.verified) {
    const std::uint32_t found = crc_of(entry.payload);
    if (found != reference.crc) {
      return Error{ErrorCode::kCorrupt, "a payload of multicast stream " +
                                            std::to_string(stream_.stream.value) + " has CRC " +
                                            std::to_string(found) + " where its header says " +
                                            std::to_string(reference.crc)};
    }
    entry.verified = true;
  }
  Payload payload = entry.payload;
  --entry.waiting;
  handed_out(reference);
  return payload;
}

// What stands between the last reference and this one nobody will refer to.
void StreamReceiver::skip_to(Position start) {
  auto each = entries_.upper_bound(referred_);
  while (each != entries_.end() && each->first < start) each = erase(each);
  referred_ = start;
}

// Another frame may refer to the same payload: it stays until one refers to what follows.
void StreamReceiver::handed_out(const Reference& reference) {
  while (entries_.begin()->first < reference.start) erase(entries_.begin());
  through_ = std::max(through_, reference.end());
}

std::optional<Missing> StreamReceiver::missing(Nanoseconds now) {
  Missing missing{stream_.stream, {}};
  while (!asking_.empty() && asking_.front().at <= now) {
    const auto found = entries_.find(asking_.front().start);
    // (Or it came, and is over.)
    if (found != entries_.end() && !ask_for(found->first, found->second, missing.parts)) break;
    asking_.pop_front();
  }
  if (missing.parts.empty()) return std::nullopt;
  return missing;
}

// False: the message is full.
bool StreamReceiver::ask_for(Position start, Entry& entry, std::vector<Part>& parts) {
  const auto length = static_cast<std::uint32_t>(entry.payload.size());
  for (const Range& gap : entry.here.gaps({0, length})) {
    if (entry.asked.contains(gap)) continue;
    if (parts.size() == kMissingPartsMax) return false;
    parts.push_back({start, gap.begin, gap.end - gap.begin});
    entry.asked.add(gap);
  }
  return true;
}

Report StreamReceiver::report(Nanoseconds now) const {
  const bool recent = now - largest_probe_at_ < kProbeSizeLife;
  return {.stream = stream_.stream,
          .through = through_,
          .highest = highest_,
          .bytes = bytes_,
          .clock = now,
          .probes = probes_,
          .largest_probe = recent ? largest_probe_ : 0,
          .unsealed = unsealed_};
}

void StreamReceiver::tidy(Nanoseconds now) {
  erase_if([&](Position, const Entry& entry) {
    return !entry.referred && now - entry.since >= options_.unreferenced_max;
  });
}

}  // namespace mariner::trm
