#include "trm-multicast/sender_hub.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "proto/check.h"

namespace mariner::trm {
namespace {

using std::chrono::duration;

// Of a stream, given to its socket at a time.
constexpr std::size_t kBatchesMax = 16;
constexpr std::size_t kSealedBytesMax = 128 << 10;
// What one buffer may have that the kernel cuts into datagrams.
constexpr std::size_t kBufferBytesMax = 65'000;
constexpr std::size_t kBufferDatagramsMax = 64;
// A socket that is full rests until about so much has left.
constexpr double kRestBytes = 192 << 10;
constexpr std::chrono::nanoseconds kRestMin = std::chrono::microseconds(50);
constexpr std::chrono::nanoseconds kRestMax = std::chrono::milliseconds(4);

}  // namespace

struct SenderHub::Stream {
  Stream(const Group& group_in, std::vector<PeerNumber> peers_in, const OpenStream& open,
         const Options& options)
      : group(group_in),
        peers(std::move(peers_in)),
        sender(open, options.stream),
        sealer(open.key, open.encrypted),
        standings(peers.size()) {}

  [[nodiscard]] std::optional<ReceiverIndex> index_of(PeerNumber peer) const {
    const auto found = std::ranges::lower_bound(peers, peer);
    if (found == peers.end() || *found != peer) return std::nullopt;
    return static_cast<ReceiverIndex>(found - peers.begin());
  }

  const Group group;
  const std::vector<PeerNumber> peers;  // ascending; the place is the receiver's index
  StreamSender sender;
  Sealer sealer;
  std::vector<Standing> standings;  // by index
  std::set<FlowNumber> flows;
  // Batches that are on their way to the socket, and may have to wait for it.
  struct Sealed {
    std::size_t begin = 0;
    std::size_t bytes = 0;
    std::size_t datagram_bytes = 0;
  };
  std::vector<std::byte> bytes;
  std::vector<Sealed> sealed;
  bool blocked = false;

  void seal(const StreamSender::Batch& batch);
  // What of them the socket takes now.
  void send(Wires& wires);
};

SenderHub::SenderHub(Wires& wires, const Options& options) : wires_(wires), options_(options) {}

SenderHub::~SenderHub() = default;

SenderHub::Stream* SenderHub::stream_of(FlowNumber flow) const {
  const auto found = flows_.find(flow);
  return found == flows_.end() ? nullptr : found->second;
}

// ---- flows

Result<void> SenderHub::begin_flow(FlowNumber flow, const Group& group,
                                   const std::vector<PeerNumber>& peers) {
  end_flow(flow);
  const std::set<PeerNumber> all(peers.begin(), peers.end());
  if (all.size() < 2 || all.size() > kReceiversMax) return {};
  const auto found = std::ranges::find_if(streams_, [&](const auto& each) {
    return each->group == group && std::ranges::equal(each->peers, all);
  });
  if (found == streams_.end() &&
      std::ranges::any_of(all, [&](PeerNumber each) { return streams_to(each) >= kStreamsMax; })) {
    return Error{ErrorCode::kLimit,
                 "multicast group " + group.address + ":" + std::to_string(group.port) +
                     ": a node takes part in " + std::to_string(kStreamsMax) +
                     " streams of this one already, which is the most; let volumes share a group"};
  }
  Stream* const stream = found == streams_.end() ? make_stream(group, all) : found->get();
  stream->flows.insert(flow);
  flows_[flow] = stream;
  return {};
}

std::size_t SenderHub::streams_to(PeerNumber peer) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      streams_, [&](const auto& each) { return each->index_of(peer).has_value(); }));
}

SenderHub::Stream* SenderHub::make_stream(const Group& group, const std::set<PeerNumber>& peers) {
  OpenStream open{.stream = {},
                  .group = group.address,
                  .port = group.port,
                  .key = {},
                  .encrypted = options_.encrypted,
                  .window_bytes = options_.stream.window_bytes};
  wires_.random(std::as_writable_bytes(std::span(&open.stream.value, 1)));
  wires_.random(open.key.key);
  wires_.random(open.key.salt);
  streams_.push_back(std::make_unique<Stream>(
      group, std::vector<PeerNumber>(peers.begin(), peers.end()), open, options_));
  Stream& stream = *streams_.back();
  for (const PeerNumber peer : stream.peers) {
    if (!frames_.contains(peer)) continue;
    wires_.tell(peer, open);
    stream.sender.connected(*stream.index_of(peer));
    stream.standings[*stream.index_of(peer)] = {.connected = true};
  }
  return &stream;
}

