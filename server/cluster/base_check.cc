#include "server/cluster/base_check.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/cluster/base_capture.h"
#include "server/cluster/both_answers.h"

namespace mariner::cluster {

using volume::History;
using volume::PastRun;

BaseCheck::~BaseCheck() {
  CHECK_MSG(idle(), "the check of an image is dropped while it asks");
  *alive_ = false;
}

void BaseCheck::go_on(bool may) {
  may_ = may;
  begin();
}

void BaseCheck::begin() {
  if (busy_ || retrying_ || !may_go_on()) return;
  busy_ = true;
  look();
}

void BaseCheck::look() {
  busy_ = may_go_on();
  if (!busy_) return;
  const BlockRange range{next_, {std::min(blocks_.value - next_.value, kLookBlocks)}};
  looked_ = range.end();
  locate_all(parts_.log, ask_both(range, holds_), [this, range](const Result<History::Located>& r) {
    if (!r) return try_again();
    lost_ = select_both(r->runs, range, [](const PastRun& then, const PastRun& base) {
      return base.source == PastRun::Source::kBase && then.source != PastRun::Source::kBase;
    });
    capture_next();
  });
}

// One after the other, each in a turn of its own: there are few, and no hurry is as great as
// hosts'.
void BaseCheck::capture_next() {
  if (lost_.empty()) next_ = looked_;
  if (lost_.empty() || !may_go_on()) return parts_.executor.in_next_turn([this] { look(); });
  const BlockRange all = lost_.back();
  const BlockRange piece{all.first,
                         std::min(all.count, BlockCount{History::kBeforeImageBlocksMax})};
  capture_base(parts_.log, parts_.other, piece, [this, all, piece](const Result<void>& logged) {
    if (!logged) return try_again();
    lost_.back() = BlockRange::between(piece.end(), all.end());
    if (lost_.back().empty()) lost_.pop_back();
    parts_.executor.in_next_turn([this] { capture_next(); });
  });
}

void BaseCheck::try_again() {
  busy_ = false;
  retrying_ = true;
  parts_.executor.after(kRetryDelay, [this, alive = alive_] {
    if (!*alive) return;
    retrying_ = false;
    begin();
  });
}

}  // namespace mariner::cluster
