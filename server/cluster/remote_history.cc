#include "server/cluster/remote_history.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

using volume::PastRun;

Error away() {
  return {ErrorCode::kUnavailable,
          "the node that is asked (for the history, the logger) cannot be reached now"};
}
Error unasked(const char* what) {
  return {ErrorCode::kProtocol,
          std::string("the node that is asked about a volume answers ") + what};
}

}  // namespace

struct RemoteHistory::Holds {
  RemoteHistory* history = nullptr;                 // null: it is gone
  std::map<std::uint64_t, SequenceNumber> moments;  // by the question that holds them
};

struct RemoteHistory::HeldMoment {
  HeldMoment(std::shared_ptr<Holds> holds_in, std::uint64_t id_in)
      : holds(std::move(holds_in)), id(id_in) {}
  ~HeldMoment() {
    holds->moments.erase(id);
    RemoteHistory* const history = holds->history;
    if (history != nullptr && history->send_) {
      history->send({history->volume_, ++history->last_id_, ReleaseQuestion{id}});
    }
  }
  HeldMoment(const HeldMoment&) = delete;
  HeldMoment& operator=(const HeldMoment&) = delete;

  const std::shared_ptr<Holds> holds;
  const std::uint64_t id;
};

struct RemoteHistory::Reading {
  struct Piece {
    BlockRange range;
    std::vector<BlockRange> base;
  };
  BlockRange range;
  std::span<std::byte> to;
  std::vector<Piece> pieces;
  std::size_t left = 0;
  std::optional<Error> failed;
  ReadDone done;
};

RemoteHistory::RemoteHistory(VolumeId volume) : volume_(volume), holds_(std::make_shared<Holds>()) {
  holds_->history = this;
}

RemoteHistory::~RemoteHistory() {
  CHECK_MSG(pending_.empty(), "questions are under way");
  if (slots_ != nullptr) slots_->forget(*this, under_way_);
  holds_->history = nullptr;
}

void RemoteHistory::up(Send send_frame, std::shared_ptr<QuestionSlots> slots) {
  send_ = std::move(send_frame);
  if (slots_ != nullptr) slots_->forget(*this, std::exchange(under_way_, 0));
  slots_ = slots != nullptr ? std::move(slots) : std::make_shared<QuestionSlots>();
  // Under the names that they have, so that they can be let go.
  for (const auto& [id, at] : holds_->moments) {
    pending_.try_emplace(id, Holding{at, nullptr});
    send({volume_, id, HoldQuestion{at}});
  }
}

void RemoteHistory::down() {
  send_ = nullptr;
  unsent_.clear();
  if (slots_ != nullptr) slots_->forget(*this, std::exchange(under_way_, 0));
  auto failing = std::exchange(pending_, {});
  for (auto& [id, pending] : failing) fail(pending, away());
}

void RemoteHistory::writable() {
  while (send_ && !unsent_.empty()) {
    const bool asks = unsent_.front().question != 0;
    if (asks && !slots_->free(*this)) return;
    if (!send_(unsent_.front().frame)) return;
    unsent_.pop_front();
    if (!asks) continue;
    ++under_way_;
    slots_->take();
  }
}

bool RemoteHistory::was_sent(std::uint64_t question) const {
  return std::ranges::find(unsent_, question, &Unsent::question) == unsent_.end();
}

// A question, to its end. (What was sent before the last up() has given its slot back already.)
void RemoteHistory::answered() {
  if (under_way_ == 0) return;
  --under_way_;
  slots_->give_back();
}

void RemoteHistory::send(const HistoryQuestion& question) {
  const bool release = std::holds_alternative<ReleaseQuestion>(question.what);
  unsent_.push_back({encode(question), release ? 0 : question.id});
  if (unsent_.size() == 1) writable();
}

void RemoteHistory::ask(decltype(HistoryQuestion::what) what, Pending pending) {
  if (!send_ || pending_.size() >= kQuestionsMax) return fail(pending, away());
  const std::uint64_t id = ++last_id_;
  pending_.emplace(id, std::move(pending));
  send({volume_, id, std::move(what)});
}

void RemoteHistory::fail(Pending& pending, const Error& error) {
  if (auto* locating = std::get_if<Locating>(&pending)) {
    locating->done(error);
  } else if (auto* piece = std::get_if<ReadingPiece>(&pending)) {
    Reading& reading = *piece->reading;
    if (!reading.failed) reading.failed = error;
    if (--reading.left == 0) reading.done(*reading.failed);
  } else if (auto* changing = std::get_if<Changing>(&pending)) {
    changing->done(error);
  } else if (auto* holding = std::get_if<Holding>(&pending)) {
    if (holding->done) holding->done(error);
  } else if (auto* logging = std::get_if<Logging>(&pending)) {
    logging->done(error);
  } else if (auto* finding = std::get_if<Finding>(&pending)) {
    finding->done(error);
  } else if (auto* listing = std::get_if<Listing>(&pending)) {
    listing->done(error);
  } else {
    std::get<Summing>(pending).done(error);
  }
}