void SenderHub::end_flow(FlowNumber flow) {
  Stream* const stream = stream_of(flow);
  if (stream == nullptr) return;
  offer_gathered();
  stream->flows.erase(flow);
  flows_.erase(flow);
}

// A stream that nobody uses is over when every receiver has all of it.
void SenderHub::close_unused() {
  std::erase_if(streams_, [this](const std::unique_ptr<Stream>& stream) {
    if (!stream->flows.empty() || stream->sender.kept_bytes() > 0 || stream->blocked) return false;
    for (const PeerNumber peer : stream->peers) {
      const auto found = frames_.find(peer);
      if (found == frames_.end()) continue;
      found->second.stream_gone(&stream->sender);
      wires_.tell(peer, CloseStream{stream->sender.stream().stream});
    }
    return true;
  });
}

// ---- peers

void SenderHub::connected(PeerNumber peer) {
  CHECK(frames_.try_emplace(peer).second);
  ways_[peer] = {};
  for (const auto& stream : streams_) {
    const auto index = stream->index_of(peer);
    if (!index) continue;
    wires_.tell(peer, stream->sender.stream());
    stream->sender.connected(*index);
    stream->standings[*index] = {.connected = true};
  }
}

void SenderHub::disconnected(PeerNumber peer) {
  if (gathered_) {
    std::erase_if(gathered_->frames,
                  [&](const Gathered::Frame& frame) { return frame.to == peer; });
  }
  frames_.erase(peer);
  ways_.erase(peer);
  for (const auto& stream : streams_) {
    const auto index = stream->index_of(peer);
    if (!index) continue;
    stream->sender.disconnected(*index);
    stream->standings[*index] = {};
  }
}

// ---- frames

void SenderHub::send(PeerNumber to, FlowNumber flow, std::string header, PayloadSlice payload) {
  if (!frames_.contains(to)) return;
  if (payload.length < options_.stream.payload_bytes_min || stream_of(flow) == nullptr) {
    return send(to, std::move(header), std::move(payload));
  }
  const bool same = gathered_ && gathered_->flow == flow &&
                    gathered_->payload.payload.data() == payload.payload.data() &&
                    gathered_->payload.offset == payload.offset &&
                    gathered_->payload.length == payload.length;
  if (!same) {
    offer_gathered();
    gathered_.emplace(Gathered{flow, std::move(payload), {}});
  }
  gathered_->frames.push_back({to, std::move(header)});
}

void SenderHub::send(PeerNumber to, std::string header, PayloadSlice payload) {
  const auto found = frames_.find(to);
  if (found == frames_.end()) return;
  offer_gathered();
  found->second.push({std::move(header), std::move(payload)}, nullptr, 0);
}

void SenderHub::offer_gathered() {
  if (!gathered_) return;
  Gathered gathered = std::move(*gathered_);
  gathered_.reset();
  Stream& stream = *stream_of(gathered.flow);
  ReceiverSet receivers = 0;
  for (const Gathered::Frame& frame : gathered.frames) {
    if (const auto index = stream.index_of(frame.to)) receivers |= ReceiverSet{1} << *index;
  }
  const auto reference = stream.sender.offer(receivers, gathered.payload);
  for (Gathered::Frame& frame : gathered.frames) {
    const auto index = stream.index_of(frame.to);
    const bool refers = reference && index;
    frames_.at(frame.to).push(
        {std::move(frame.header), gathered.payload, refers ? reference : std::nullopt},
        refers ? &stream.sender : nullptr, index.value_or(0));
  }
}

// ---- going out

void SenderHub::Stream::seal(const StreamSender::Batch& batch) {
  const std::span<const std::byte> from = batch.bytes.bytes();
  const std::size_t body = std::min<std::size_t>(batch.body_bytes, from.size());
  const std::size_t datagram = body + kDatagramOverheadBytes;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + (from.size() + body - 1) / body * datagram);
  std::span<std::byte> to = std::span(bytes).subspan(begin);
  for (std::size_t at = 0; at < from.size(); at += body, to = to.subspan(datagram)) {
    const std::size_t place = std::min(at, from.size() - body);
    DatagramHeader header = batch.first;
    header.offset += static_cast<std::uint32_t>(place);
    sealer.seal(header, from.subspan(place, body), to.first(datagram));
  }
  const std::size_t length = bytes.size() - begin;
  // To be cut where the one before is cut: one buffer.
  if (!sealed.empty() && sealed.back().datagram_bytes == datagram &&
      sealed.back().bytes + length <= kBufferBytesMax &&
      sealed.back().bytes + length <= kBufferDatagramsMax * datagram) {
    sealed.back().bytes += length;
  } else {
    sealed.push_back({begin, length, datagram});
  }
}

