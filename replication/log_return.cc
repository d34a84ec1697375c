#include "replication/log_return.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "proto/sequence_text.h"

namespace mariner::replication {
namespace {}  // namespace

void LogReturn::connected(bool known, Out& out) {
  ++connection_;
  phase_ = Phase::kWaiting;
  if (!known) return;
  phase_ = Phase::kOpening;
  out.send.emplace_back(OpenLog{start_.volume, start_.epoch, {}});
}

void LogReturn::disconnected() { phase_ = Phase::kDown; }

void LogReturn::drop(ErrorCode code, const std::string& message, Out& out) {
  phase_ = Phase::kDown;
  out.drop = Error{code, "the returning logger " + message};
}

std::optional<SequenceNumber> LogReturn::has() const {
  if (phase_ != Phase::kReceiving) return std::nullopt;
  return has_;
}

void LogReturn::hear(const FromLogger& message, SequenceNumber settled, Out& out) {
  if (phase_ == Phase::kDown || phase_ == Phase::kWaiting) return;
  if (const auto* open = std::get_if<LogOpened>(&message)) return opened(*open, settled, out);
  if (const auto* failed = std::get_if<LogFailed>(&message)) {
    return drop(failed->error.code,
                "could not log " + sequence_text(failed->sequence) + ": " + failed->error.message,
                out);
  }
  if (const auto* refused = std::get_if<Refused>(&message)) {
    return drop(refused->error.code, "refused: " + refused->error.message, out);
  }
  const auto* logged = std::get_if<Logged>(&message);
  if (logged == nullptr) return;
  if (phase_ == Phase::kOpening || phase_ == Phase::kLost || logged->epoch != start_.epoch ||
      logged->through > sent_) {
    return drop(ErrorCode::kProtocol,
                "acknowledges " + sequence_text(logged->through) + ", which it was not sent", out);
  }
  has_ = std::max(has_, logged->through);
  if (has_ < sent_) return;
  if (phase_ == Phase::kBeginning) {
    const SequenceNumber since = start_.away.since;
    phase_ = Phase::kOpening;
    return opened({start_.volume, start_.epoch, since, {}, start_.away.floor, since, since},
                  settled, out);
  }
  phase_ = Phase::kReceiving;
  go_on(settled, out);
}

void LogReturn::begin_anew(Out& out) {
  CHECK(lost());
  phase_ = Phase::kBeginning;
  has_ = {};
  sent_ = start_.away.since;
  out.send.emplace_back(BeginAnew{start_.volume, start_.epoch, sent_, start_.away.floor});
}

void LogReturn::opened(const LogOpened& message, SequenceNumber settled, Out& out) {
  if (phase_ != Phase::kOpening || message.epoch != start_.epoch) {
    return drop(ErrorCode::kProtocol, "opened what was not to be opened", out);
  }
  const SequenceNumber since = start_.away.since;
  const SequenceNumber last = message.last;
  const SequenceNumber until = taken_back_until();
  // Something of its own above `since`, and not taken back yet.
  const bool stray = message.end <= until && message.end != start_.away.end && message.end != since;
  const bool taken_back = last >= until && !stray;
  if (!message.holes.empty() && message.holes.back().last > until) {
    return drop(ErrorCode::kIo,
                "could not keep #" + std::to_string(message.holes.back().first.value) +
                    ", which it was sent; it goes on when it has been restarted",
                out);
  }
  const bool empty = message.end.value == 0 && message.holes.empty();
  if (empty && last < since) {
    phase_ = Phase::kLost;
    return;
  }
  const bool lost = empty && start_.away.end.value > 0;  // and numbers are used that others have
  if (lost || last < since || last > settled) {
    return drop(ErrorCode::kCorrupt,
                "ends with " + sequence_text(last) + ": expected " + sequence_text(since) +
                    ", up to which it had acknowledged everything, or what came since, up to " +
                    sequence_text(settled),
                out);
  }
  for (const SequenceRange& hole : message.holes) {
    out.send.emplace_back(VoidMessage{start_.volume, start_.epoch, hole.first, hole.last});
  }
  has_ = message.holes.empty() ? last : SequenceNumber{message.holes.front().first.value - 1};
  sent_ = last;
  if (!taken_back) {
    phase_ = Phase::kTakingBack;
    if (stray) {
      WriteMessage back;
      back.volume = start_.volume;
      back.stamp = {start_.epoch, last.next(),
                    VersionTime{std::max(message.floor, start_.away.floor).ns + 1}};
      back.write.kind = WriteKind::kRollback;
      back.write.target = since;
      back.settled = since;
      sent_ = last.next();
      out.send.emplace_back(std::move(back));
    }
    if (sent_ < until) {
      out.send.emplace_back(VoidMessage{start_.volume, start_.epoch, sent_.next(), until});
      sent_ = until;
    }
    return;
  }
  if (has_ < sent_) {
    phase_ = Phase::kTakingBack;
    return;
  }
  phase_ = Phase::kReceiving;
  go_on(settled, out);
}

void LogReturn::go_on(SequenceNumber settled, Out& out) {
  if (phase_ != Phase::kReceiving || fetching_ || has_ < sent_ || has_ >= settled) return;
  fetching_ = true;
  fetched_for_ = connection_;
  out.fetch = SequenceRange{has_, settled};
}

// In the epoch of who sends it: the numbers say what came when.
void LogReturn::fetched(const Result<LogSource::Portion>& portion, Out& out) {
  CHECK(fetching_);
  fetching_ = false;
  if (phase_ != Phase::kReceiving || fetched_for_ != connection_) return;
  if (!portion) return;  // go_on() asks again
  for (const WriteMessage& write : portion->writes) {
    const SequenceNumber sequence = write.stamp.sequence;
    CHECK(sequence > sent_);
    if (sent_.next() < sequence) {
      out.send.emplace_back(VoidMessage{start_.volume, start_.epoch, sent_.next(),
                                        SequenceNumber{sequence.value - 1}});
    }
    WriteMessage again = write;
    again.stamp.epoch = start_.epoch;
    again.settled = has_;
    again.frontier = {};
    out.send.emplace_back(std::move(again));
    sent_ = sequence;
  }
  CHECK(portion->through >= sent_);
  if (sent_ < portion->through) {
    out.send.emplace_back(VoidMessage{start_.volume, start_.epoch, sent_.next(), portion->through});
    sent_ = portion->through;
  }
}

}  // namespace mariner::replication