void RemoteHistory::locate(std::vector<Lookup> lookups, LocateDone done) {
  CHECK(!lookups.empty());
  // An answer may end early, so a question may, too.
  if (lookups.size() > kQuestionLookupsMax) lookups.resize(kQuestionLookupsMax);
  LocateQuestion question{lookups};
  ask(std::move(question), Locating{std::move(lookups), std::move(done)});
}

template <typename Question>
void RemoteHistory::read_pieces(BlockRange range, std::span<std::byte> to, Question question,
                                ReadDone done) {
  CHECK(to.size() == range.count.bytes());
  const auto reading = std::make_shared<Reading>();
  reading->range = range;
  reading->to = to;
  reading->done = std::move(done);
  for (Lbn next = range.first; next < range.end();) {
    const BlockRange piece{
        next, {std::min<std::uint64_t>((range.end() - next).value, kQuestionBlocksMax)}};
    reading->pieces.push_back({piece, {}});
    next = piece.end();
  }
  reading->left = reading->pieces.size();
  for (std::size_t i = 0; i < reading->pieces.size(); ++i) {
    ask(question(reading->pieces[i].range), ReadingPiece{reading, i});
  }
}

void RemoteHistory::read(BlockRange range, SequenceNumber at, std::span<std::byte> to,
                         ReadDone done) {
  read_pieces(
      range, to,
      [at](BlockRange piece) {
        return ReadQuestion{piece, at};
      },
      std::move(done));
}

// Of which no part is in a base elsewhere.
template <typename Question>
void RemoteHistory::read_whole(BlockRange range, std::span<std::byte> to, Question question,
                               volume::Done done) {
  read_pieces(range, to, std::move(question),
              [done = std::move(done)](const Result<std::vector<BlockRange>>& read) mutable {
                if (!read) return done(read.error());
                if (!read->empty()) return done(unasked("with parts of a base in a base"));
                done({});
              });
}

void RemoteHistory::read_base(BlockRange range, std::span<std::byte> to, volume::Done done) {
  read_whole(
      range, to, [](BlockRange piece) { return BaseQuestion{piece}; }, std::move(done));
}

void RemoteHistory::read_current(BlockRange range, SequenceNumber at, Epoch epoch,
                                 std::span<std::byte> to, volume::Done done) {
  read_whole(
      range, to,
      [at, epoch](BlockRange piece) {
        return CurrentQuestion{piece, at, epoch};
      },
      std::move(done));
}

void RemoteHistory::changed(SequenceNumber from, SequenceNumber to, Portion portion,
                            volume::Done done) {
  ask(ChangedQuestion{from, to}, Changing{std::move(portion), std::move(done)});
}

void RemoteHistory::versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) {
  if (blocks.empty()) return done(Versions{});
  CHECK(blocks.size() <= kSinceMax);
  VersionsQuestion question{blocks, to};
  ask(std::move(question), Listing{std::move(blocks), to, std::move(done)});
}

void RemoteHistory::hold(SequenceNumber at, HoldDone done) {
  ask(HoldQuestion{at}, Holding{at, std::move(done)});
}

void RemoteHistory::log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) {
  CHECK(range.count.value <= kBeforeImageBlocksMax);
  ask(BeforeImageQuestion{range, std::move(bytes)}, Logging{std::move(done)});
}

void RemoteHistory::moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) {
  ask(MomentQuestion{asked}, Finding{std::move(done)});
}

void RemoteHistory::summarize(const volume::HistorySummary::Question& question, SummaryDone done) {
  SummaryQuestion bounded{question};
  bounded.what.columns = std::min(question.columns, volume::HistorySummary::kColumnsMax);
  bounded.what.writes_max = std::min(question.writes_max, kSummaryWritesMax);
  ask(bounded, Summing{std::move(done)});
}

