#include "server/node/past_desk.h"

#include <algorithm>
#include <random>
#include <utility>

#include "proto/sequence_text.h"

namespace mariner::node {
namespace {

constexpr auto kSweep = std::chrono::seconds(5);

Error ended(const std::string& id) {
  return Error{ErrorCode::kNotFound,
               "there is no reading " + id + " of a past: it was closed, or not used for " +
                   std::to_string(PastDesk::kIdle.count()) + " s; open another one"};
}

std::string new_id() {
  std::random_device device;
  return std::to_string(std::uint64_t{device()} << 32 | device());
}

// Ranges put together: the first ones, as many as an answer has.
class FirstRanges {
 public:
  FirstRanges(Lbn first, Lbn end) : first_(first), end_(end) {}

  void add(std::span<const BlockRange> extents) {
    for (const BlockRange& each : extents) {
      const BlockRange part = each.intersect(BlockRange::between(first_, end_));
      if (!part.empty()) ranges_.push_back(part);
      if (ranges_.size() >= 2 * admin::kChangedRangesMax) compact();
    }
  }
  [[nodiscard]] bool full() const { return cut_ || ranges_.size() >= admin::kChangedRangesMax; }
  [[nodiscard]] admin::ChangedPart take() {
    compact();
    return {std::move(ranges_), cut_ ? end_ : Lbn{}};
  }

 private:
  // Behind what is cut off nothing counts any more.
  void compact() {
    ranges_ = index::merge_extents(std::move(ranges_));
    if (ranges_.size() <= admin::kChangedRangesMax) return;
    ranges_.resize(admin::kChangedRangesMax);
    end_ = ranges_.back().end();
    cut_ = true;
  }

