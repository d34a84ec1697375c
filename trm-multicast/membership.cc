#include "trm-multicast/membership.h"

#include <algorithm>

namespace mariner::trm {
namespace {

constexpr int kProbesLateMax = 4;  // intervals without one break a row of them

}  // namespace

std::string_view describe(Dismissal why) {
  switch (why) {
    case Dismissal::kDeaf: return "multicast does not get through to it";
    case Dismissal::kStuck: return "it makes no progress";
    case Dismissal::kSlow: return "it takes less than half of what another receiver takes";
    case Dismissal::kCannotListen: return "it cannot listen";
    case Dismissal::kDisconnected: break;
  }
  return "its connection has ended";
}

void Membership::reported(const Report& report, Nanoseconds now) {
  const bool first = !last_;
  if (first || report.probes != last_->probes) {
    // A row of probes begins with the first one, or behind a gap.
    if (!probe_at_ || now - *probe_at_ > kProbesLateMax * options_.probe_interval) {
      probes_before_ = report.probes == 0 ? 0 : report.probes - 1;
    }
    if (report.probes > 0) probe_at_ = now;
  }
  if (first || report.bytes != last_->bytes) {
    heard_at_sent_ = sent_;
    unheard_since_.reset();
  }
  if (first || report.through != last_->through) through_at_ = now;
  // What carries its payload, and stands before what it lacks, is on its way to that.
  if (first || report.through != last_->through || report.frames != last_->frames)
    progressed_ = now;
  last_ = report;
}

bool Membership::ready(Nanoseconds now) const {
  return last_ && probe_at_ && may_come_back(now) &&
         now - *probe_at_ <= kProbesLateMax * options_.probe_interval &&
         last_->probes - probes_before_ >= options_.probes_min;
}

void Membership::admitted(std::uint64_t sent, Nanoseconds now) {
  sent_ = heard_at_sent_ = sent;
  unheard_since_.reset();
  progressed_ = through_at_ = now;
  admitted_at_ = now;
}

std::optional<Dismissal> Membership::fault(const Health& health, Nanoseconds now) {
  sent_ = health.sent;
  if (sent_ == heard_at_sent_) {
    unheard_since_.reset();
  } else if (!unheard_since_) {
    unheard_since_ = now;
  }
  if (!health.lacks) through_at_ = now;
  if (!health.lacks || health.moves) progressed_ = now;
  if (unheard_since_ && now - *unheard_since_ >= options_.deaf_max) {
    return Dismissal::kDeaf;
  }
  if (now - progressed_ >= options_.stuck_max || now - through_at_ >= options_.stuck_moving_max) {
    return Dismissal::kStuck;
  }
  if (health.lags) return Dismissal::kSlow;
  return std::nullopt;
}

void Membership::dismissed(bool punished, Nanoseconds now) {
  // A row of probes is to begin anew.
  probe_at_.reset();
  if (!punished) return;
  // Who has done well for long is forgiven.
  if (admitted_at_ && now - *admitted_at_ >= options_.again_max) again_ = {};
  admitted_at_.reset();
  again_ = std::clamp(again_ * 2, options_.again_min, options_.again_max);
  not_before_ = now + again_;
}

}  // namespace mariner::trm