Result<void> RemoteHistory::received(HistoryAnswer message) {
  const auto found = pending_.find(message.id);
  if (found == pending_.end() || !was_sent(message.id)) return unasked("what was not asked");
  const std::uint64_t id = message.id;
  if (auto* some = std::get_if<ChangedAnswer>(&message.what)) {
    auto* changing = std::get_if<Changing>(&found->second);
    if (changing == nullptr) return unasked("with extents what was no question for them");
    changing->portion(some->extents);
    if (some->more) return {};
    Changing last = std::move(*changing);
    pending_.erase(found);
    answered();
    last.done({});
    return {};
  }
  Pending pending = std::move(found->second);
  pending_.erase(found);
  answered();
  if (auto* failure = std::get_if<FailureAnswer>(&message.what)) {
    fail(pending, failure->error);
    return {};
  }
  Result<void> result = unasked("something else than what was asked for");
  if (auto* located = std::get_if<LocatedAnswer>(&message.what)) {
    if (auto* locating = std::get_if<Locating>(&pending)) result = answer(*locating, *located);
  } else if (auto* bytes = std::get_if<ReadAnswer>(&message.what)) {
    if (auto* piece = std::get_if<ReadingPiece>(&pending)) result = answer(*piece, *bytes);
  } else if (auto* moment = std::get_if<MomentAnswer>(&message.what)) {
    if (auto* finding = std::get_if<Finding>(&pending)) {
      finding->done(moment->moment);
      return {};
    }
  } else if (auto* summary = std::get_if<SummaryAnswer>(&message.what)) {
    if (auto* summing = std::get_if<Summing>(&pending)) {
      summing->done(std::move(summary->summary));
      return {};
    }
  } else if (auto* versions = std::get_if<VersionsAnswer>(&message.what)) {
    if (auto* listing = std::get_if<Listing>(&pending)) {
      result = answer(*listing, versions->versions);
    }
  } else if (auto* logging = std::get_if<Logging>(&pending)) {
    logging->done({});
    return {};
  } else if (auto* holding = std::get_if<Holding>(&pending)) {
    if (holding->done) {
      holds_->moments[id] = holding->at;
      holding->done(Hold(std::make_shared<HeldMoment>(holds_, id)));
    }
    return {};
  }
  if (!result) fail(pending, away());
  return result;
}

// The runs are the beginning of what was asked for: of one lookup after the other, without gaps.
Result<void> RemoteHistory::answer(Locating& pending, const LocatedAnswer& located) {
  Located out;
  out.newest = located.newest;
  auto lookup = pending.lookups.begin();
  Lbn next = lookup->range.first;
  for (const PastRun& each : located.runs) {
    if (lookup == pending.lookups.end() || each.range.first != next ||
        each.range.end() > lookup->range.end()) {
      return unasked("for blocks that were not asked for");
    }
    PastRun run = each;
    if (run.source != PastRun::Source::kLog || !lookup->with_bytes) {
      run.bytes = {};
    } else if (run.bytes.length == 0) {
      return unasked("without the bytes that were asked for");
    }
    out.runs.push_back(std::move(run));
    next = each.range.end();
    if (next == lookup->range.end() && ++lookup != pending.lookups.end()) {
      next = lookup->range.first;
    }
  }
  pending.done(std::move(out));
  return {};
}

// Of one block after the other, as they were asked for, and each by number.
Result<void> RemoteHistory::answer(Listing& pending, Versions& versions) {
  auto since = pending.blocks.begin();
  SequenceNumber last = since->after;
  for (const Version& each : versions.list) {
    while (since != pending.blocks.end() && since->block != each.block) {
      if (++since != pending.blocks.end()) last = since->after;
    }
    if (since == pending.blocks.end() || each.at.sequence <= last ||
        each.at.sequence > pending.to) {
      return unasked("for versions that were not asked for");
    }
    last = each.at.sequence;
  }
  pending.done(std::move(versions));
  return {};
}

Result<void> RemoteHistory::answer(ReadingPiece& pending, ReadAnswer& read) {
  Reading& reading = *pending.reading;
  Reading::Piece& piece = reading.pieces[pending.piece];
  if (read.bytes.length != piece.range.count.bytes()) {
    return unasked("with another number of blocks than was asked for");
  }
  Lbn next = piece.range.first;
  for (const BlockRange& part : read.base) {
    if (part.first < next || part.end() > piece.range.end()) {
      return unasked("for blocks that were not asked for");
    }
    next = part.end();
  }
  const auto copy = [&](BlockRange part) {
    if (part.empty()) return;
    std::memcpy(reading.to.data() + (part.first - reading.range.first).bytes(),
                read.bytes.bytes().data() + (part.first - piece.range.first).bytes(),
                part.count.bytes());
  };
  next = piece.range.first;
  for (const BlockRange& part : read.base) {
    copy(BlockRange::between(next, part.first));
    next = part.end();
  }
  copy(BlockRange::between(next, piece.range.end()));
  piece.base = std::move(read.base);
  finish_piece(pending.reading);
  return {};
}

void RemoteHistory::finish_piece(const std::shared_ptr<Reading>& reading) {
  if (--reading->left > 0) return;
  if (reading->failed) return reading->done(*reading->failed);
  std::vector<BlockRange> base;
  for (const Reading::Piece& piece : reading->pieces) {
    base.insert(base.end(), piece.base.begin(), piece.base.end());
  }
  reading->done(std::move(base));
}

}  // namespace mariner::cluster