  const Lbn first_;
  Lbn end_;
  bool cut_ = false;
  std::vector<BlockRange> ranges_;
};

}  // namespace

// Of bytes_: as long as somebody has what was read.
class PastDesk::Budget {
 public:
  Budget(PastDesk& desk, std::uint64_t bytes) : desk_(desk), alive_(desk.alive_), bytes_(bytes) {
    desk_.bytes_ += bytes;
  }
  ~Budget() {
    if (!*alive_) return;
    desk_.bytes_ -= bytes_;
    desk_.begin_waiting();
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

 private:
  PastDesk& desk_;
  const std::shared_ptr<const bool> alive_;
  const std::uint64_t bytes_;
};

api::Past PastDesk::to_api(const Reading& reading, std::uint64_t size_bytes,
                           index::IndexMoment newest) {
  api::Past out;
  out.set_id(reading.id);
  out.set_volume(reading.volume_name);
  out.set_volume_id(reading.volume.value);
  out.set_size_bytes(size_bytes);
  *out.mutable_from() = node::to_api(reading.from);
  *out.mutable_newest() = node::to_api(newest);
  out.set_idle_s(static_cast<std::uint64_t>(kIdle.count()));
  out.set_expires_ns(reading.expires.ns);
  return out;
}

// ---- readings

void PastDesk::open(const api::OpenPastRequest& request, admin::Answer<api::Past> done) {
  if (readings_.size() + opening_ >= kReadingsMax) {
    return done(Error{ErrorCode::kLimit, "the past is read " + std::to_string(kReadingsMax) +
                                             " times already; close one, or wait"});
  }
  const Result<Volume> volume = find_(request.volume());
  if (!volume) return done(volume.error());
  ++opening_;
  admin::Answer<api::Past> opened = [this, done = std::move(done)](Result<api::Past> past) mutable {
    --opening_;
    done(std::move(past));
  };
  resolve_moment(volume->moments, or_now({}), executor_,
                 [this, of = *volume, from = request.from(),
                  done = std::move(opened)](const Result<ResolvedMoment>& now) mutable {
                   if (!now) return done(now.error());
                   if (from.at_case() == api::MomentSpec::AT_NOT_SET) {
                     return keep(of, now->oldest, now->at, std::move(done));
                   }
                   resolve_moment(of.moments, from, executor_,
                                  [this, of, newest = now->at, done = std::move(done)](
                                      const Result<ResolvedMoment>& found) mutable {
                                    if (!found) return done(found.error());
                                    keep(of, found->at, newest, std::move(done));
                                  });
                 });
}

void PastDesk::keep(const Volume& volume, index::IndexMoment from, index::IndexMoment newest,
                    admin::Answer<api::Past> done) {
  volume.hold(from.sequence, [this, volume, from, newest,
                              done = std::move(done)](Result<Hold> hold) mutable {
    if (!hold) return done(hold.error());
    Reading reading{.id = new_id(),
                    .volume_name = volume.moments.volume,
                    .volume = volume.id,
                    .from = from,
                    .hold = *std::move(hold)};
    reading.used = executor_.monotonic_time();
    reading.ends = reading.used + kLife;
    reading.expires = {executor_.wall_time().ns +
                       static_cast<std::uint64_t>(std::chrono::nanoseconds(kLife).count())};
    api::Past out = to_api(reading, volume.size_bytes, newest);
    readings_[reading.id] = std::move(reading);
    sweep_later();
    done(std::move(out));
  });
}

Result<PastDesk::Asked> PastDesk::use(const std::string& id) {
  const auto found = readings_.find(id);
  if (found == readings_.end()) return ended(id);
  Reading& reading = found->second;
  Result<Volume> volume = find_(reading.volume_name);
  if (!volume) return volume.error();
  if (volume->id != reading.volume) {
    return Error{ErrorCode::kNotFound, reading.volume_name + " is another volume by now"};
  }
  if (const Result<void> kept = held(id); !kept) return kept.error();
  reading.used = executor_.monotonic_time();
  return Asked{&reading, *std::move(volume)};
}

Result<void> PastDesk::held(const std::string& id) const {
  const auto found = readings_.find(id);
  if (found == readings_.end()) return ended(id);
  const Reading& reading = found->second;
  if (!reading.hold.holds || reading.hold.holds()) return {};
  return Error{ErrorCode::kOutsideWindow,
               "the past of " + reading.volume_name + " is not kept from #" +
                   std::to_string(reading.from.sequence.value) +
                   " on any more: the log needed the room, or the volume was closed"};
}

void PastDesk::show(const api::PastRequest& request, admin::Answer<api::Past> done) {
  const Result<Asked> asked = use(request.id());
  if (!asked) return done(asked.error());
  resolve_moment(asked->volume.moments, or_now({}), executor_,
                 [this, id = request.id(), size_bytes = asked->volume.size_bytes,
                  done = std::move(done)](const Result<ResolvedMoment>& now) mutable {
                   if (!now) return done(now.error());
                   if (const Result<void> kept = held(id); !kept) return done(kept.error());
                   done(to_api(readings_.at(id), size_bytes, now->at));
                 });
}

void PastDesk::close(const api::PastRequest& request, admin::Answer<api::Past> done) {
  const auto found = readings_.find(request.id());
  if (found == readings_.end()) return done(ended(request.id()));
  api::Past out = to_api(found->second, 0, {});
  readings_.erase(found);
  done(std::move(out));
}

void PastDesk::sweep_later() {
  if (readings_.empty() || std::exchange(sweeping_, true)) return;
  executor_.after(kSweep, [this, alive = alive_] {
    if (*alive) sweep();
  });
}

void PastDesk::sweep() {
  sweeping_ = false;
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  std::erase_if(readings_, [&](const auto& each) {
    const Reading& reading = each.second;
    return now >= reading.ends || now - reading.used >= kIdle;
  });
  sweep_later();
}

// ---- questions

Result<void> PastDesk::check(const Asked& asked, SequenceNumber at) {
  const Reading& reading = *asked.reading;
  const auto outside = [&](const std::string& why) {
    return Error{ErrorCode::kOutsideWindow, sequence_text(at) + why};
  };
  if (at < reading.from.sequence) {
    return outside(" is before #" + std::to_string(reading.from.sequence.value) +
                   ", from which on the past is kept");
  }
  replication::Replicator* const replicator = asked.volume.moments.replicator();
  if (replicator == nullptr) {
    return Error{ErrorCode::kUnavailable, reading.volume_name + " is not served by this node now"};
  }
  const SequenceNumber settled = replicator->coordinator().settled();
  if (at <= settled) return {};
  return outside(" is after the newest write, #" + std::to_string(settled.value));
}

Result<void> PastDesk::check(const Asked& asked, Lbn block) {
  const std::uint64_t blocks = asked.volume.size_bytes >> kBlockShift;
  if (block.value < blocks) return {};
  return Error{ErrorCode::kInvalidArgument,
               "block " + std::to_string(block.value) + " is behind the end of " +
                   asked.reading->volume_name + ", which has " + std::to_string(blocks)};
}

void PastDesk::moment(const api::PastMomentRequest& request, admin::Answer<api::Moment> done) {
  const Result<Asked> asked = use(request.id());
  if (!asked) return done(asked.error());
  resolve_moment(
      asked->volume.moments, request.at(), executor_,
      [of = asked->volume, done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
        if (!moment) return done(moment.error());
        done(node::to_api(*moment));
      });
}

void PastDesk::blocks(const std::string& id, std::vector<admin::BlockQuestion> questions,
                      admin::Answer<Blocks> done) {
  const Result<Asked> asked = use(id);
  if (!asked) return done(asked.error());
  std::vector<volume::HistoryReader::Question> wanted;
  wanted.reserve(questions.size());
  std::optional<SequenceNumber> checked;
  for (const admin::BlockQuestion& each : questions) {
    Result<void> good = check(*asked, each.block);
    if (good && each.at != checked) good = check(*asked, each.at);
    if (!good) return done(good.error());
    checked = each.at;
    wanted.push_back({each.block, each.at});
  }
  const std::uint64_t bytes = questions.size() * std::uint64_t{kBlockBytes};
  if (bytes_ > 0 && bytes_ + bytes > kBytesMax) {
    if (waiting_.size() >= kWaitingMax) {
      return done(Error{ErrorCode::kLimit, "too much of the past is being read"});
    }
    waiting_.push_back(
        [this, id, questions = std::move(questions), done = std::move(done)]() mutable {
          blocks(id, std::move(questions), std::move(done));
        });
    return;
  }
  asked->volume.reader->read_each(
      std::move(wanted),
      [this, id, of = asked->volume, budget = std::make_shared<const Budget>(*this, bytes),
       done = std::move(done)](Result<std::vector<PayloadSlice>> slices) mutable {
        if (!slices) return done(slices.error());
        if (const Result<void> kept = held(id); !kept) return done(kept.error());
        done(Blocks{*std::move(slices), std::move(budget)});
      });
}

// In a turn of its own: who lets go of an answer is not to begin another one.
void PastDesk::begin_waiting() {
  if (waiting_.empty()) return;
  executor_.defer([this, alive = alive_] {
    if (!*alive) return;
    for (UniqueFunction<void()>& each : std::exchange(waiting_, {})) each();
  });
}

void PastDesk::changed(const api::PastChangedRequest& request,
                       admin::Answer<admin::ChangedPart> done) {
  const Result<Asked> asked = use(request.id());
  if (!asked) return done(asked.error());
  const SequenceNumber from{request.from()};
  const SequenceNumber to{request.to()};
  if (from > to) return done(Error{ErrorCode::kInvalidArgument, "it ends before it begins"});
  for (const SequenceNumber at : {from, to}) {
    if (const Result<void> good = check(*asked, at); !good) return done(good.error());
  }
  const auto ranges = std::make_shared<FirstRanges>(Lbn{request.first_block()},
                                                    Lbn{asked->volume.size_bytes >> kBlockShift});
  asked->volume.moments.history->changed(
      from, to, [ranges](std::span<const BlockRange> extents) { ranges->add(extents); },
      [this, id = request.id(), of = asked->volume, ranges,
       done = std::move(done)](const Result<void>& all) mutable {
        if (!all) return done(all.error());
        if (const Result<void> kept = held(id); !kept) return done(kept.error());
        done(ranges->take());
      });
}

// One stored(), some blocks a turn.
struct PastDesk::Storing {
  std::string id;
  Volume of;
  SequenceNumber at;
  BlockRange left;
  FirstRanges ranges;
  admin::Answer<admin::StoredPart> done;
};

void PastDesk::stored(const api::PastStoredRequest& request,
                      admin::Answer<admin::StoredPart> done) {
  Result<Asked> asked = use(request.id());
  if (!asked) return done(asked.error());
  const SequenceNumber at{request.at()};
  const Lbn first{request.first_block()};
  if (const Result<void> good = check(*asked, at); !good) return done(good.error());
  if (const Result<void> good = check(*asked, first); !good) return done(good.error());
  const std::uint64_t blocks = asked->volume.size_bytes >> kBlockShift;
  const BlockRange all{first, {std::min(blocks - first.value, kStoredBlocksMax)}};
  store_next(std::make_shared<Storing>(Storing{.id = request.id(),
                                               .of = std::move(asked->volume),
                                               .at = at,
                                               .left = all,
                                               .ranges = FirstRanges(first, all.end()),
                                               .done = std::move(done)}));
}

void PastDesk::store_next(const std::shared_ptr<Storing>& storing) {
  const BlockRange part{storing->left.first,
                        {std::min(storing->left.count.value, kStoredBlocksAtATime)}};
  volume::allocation_at(*storing->of.moments.history, to_bytes(part), storing->at,
                        [this, storing, part, alive = alive_](
                            const Result<std::vector<volume::Allocation>>& found) mutable {
                          if (!*alive) return storing->done(ended(storing->id));
                          if (!found) return storing->done(found.error());
                          for (const volume::Allocation& each : *found) {
                            const BlockRange range = each.range.covering_blocks();
                            if (each.mapped) storing->ranges.add({&range, 1});
                          }
                          storing->left = BlockRange::between(part.end(), storing->left.end());
                          if (!storing->left.empty() && !storing->ranges.full()) {
                            return executor_.post([this, storing, alive] {
                              if (*alive) return store_next(storing);
                              storing->done(ended(storing->id));
                            });
                          }
                          if (const Result<void> kept = held(storing->id); !kept) {
                            return storing->done(kept.error());
                          }
                          admin::StoredPart out = storing->ranges.take();
                          const Lbn size{storing->of.size_bytes >> kBlockShift};
                          if (out.next.value == 0 && part.end() < size) out.next = part.end();
                          storing->done(std::move(out));
                        });
}

void PastDesk::versions(const std::string& id, admin::VersionsRequest request,
                        admin::Answer<admin::VersionsPart> done) {
  const Result<Asked> asked = use(id);
  if (!asked) return done(asked.error());
  if (const Result<void> good = check(*asked, request.to); !good) return done(good.error());
  std::vector<volume::History::Since> blocks;
  for (const admin::BlockSince& each : request.blocks) {
    Result<void> good = check(*asked, each.block);
    if (good) good = check(*asked, each.after);
    if (!good) return done(good.error());
    blocks.push_back({each.block, each.after});
  }
  static_assert(admin::kVersionBlocksMax <= volume::History::kSinceMax);
  static_assert(admin::kVersionsMax >= volume::History::kVersionsMax);
  asked->volume.moments.history->versions(
      std::move(blocks), request.to,
      [this, id, of = asked->volume,
       done = std::move(done)](const Result<volume::History::Versions>& found) mutable {
        if (!found) return done(found.error());
        if (const Result<void> kept = held(id); !kept) return done(kept.error());
        admin::VersionsPart out{{}, found->more};
        for (const volume::History::Version& each : found->list) {
          out.list.push_back({each.block, each.at.sequence, each.at.time});
        }
        done(std::move(out));
      });
}

}  // namespace mariner::node
