#include "server/cluster/history_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

using volume::History;

// What the answer will hold of memory.
std::uint64_t bytes_for(const HistoryQuestion& question) {
  if (const auto* read = std::get_if<ReadQuestion>(&question.what)) {
    return read->range.count.bytes();
  }
  if (const auto* base = std::get_if<BaseQuestion>(&question.what)) {
    return base->range.count.bytes();
  }
  if (const auto* current = std::get_if<CurrentQuestion>(&question.what)) {
    return current->range.count.bytes();
  }
  if (const auto* image = std::get_if<BeforeImageQuestion>(&question.what)) {
    return image->bytes.length;
  }
  std::uint64_t blocks = 0;
  if (const auto* locate = std::get_if<LocateQuestion>(&question.what)) {
    for (const History::Lookup& lookup : locate->lookups) {
      if (lookup.with_bytes) blocks += lookup.range.count.value;
    }
  }
  return blocks * kBlockBytes;
}

}  // namespace

HistorySession::HistorySession(Parts parts) : parts_(std::move(parts)) {
  if (parts_.node == nullptr) parts_.node = std::make_shared<Node>();
}

HistorySession::~HistorySession() { *alive_ = false; }

Result<void> HistorySession::received(HistoryQuestion question) {
  if (const auto* release = std::get_if<ReleaseQuestion>(&question.what)) {
    // Also one that has not been answered yet.
    holds_.erase({question.volume, release->held});
    holding_.erase({question.volume, release->held});
    return {};
  }
  if (waiting_.size() >= kWaitingMax) {
    return Error{ErrorCode::kLimit, "more than " + std::to_string(kWaitingMax) +
                                        " questions about the history wait on one connection"};
  }
  if (std::holds_alternative<HoldQuestion>(question.what)) {
    holding_.insert({question.volume, question.id});
  }
  waiting_.push_back(std::move(question));
  begin_waiting();
  return {};
}

void HistorySession::begin_waiting() {
  while (!waiting_.empty() && under_way_ < kUnderWayMax && unsent_.empty()) {
    const std::uint64_t bytes = bytes_for(waiting_.front());
    if (under_way_ > 0 && bytes_under_way_ + bytes > kBytesUnderWayMax) return;
    HistoryQuestion question = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    bytes_under_way_ += bytes;
    begin(question);
  }
}

void HistorySession::ended(std::uint64_t bytes) {
  CHECK(under_way_ > 0);
  --under_way_;
  bytes_under_way_ -= bytes;
  begin_waiting();
}

void HistorySession::begin(const HistoryQuestion& question) {
  const auto not_here = [&](const char* what) {
    answer(question.volume, question.id,
           FailureAnswer{{ErrorCode::kUnavailable,
                          "volume " + std::to_string(question.volume.value) + what}});
    ended(bytes_for(question));
  };
  if (const auto* of_image = std::get_if<BaseQuestion>(&question.what)) {
    volume::Base* const image = parts_.find_image(question.volume);
    if (image == nullptr) return not_here(" has no image here");
    return look(*image, question, *of_image);
  }
  if (const auto* of_now = std::get_if<CurrentQuestion>(&question.what)) {
    CurrentSource* const current =
        parts_.find_current ? parts_.find_current(question.volume) : nullptr;
    if (current == nullptr) return not_here(" is not stored here");
    return look(*current, question, *of_now);
  }
  History* const history = parts_.find(question.volume);
  if (history == nullptr) return not_here(" is not open at the logger");
  std::visit(
      [&](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (!std::is_same_v<What, ReleaseQuestion> &&
                      !std::is_same_v<What, BaseQuestion> &&
                      !std::is_same_v<What, CurrentQuestion>) {
          look(*history, question, what);
        }
      },
      question.what);
}

void HistorySession::look(volume::Base& image, const HistoryQuestion& question,
                          const BaseQuestion& what) {
  const Payload to = Payload::allocate(what.range.count.bytes());
  Payload filled = to;
  image.read(what.range, filled.bytes(),
             [this, alive = alive_, volume = question.volume, id = question.id,
              to](const Result<void>& read) {
               if (!*alive) return;
               if (read) {
                 answer(volume, id, ReadAnswer{{}, {to, 0, to.size()}});
               } else {
                 answer(volume, id, FailureAnswer{read.error()});
               }
               ended(to.size());
             });
}

