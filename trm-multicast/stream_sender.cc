#include "trm-multicast/stream_sender.h"

#include <algorithm>
#include <bit>

#include "proto/check.h"
#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

using std::chrono::duration;

// What one system call sends as one buffer that is cut into datagrams (UDP segmentation offload):
// so many of them, and so many bytes.
constexpr std::uint32_t kBatchDatagramsMax = 64;
constexpr std::uint32_t kBatchBytesMax = 65'000;
// A pause of the sender's own is made good for so long.
constexpr auto kCatchUpTime = std::chrono::milliseconds(5);
// What connections take of the pace, at most; what is left to them of it when they take more; and
// how much of it says that the stream could have had more.
constexpr double kSharedMax = 0.75;
constexpr auto kSharedTime = std::chrono::milliseconds(100);
constexpr double kSharedShown = 0.1;
// Who is paced sleeps until so much time's worth may be sent.
constexpr auto kQuantum = std::chrono::microseconds(500);
// So many payloads that are over are left between others.
constexpr std::size_t kOverMax = 1024;
// Probes come more slowly when everybody is admitted.
constexpr int kCalmIntervals = 2;

constexpr ReceiverSet bit(ReceiverIndex receiver) { return ReceiverSet{1} << receiver; }

template <typename Do>
void for_each(ReceiverSet set, Do work) {
  for (; set != 0; set &= set - 1) {
    work(static_cast<ReceiverIndex>(std::countr_zero(set)));
  }
}

Error nonsense(const OpenStream& stream, const std::string& what) {
  return {ErrorCode::kProtocol,
          "a receiver of multicast stream " + std::to_string(stream.stream.value) + " " + what};
}

}  // namespace

StreamSender::StreamSender(const OpenStream& stream, const Options& options)
    : stream_(stream),
      options_(options),
      rate_(options.rate),
      body_bytes_(options.body_bytes_max),
      tokens_(options.burst_bytes) {
  CHECK(options.body_bytes_safe >= 1 && options.body_bytes_safe <= options.body_bytes_max);
  CHECK(options.body_bytes_max + kDatagramOverheadBytes <= kDatagramBytesMax);
  CHECK(stream.window_bytes == options.window_bytes);
}

// ---- payloads

StreamSender::Item* StreamSender::find(Position start) {
  const auto found = std::ranges::lower_bound(items_, start, {}, &Item::start);
  return found == items_.end() || found->start != start ? nullptr : &*found;
}

const StreamSender::Item* StreamSender::find(Position start) const {
  return const_cast<StreamSender*>(this)->find(start);
}

std::optional<Reference> StreamSender::offer(ReceiverSet receivers, const PayloadSlice& payload) {
  receivers &= admitted_;
  if (std::popcount(receivers) < 2 || payload.length < options_.payload_bytes_min ||
      payload.length > options_.window_bytes || payload.length > kPayloadBytesMax ||
      queued_bytes_ + payload.length > options_.queued_bytes_max) {
    return std::nullopt;
  }
  const Position start = next_position_;
  next_position_.value += payload.length;
  items_.push_back({start, payload, static_cast<std::uint32_t>(payload.length), 0, receivers});
  queued_bytes_ += payload.length;
  kept_bytes_ += payload.length;
  for_each(receivers, [&](ReceiverIndex each) { receivers_[each].outstanding.push_back(start); });
  return Reference{stream_.stream, start, static_cast<std::uint32_t>(payload.length),
                   payload_crc32c(payload)};
}

StreamSender::Way StreamSender::way(ReceiverIndex receiver, const Reference& reference) const {
  const Item* const item = find(reference.start);
  if (item == nullptr || (item->receivers & bit(receiver)) == 0) return Way::kCarry;
  return item->is_sent() ? Way::kReference : Way::kWait;
}

void StreamSender::forget(Item& item, ReceiverIndex receiver) {
  item.receivers &= ~bit(receiver);
  release(item);
}

void StreamSender::release(Item& item) {
  if (!item.is_over() || item.payload.payload.size() == 0) return;
  item.payload = {};
  kept_bytes_ -= item.length;
  ++over_;
}

