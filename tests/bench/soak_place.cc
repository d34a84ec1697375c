#include "tests/bench/soak_place.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr const char* kReinstated = "cut by a reinstatement";
constexpr std::chrono::seconds kAfterFailure{1};
constexpr std::chrono::duration<double> kPauseMax{0.5};

}  // namespace

SoakPlace::SoakPlace(Options options, const StampedContents& contents, SoakCounts& counts)
    : options_(std::move(options)),
      counts_(counts),
      region_(options_.region, contents),
      random_(options_.region.seed) {
  CHECK(options_.number < 256);
}

SoakPlace::~SoakPlace() { abandon(SoakCounts::Clock::now()); }

void SoakPlace::abandon(Time now) {
  for (auto* session : {&session_, &old_}) {
    if (*session) (*session)->cut({.until = now, .why = "abandoned"});
    session->reset();
  }
}

// Between `least_part` of `most` and all of it.
SoakCounts::Clock::duration SoakPlace::part_of(std::chrono::duration<double> most,
                                               double least_part) {
  const double part = std::uniform_real_distribution<>(least_part, 1)(random_);
  return std::chrono::duration_cast<SoakCounts::Clock::duration>(most * part);
}

void SoakPlace::enter(Phase phase, Time now) {
  phase_ = phase;
  ends_ = now + part_of(options_.life * 1.5, 0);  // not all at once
  if (session_ && working_ && phase != Phase::kEnding) work();
}

void SoakPlace::begin(Time now) {
  SoakSession::Options options = options_.session;
  options.origin = origin_;
  options.unit.isid = (options_.number << 16) | (serial_ & 0xffff);
  session_ = std::make_unique<SoakSession>(std::move(options), region_, counts_);
  working_ = false;
  if (auto begun = session_->begin(); !begun) {
    counts_.failure(options_.session.unit.initiator + ": " + begun.error().message);
    session_->cut({.until = now});
    session_.reset();
    begins_ = now + kAfterFailure;
  }
}

void SoakPlace::act(Time now) {
  if (!session_) {
    if (phase_ != Phase::kEnding && now >= begins_) begin(now);
    return;
  }
  const auto state = session_->state();
  if (old_ && state != SoakSession::State::kLoggingIn) {
    old_->cut({.until = now, .why = kReinstated});
    old_.reset();
  }
  switch (state) {
    case SoakSession::State::kWorking: return act_working(now);
    case SoakSession::State::kLeft:
      session_->cut({.until = now});
      session_.reset();
      begins_ = now + part_of(kPauseMax, 0);
      return;
    case SoakSession::State::kLost:
      session_->cut({.until = now + options_.session.afterlife, .why = "failed"});
      session_.reset();
      origin_ = "after a failure";
      begins_ = now + kAfterFailure;
      return;
    case SoakSession::State::kLoggingIn:
    case SoakSession::State::kLeaving: return;
  }
}

void SoakPlace::act_working(Time now) {
  if (phase_ == Phase::kEnding) return session_->leave();
  if (!working_) {
    working_ = true;
    ends_ = now + part_of(options_.life * 1.5, 1.0 / 3);
    work();
  } else if (session_->outstanding() == 0) {
    work();  // blocks were left alone
  }
  if (phase_ == Phase::kMixed && !options_.session.steady && now >= ends_) end_life(now);
}

void SoakPlace::work() {
  using Work = SoakSession::Work;
  session_->work(phase_ == Phase::kFilling ? Work::kFill
                 : phase_ == Phase::kMixed ? Work::kMix
                                           : Work::kVerify);
}

std::string SoakPlace::name_of(Ending ending) {
  switch (ending) {
    case Ending::kLogout: return "after a logout";
    case Ending::kCut: return "after a cut";
    case Ending::kCutSame: return "after a cut, with the same ISID";
    case Ending::kReinstatement: return "by reinstatement";
  }
  return "";
}

void SoakPlace::end_life(Time now) {
  static constexpr std::array kEndings{Ending::kLogout,  Ending::kCut,    Ending::kLogout,
                                       Ending::kCutSame, Ending::kLogout, Ending::kReinstatement};
  const Ending ending = kEndings.at((options_.number + life_++) % kEndings.size());
  if (ending == Ending::kLogout || ending == Ending::kCut) ++serial_;
  origin_ = name_of(ending);
  switch (ending) {
    case Ending::kLogout: return session_->leave();
    case Ending::kCut:
    case Ending::kCutSame:
      counts_.event(ending == Ending::kCut ? "cut" : "cut and back with the same ISID");
      session_->cut({.until = now + options_.session.afterlife, .why = "cut"});
      session_.reset();
      begins_ = ending == Ending::kCut ? now + part_of(kPauseMax, 0) : now;
      return;
    case Ending::kReinstatement:
      counts_.event("reinstatement");
      session_->expect_end(kReinstated);
      old_ = std::move(session_);
      return begin(now);
  }
}

bool SoakPlace::done() const {
  return session_ && working_ && session_->state() == SoakSession::State::kWorking &&
         session_->outstanding() == 0 && (phase_ == Phase::kFilling || region_.all_verified());
}

bool SoakPlace::silent(Time now, SoakCounts::Clock::duration limit) const {
  return session_ && session_->silent(now, limit);
}

void SoakPlace::add_events(std::vector<pollfd>& to) const {
  for (const auto* session : {&session_, &old_}) {
    to.push_back(*session ? (*session)->events() : pollfd{-1, 0, 0});
  }
}

void SoakPlace::serve(const pollfd* events) {
  for (const auto* session : {&session_, &old_}) {
    if (*session && events->revents != 0) (*session)->serve(events->revents);
    ++events;
  }
}

}  // namespace mariner::bench