void SenderHub::Stream::send(Wires& wires) {
  std::array<DatagramBatch, kBatchesMax> batches;
  const std::size_t count = sealed.size();
  for (std::size_t i = 0; i < count; ++i) {
    batches[i] = {std::span(bytes).subspan(sealed[i].begin, sealed[i].bytes),
                  sealed[i].datagram_bytes};
  }
  const std::size_t sent = wires.multicast_all(group, std::span(batches).first(count));
  sealed.erase(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(sent));
  blocked = !sealed.empty();
  if (!blocked) return bytes.clear();
  // Of the first one a part may have gone.
  const std::size_t left = batches[sent].bytes.size();
  sealed.front().begin += sealed.front().bytes - left;
  sealed.front().bytes = left;
}

void SenderHub::pump(Stream& stream, Nanoseconds now) {
  while (!stream.blocked) {
    while (stream.sealed.size() < kBatchesMax && stream.bytes.size() < kSealedBytesMax) {
      const auto batch = stream.sender.next(now);
      if (!batch) break;
      if (batch->first.kind == DatagramKind::kPayload) {
        counters_.multicast_bytes += batch->bytes.length;
      }
      stream.seal(*batch);
    }
    if (stream.sealed.empty()) break;
    stream.send(wires_);
  }
  carry_out(stream, now);
}

void SenderHub::carry_out(Stream& stream, Nanoseconds now) {
  for (const StreamSender::Told& told : stream.sender.take_told()) {
    const PeerNumber peer = stream.peers[told.receiver];
    if (!frames_.contains(peer)) continue;
    if (const auto* repair = std::get_if<Repair>(&told.message)) {
      PeerCounters& counters = counters_.peers[peer];
      ++counters.repairs;
      counters.repaired_bytes += repair->part.length;
      hand_over(peer, repair->part.length);
    } else if (std::holds_alternative<OpenStream>(told.message)) {
      // Asked again, whether it can listen.
      stream.standings[told.receiver].why.reset();
      stream.standings[told.receiver].reason.clear();
    }
    wires_.tell(peer, told.message);
  }
  for (StreamSender::Change& change : stream.sender.take_changes()) {
    const PeerNumber peer = stream.peers[change.receiver];
    note(stream.standings[change.receiver], change, now);
    if (!change.admitted) {
      ++counters_.peers[peer].dismissals[static_cast<std::size_t>(change.why)];
    }
    wires_.changed({peer, stream.group, change.admitted, change.why, std::move(change.reason)});
  }
}

void SenderHub::note(Standing& standing, const StreamSender::Change& change, Nanoseconds now) {
  // (It may have come back since.)
  if (!change.admitted && change.why == Dismissal::kDisconnected) return;
  standing.admitted = change.admitted;
  if (change.admitted) {
    standing.out_since.reset();
    standing.why.reset();
    standing.reason.clear();
  } else {
    if (!standing.out_since) standing.out_since = now;
    standing.why = change.why;
    standing.reason = change.reason;
  }
}

// Frames do not overtake what they refer to: those of who is to get a batch that waits for the
// socket wait, too.
void SenderHub::flush_frames() {
  std::set<PeerNumber> wait;
  for (const auto& stream : streams_) {
    if (stream->blocked) wait.insert(stream->peers.begin(), stream->peers.end());
  }
  for (auto& [peer, frames] : frames_) {
    if (wait.contains(peer)) continue;
    frames.flush([&, to = peer](OutgoingFrames::Frame frame) {
      if (!frame.reference) {
        counters_.carried_bytes += frame.payload.length;
        hand_over(to, frame.payload.length);
      }
      wires_.frame(to, std::move(frame.header), std::move(frame.payload), frame.reference);
    });
  }
}