void StreamSender::drop_over() {
  for (; !items_.empty() && items_.front().is_over(); --unsent_, --over_) items_.pop_front();
  // Somebody does not say what it has.
  if (over_ < kOverMax || over_ < items_.size() / 2) return;
  std::erase_if(items_, [](const Item& item) { return item.is_over(); });
  unsent_ -= std::exchange(over_, 0);
}

// What nobody is to get by multicast any more is not sent.
void StreamSender::skip_unwanted() {
  for (; unsent_ < items_.size(); ++unsent_) {
    Item& item = items_[unsent_];
    if (item.receivers == 0 && !item.is_sent()) {
      queued_bytes_ -= item.length - item.sent;
      item.sent = item.length;
      release(item);
    }
    if (!item.is_sent()) break;
  }
  drop_over();
}

// ---- pace

bool StreamSender::window_open(Position end) const {
  bool open = true;
  for_each(admitted_, [&](ReceiverIndex each) {
    const auto& outstanding = receivers_[each].outstanding;
    // What it lacks first may be something later, that others were not to get.
    open &= outstanding.empty() || end.value <= outstanding.front().value + options_.window_bytes;
  });
  return open;
}

void StreamSender::refill(Nanoseconds now) {
  const double rate = rate_.bytes_per_second(now);
  const double most =
      std::max<double>(options_.burst_bytes, rate * duration<double>(kCatchUpTime).count());
  const double comes = rate * duration<double>(now - refilled_).count();
  const double taken = std::min(shared_, kSharedMax * comes);
  if (taken > kSharedShown * comes) held_up(RateControl::Load::kWindow);
  shared_ = std::min(shared_ - taken, rate * duration<double>(kSharedTime).count());
  tokens_ = std::min(most, tokens_ + comes - taken);
  refilled_ = now;
}

void StreamSender::held_up(RateControl::Load by) {
  for_each(admitted_, [&](ReceiverIndex each) {
    receivers_[each].load = std::max(receivers_[each].load, by);
  });
}

// All datagrams of a payload are of one size, so that those of several go as one buffer.
StreamSender::Batch StreamSender::batch_of(Item& item) {
  const std::uint32_t left = item.length - item.sent;
  const std::uint32_t datagrams_left = (left + body_bytes_ - 1) / body_bytes_;
  const std::uint32_t body = (left + datagrams_left - 1) / datagrams_left;
  const auto overhead = static_cast<std::uint32_t>(kDatagramOverheadBytes);
  const std::uint32_t datagrams =
      std::clamp(kBatchBytesMax / (body + overhead), 1u, kBatchDatagramsMax);
  const std::uint32_t bytes = std::min(left, body * datagrams);
  const Batch batch{{.stream = stream_.stream,
                     .kind = DatagramKind::kPayload,
                     .start = item.start,
                     .length = item.length,
                     .offset = item.sent},
                    {item.payload.payload, item.payload.offset + item.sent, bytes},
                    body};
  item.sent += bytes;
  return batch;
}

std::optional<StreamSender::Batch> StreamSender::next(Nanoseconds now) {
  refill(now);
  std::optional<Batch> batch;
  if (!probes_.empty()) {
    batch = probes_.front();
    probes_.pop_front();
  } else {
    skip_unwanted();
    if (unsent_ == items_.size()) {
      held_up(RateControl::Load::kIdle);
      return std::nullopt;
    }
    Item& item = items_[unsent_];
    if (!window_open(item.end())) {
      held_up(RateControl::Load::kWindow);
      return std::nullopt;
    }
    if (tokens_ <= 0) return std::nullopt;
    batch = batch_of(item);
    queued_bytes_ -= batch->bytes.length;
    if (item.is_sent()) ++unsent_;
  }
  tokens_ -= static_cast<double>(batch->bytes.length);
  bytes_sent_ += batch->bytes.length;
  return batch;
}