void HistorySession::look(CurrentSource& current, const HistoryQuestion& question,
                          const CurrentQuestion& what) {
  current.read(what, [this, alive = alive_, volume = question.volume, id = question.id,
                      bytes = what.range.count.bytes()](Result<PayloadSlice> read) {
    if (!*alive) return;
    if (read) {
      answer(volume, id, ReadAnswer{{}, *std::move(read)});
    } else {
      answer(volume, id, FailureAnswer{read.error()});
    }
    ended(bytes);
  });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const LocateQuestion& what) {
  const std::uint64_t bytes = bytes_for(question);
  history.locate(what.lookups, [this, alive = alive_, volume = question.volume, id = question.id,
                                bytes](Result<History::Located> found) {
    if (!*alive) return;
    if (!found) {
      answer(volume, id, FailureAnswer{found.error()});
      return ended(bytes);
    }
    if (found->runs.size() > kAnswerRunsMax) found->runs.resize(kAnswerRunsMax);
    answer(volume, id, LocatedAnswer{std::move(found->runs), found->newest});
    ended(bytes);
  });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const ReadQuestion& what) {
  const Payload to = Payload::allocate(what.range.count.bytes());
  Payload filled = to;
  history.read(
      what.range, what.at, filled.bytes(),
      [this, alive = alive_, volume = question.volume, id = question.id,
       to](Result<std::vector<BlockRange>> base) {
        if (!*alive) return;
        if (!base) {
          answer(volume, id, FailureAnswer{base.error()});
        } else if (base->size() > kAnswerRunsMax) {
          answer(volume, id, FailureAnswer{{ErrorCode::kLimit, "too many parts are in the base"}});
        } else {
          answer(volume, id, ReadAnswer{std::move(*base), {to, 0, to.size()}});
        }
        ended(to.size());
      });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const ChangedQuestion& what) {
  history.changed(
      what.from, what.to,
      [this, alive = alive_, volume = question.volume,
       id = question.id](std::span<const BlockRange> extents) {
        while (*alive && !extents.empty()) {
          const auto some = extents.first(std::min(extents.size(), kAnswerRunsMax));
          answer(volume, id, ChangedAnswer{{some.begin(), some.end()}, true});
          extents = extents.subspan(some.size());
        }
      },
      [this, alive = alive_, volume = question.volume, id = question.id](const Result<void>& all) {
        if (!*alive) return;
        if (all) {
          answer(volume, id, ChangedAnswer{{}, false});
        } else {
          answer(volume, id, FailureAnswer{all.error()});
        }
        ended(0);
      });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const HoldQuestion& what) {
  history.hold(what.at, [this, alive = alive_, volume = question.volume,
                         id = question.id](Result<History::Hold> hold) {
    if (!*alive) return;
    const bool wanted = holding_.erase({volume, id}) > 0;
    if (hold) {
      if (wanted) holds_[{volume, id}] = std::move(*hold);
      answer(volume, id, DoneAnswer{});
    } else {
      answer(volume, id, FailureAnswer{hold.error()});
    }
    ended(0);
  });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const BeforeImageQuestion& what) {
  const std::shared_ptr<Node> node = parts_.node;
  // The count is of all sessions of the node; what this one has begun itself need not wait, but
  // waiting costs a turn of the log and no more.
  if (node->before_images > own_before_images_) {
    node->waiting.push_back([this, alive = alive_, question]() mutable {
      if (*alive) begin(question);
    });
    return;
  }
  ++node->before_images;
  ++own_before_images_;
  history.log_before_image(what.range, what.bytes,
                           [this, alive = alive_, node, volume = question.volume, id = question.id,
                            bytes = what.bytes.length](const Result<void>& logged) {
                             --node->before_images;
                             if (*alive) {
                               --own_before_images_;
                               if (logged) {
                                 answer(volume, id, DoneAnswer{});
                               } else {
                                 answer(volume, id, FailureAnswer{logged.error()});
                               }
                               ended(bytes);
                             }
                             if (node->before_images == 0) {
                               for (auto& waiting : std::exchange(node->waiting, {})) waiting();
                             }
                           });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const MomentQuestion& what) {
  history.moment(what.asked, [this, alive = alive_, volume = question.volume,
                              id = question.id](Result<History::Moment> moment) {
    if (!*alive) return;
    if (moment) {
      answer(volume, id, MomentAnswer{*moment});
    } else {
      answer(volume, id, FailureAnswer{moment.error()});
    }
    ended(0);
  });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const SummaryQuestion& what) {
  history.summarize(what.what, [this, alive = alive_, volume = question.volume,
                                id = question.id](Result<volume::HistorySummary> summary) {
    if (!*alive) return;
    if (summary) {
      answer(volume, id, SummaryAnswer{*std::move(summary)});
    } else {
      answer(volume, id, FailureAnswer{summary.error()});
    }
    ended(0);
  });
}

void HistorySession::look(History& history, const HistoryQuestion& question,
                          const VersionsQuestion& what) {
  history.versions(what.blocks, what.to,
                   [this, alive = alive_, volume = question.volume,
                    id = question.id](Result<History::Versions> found) {
                     if (!*alive) return;
                     if (found) {
                       answer(volume, id, VersionsAnswer{*std::move(found)});
                     } else {
                       answer(volume, id, FailureAnswer{found.error()});
                     }
                     ended(0);
                   });
}

void HistorySession::answer(VolumeId volume, std::uint64_t id, decltype(HistoryAnswer::what) what) {
  HistoryFrame frame = encode(HistoryAnswer{volume, id, std::move(what)});
  if (unsent_.empty() && parts_.send(frame)) return;
  unsent_.push_back(std::move(frame));
}

void HistorySession::writable() {
  while (!unsent_.empty()) {
    if (!parts_.send(unsent_.front())) return;
    unsent_.pop_front();
  }
  begin_waiting();
}

}  // namespace mariner::cluster