// What connections take of the way out, multicast is to leave to them.
void SenderHub::note_drained() {
  std::uint64_t all = 0;
  for (auto& [peer, way] : ways_) {
    const std::uint64_t left = std::min(way.given, wires_.queued_bytes(peer));
    const std::uint64_t drained = std::max(way.drained, way.given - left);
    if (drained == way.drained) continue;
    all += drained - way.drained;
    way.drained = drained;
    for (const auto& stream : streams_) {
      if (const auto index = stream->index_of(peer)) stream->sender.moved(*index);
    }
  }
  if (all == 0) return;
  // Each of those that send leaves its part.
  const auto busy = static_cast<std::uint64_t>(std::ranges::count_if(
      streams_, [](const auto& each) { return each->sender.kept_bytes() > 0; }));
  for (const auto& stream : streams_) {
    stream->sender.share(all / std::max<std::uint64_t>(busy, 1));
  }
}

void SenderHub::flush(Nanoseconds now) {
  offer_gathered();
  note_drained();
  for (const auto& stream : streams_) pump(*stream, now);
  flush_frames();
}

void SenderHub::writable(const Group& group, Nanoseconds now) {
  // Streams that share the socket take turns at being the first.
  ++turn_;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = *streams_[(turn_ + i) % streams_.size()];
    if (stream.group != group || !stream.blocked) continue;
    stream.send(wires_);
    if (stream.blocked) break;
  }
  // Before the socket is filled again: a stream that always has more would hold them up for ever.
  flush_frames();
  flush(now);
}

SenderHub::Nanoseconds SenderHub::rest(const Group& group, Nanoseconds now) {
  double rate = 0;
  for (const auto& stream : streams_) {
    if (stream->group == group) {
      rate = std::max(rate, stream->sender.rate().bytes_per_second(now));
    }
  }
  if (rate <= 0) return kRestMin;
  const duration<double> rest(kRestBytes / rate);
  return std::clamp(std::chrono::duration_cast<Nanoseconds>(rest), kRestMin, kRestMax);
}

Result<void> SenderHub::received(PeerNumber from, const FromReceiver& message, Nanoseconds now) {
  const StreamId id = trm::stream_of(message);
  const auto found = std::ranges::find_if(
      streams_, [&](const auto& each) { return each->sender.stream().stream == id; });
  // It was closed meanwhile.
  if (found == streams_.end()) return {};
  const auto index = (*found)->index_of(from);
  if (!index) {
    return Error{ErrorCode::kProtocol, "a node speaks of multicast stream " +
                                           std::to_string(id.value) + ", which is not for it"};
  }
  if (const auto* cannot = std::get_if<CannotListen>(&message)) {
    // (Which changes nothing if it said the same before.)
    Standing& standing = (*found)->standings[*index];
    standing.why = Dismissal::kCannotListen;
    standing.reason = std::string(describe(Dismissal::kCannotListen)) + ": " + cannot->reason;
  }
  return (*found)->sender.received(*index, message, now);
}

void SenderHub::tick(Nanoseconds now) {
  for (const auto& stream : streams_) {
    stream->sender.tick(now);
    for (Standing& each : stream->standings) {
      if (each.connected && !each.admitted && !each.out_since) each.out_since = now;
    }
  }
  close_unused();
  flush(now);
}

std::optional<SenderHub::Nanoseconds> SenderHub::next_at(Nanoseconds now) {
  std::optional<Nanoseconds> first;
  for (const auto& stream : streams_) {
    if (stream->blocked) continue;
    const auto at = stream->sender.next_at(now);
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

std::uint64_t SenderHub::waiting_bytes(PeerNumber peer) const {
  const auto found = frames_.find(peer);
  return found == frames_.end() ? 0 : found->second.waiting_bytes();
}

std::uint64_t SenderHub::repaired_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [peer, counters] : counters_.peers) bytes += counters.repaired_bytes;
  return bytes;
}

bool SenderHub::unused(PeerNumber peer) const {
  const auto found = frames_.find(peer);
  return streams_.empty() && !gathered_ && (found == frames_.end() || found->second.empty());
}

std::optional<SenderHub::Standing> SenderHub::standing(FlowNumber flow, PeerNumber peer) const {
  const Stream* const stream = stream_of(flow);
  const auto index = stream == nullptr ? std::nullopt : stream->index_of(peer);
  if (!index) return std::nullopt;
  Standing standing = stream->standings[*index];
  standing.alone = standing.admitted && std::popcount(stream->sender.admitted()) == 1;
  return standing;
}

}  // namespace mariner::trm