std::optional<StreamSender::Nanoseconds> StreamSender::next_at(Nanoseconds now) {
  if (!probes_.empty()) return now;
  if (unsent_ == items_.size() || !window_open(items_[unsent_].end())) return std::nullopt;
  refill(now);
  if (tokens_ > 0) return now;
  // Not for a datagram at a time: waking up costs more than sending one.
  const double rate = rate_.bytes_per_second(now);
  const double some = std::min(rate * duration<double>(kQuantum).count(),
                               static_cast<double>(options_.burst_bytes) / 2);
  const duration<double> wait((some - tokens_) / rate);
  return now + std::chrono::duration_cast<Nanoseconds>(wait) + std::chrono::microseconds(1);
}

// ---- receivers

void StreamSender::connected(ReceiverIndex receiver) {
  CHECK(receiver < kReceiversMax && !receivers_[receiver].connected);
  receivers_[receiver].connected = true;
  receivers_[receiver].membership = Membership(options_.membership);
}

void StreamSender::disconnected(ReceiverIndex receiver) {
  if (!receivers_[receiver].connected) return;
  receivers_[receiver] = {};
  rate_.remove(receiver);
  // What was not told yet is not told any more: it would be of the next connection.
  std::erase_if(told_, [&](const Told& each) { return each.receiver == receiver; });
  const bool untold = std::erase_if(changes_, [&](const Change& each) {
                        return each.receiver == receiver && each.admitted;
                      }) > 0;
  if ((admitted_ & bit(receiver)) != 0) {
    admitted_ &= ~bit(receiver);
    if (!untold) {
      changes_.push_back({receiver, false, Dismissal::kDisconnected,
                          std::string(describe(Dismissal::kDisconnected))});
    }
    fit_bodies();
  }
  for (Item& item : items_) forget(item, receiver);
  skip_unwanted();
}

void StreamSender::admit(ReceiverIndex receiver, Nanoseconds now) {
  admitted_ |= bit(receiver);
  receivers_[receiver].membership.admitted(bytes_sent_, now);
  rate_.add(receiver);
  told_.push_back({receiver, Admit{stream_.stream, next_position_}});
  changes_.push_back({receiver, true, {}, {}});
  fit_bodies();
}

// What was sent to it already it may still ask for.
void StreamSender::dismiss(ReceiverIndex receiver, Verdict verdict, Nanoseconds now) {
  admitted_ &= ~bit(receiver);
  Receiver& one = receivers_[receiver];
  one.membership.dismissed(verdict.punished, now);
  rate_.remove(receiver);
  std::erase_if(one.outstanding, [&](Position start) {
    Item* const item = find(start);
    if (item == nullptr || item->is_sent()) return false;
    forget(*item, receiver);
    return true;
  });
  told_.push_back({receiver, Dismiss{stream_.stream}});
  changes_.push_back({receiver, false, verdict.why, std::move(verdict.reason)});
  skip_unwanted();
  fit_bodies();
}

void StreamSender::judge(ReceiverIndex receiver, Nanoseconds now) {
  Receiver& one = receivers_[receiver];
  if (!one.connected) return;
  if ((admitted_ & bit(receiver)) == 0) {
    if (!one.outstanding.empty()) return;
    if (one.refuses) {
      if (one.membership.may_come_back(now)) open_again(receiver);
    } else if (one.membership.ready(now)) {
      admit(receiver, now);
    }
    return;
  }
  const bool lags = rate_.lags(receiver, now);
  const Item* const oldest = one.outstanding.empty() ? nullptr : find(one.outstanding.front());
  const auto fault = one.membership.fault({.sent = bytes_sent_,
                                           .lacks = oldest != nullptr && oldest->is_sent(),
                                           .moves = std::exchange(one.moved, false),
                                           .lags = lags},
                                          now);
  if (fault) dismiss(receiver, {*fault, lags, std::string(describe(*fault))}, now);
}

// It may be able to by now: an interface has come up, a limit was raised.
void StreamSender::refused(ReceiverIndex receiver, const std::string& reason, Nanoseconds now) {
  Receiver& one = receivers_[receiver];
  const std::string text = std::string(describe(Dismissal::kCannotListen)) + ": " + reason;
  const bool known = one.refusal == reason;
  one.refuses = true;
  one.refusal = reason;
  if ((admitted_ & bit(receiver)) != 0) {
    return dismiss(receiver, {Dismissal::kCannotListen, true, text}, now);
  }
  one.membership.dismissed(true, now);
  if (!known) changes_.push_back({receiver, false, Dismissal::kCannotListen, text});
}

void StreamSender::open_again(ReceiverIndex receiver) {
  receivers_[receiver].refuses = false;
  told_.push_back({receiver, CloseStream{stream_.stream}});
  told_.push_back({receiver, stream_});
}

void StreamSender::tick(Nanoseconds now) {
  for (ReceiverIndex each = 0; each < kReceiversMax; ++each) judge(each, now);
  probe(now);
}

void StreamSender::probe(Nanoseconds now) {
  bool any = false;
  bool calm = true;
  for (ReceiverIndex each = 0; each < kReceiversMax; ++each) {
    if (!receivers_[each].connected) continue;
    any = true;
    calm &= (admitted_ & bit(each)) != 0;
  }
  const Nanoseconds interval = options_.membership.probe_interval * (calm ? kCalmIntervals : 1);
  if (!any || !probes_.empty() || now - probed_ < interval) return;
  probed_ = now;
  // As large as any datagram, and, where that may be too large for somebody, as everybody's.
  const bool large = probes_made_++ % 2 == 0;
  const std::uint32_t bytes = large ? options_.body_bytes_max : options_.body_bytes_safe;
  probes_.push_back({{.stream = stream_.stream,
                      .kind = DatagramKind::kProbe,
                      .start = next_position_,
                      .length = bytes,
                      .offset = 0},
                     {Payload::zeroed(bytes), 0, bytes},
                     bytes});
  next_position_.value += bytes;
}

// Datagrams are as large as the largest probe that has reached everybody who is admitted.
void StreamSender::fit_bodies() {
  std::uint32_t bytes = options_.body_bytes_max;
  for_each(admitted_, [&](ReceiverIndex each) {
    bytes = std::min(
        bytes, std::max(options_.body_bytes_safe, receivers_[each].membership.largest_probe()));
  });
  body_bytes_ = bytes;
}

Result<void> StreamSender::received(ReceiverIndex receiver, const FromReceiver& message,
                                    Nanoseconds now) {
  if (receiver >= kReceiversMax || !receivers_[receiver].connected) return {};
  if (const auto* report = std::get_if<Report>(&message)) return reported(receiver, *report, now);
  if (const auto* missing = std::get_if<Missing>(&message)) return repair(receiver, *missing);
  refused(receiver, std::get<CannotListen>(message).reason, now);
  return {};
}

Result<void> StreamSender::reported(ReceiverIndex receiver, const Report& report, Nanoseconds now) {
  Receiver& one = receivers_[receiver];
  while (!one.outstanding.empty()) {
    Item* const item = find(one.outstanding.front());
    CHECK(item != nullptr);
    if (item->end() > report.through) break;
    if (!item->is_sent()) {
      return nonsense(stream_, "says that it has position " + std::to_string(item->start.value) +
                                   ", which was not sent yet");
    }
    forget(*item, receiver);
    one.outstanding.pop_front();
  }
  drop_over();
  one.membership.reported(report, now);
  if ((admitted_ & bit(receiver)) != 0) {
    rate_.reported(receiver, report, one.load, now);
    fit_bodies();
  }
  one.load = RateControl::Load::kFull;
  judge(receiver, now);
  return {};
}

Result<void> StreamSender::repair(ReceiverIndex receiver, const Missing& missing) {
  for (const Part& part : missing.parts) {
    const Item* const item = find(part.start);
    if (item == nullptr || (item->receivers & bit(receiver)) == 0 || !item->is_sent() ||
        part.length == 0 || part.offset > item->length ||
        part.length > item->length - part.offset) {
      return nonsense(stream_, "asks for bytes " + std::to_string(part.offset) + " to " +
                                   std::to_string(std::uint64_t{part.offset} + part.length) +
                                   " of what is at position " + std::to_string(part.start.value) +
                                   ", which it was not sent or has had");
    }
    told_.push_back({receiver, Repair{stream_.stream,
                                      part,
                                      {item->payload.payload, item->payload.offset + part.offset,
                                       part.length}}});
    repaired_bytes_ += part.length;
  }
  return {};
}

}  // namespace mariner::trm
