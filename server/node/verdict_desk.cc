#include "server/node/verdict_desk.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mariner::node {
namespace {

constexpr std::uint32_t kLevelMax = 3;

// But for the moment, which has to be found.
Result<meta::Verdict> parse(const api::Verdict& told, VersionTime now) {
  const std::string what = "the verdict on #" + std::to_string(told.at().sequence()) + ": ";
  const Result<meta::Verdict::Kind> kind = verdict_of(told.verdict());
  if (!kind) return Error{kind.error().code, what + kind.error().message};
  if (told.level() < 1 || told.level() > kLevelMax) {
    return Error{ErrorCode::kInvalidArgument,
                 what + "expected a level of 1, 2 or 3, found " + std::to_string(told.level())};
  }
  meta::Verdict verdict;
  verdict.set_sequence(told.at().sequence());
  verdict.set_kind(*kind);
  verdict.set_level(told.level());
  verdict.set_findings(told.findings());
  verdict.set_blocks_mended(told.blocks_mended());
  verdict.set_checked_ns(told.checked_ns() == 0 ? now.ns : std::min(told.checked_ns(), now.ns));
  verdict.set_duration_ns(told.duration_ns());
  return verdict;
}

api::VerdictList list_of(const std::string& volume, const std::vector<meta::Verdict>& verdicts) {
  api::VerdictList out;
  out.set_schema(1);
  out.set_volume(volume);
  for (const meta::Verdict& verdict : verdicts) *out.add_verdicts() = node::to_api(verdict);
  return out;
}

}  // namespace

api::Verdict to_api(const meta::Verdict& verdict) {
  api::Verdict out;
  *out.mutable_at() = to_api(
      index::IndexMoment{SequenceNumber{verdict.sequence()}, VersionTime{verdict.time_ns()}});
  out.set_verdict(std::string(verdict_name(verdict.kind())));
  out.set_level(verdict.level());
  out.set_findings(verdict.findings());
  out.set_blocks_mended(verdict.blocks_mended());
  out.set_checked_ns(verdict.checked_ns());
  out.set_duration_ns(verdict.duration_ns());
  return out;
}

struct VerdictDesk::Saving {
  std::string name;
  Volume volume;
  bool dry_run = false;
  std::vector<meta::Verdict> told;  // whose moments are not found yet, the last first
  VerdictShelf::New found;
  std::optional<Error> outside;  // why one was left out
  List done;
};

void VerdictDesk::save(const api::SaveVerdictsRequest& request, List done) {
  Result<Volume> volume = find_(request.volume());
  if (!volume) return done(volume.error());
  if (request.verdicts_size() == 0) {
    return done(Error{ErrorCode::kInvalidArgument, "no verdict was given"});
  }
  if (request.verdicts_size() > kAtOnceMax) {
    return done(Error{ErrorCode::kLimit, "at most " + std::to_string(kAtOnceMax) +
                                             " verdicts at one time, found " +
                                             std::to_string(request.verdicts_size())});
  }
  const auto saving = std::make_shared<Saving>();
  saving->name = request.volume();
  saving->volume = *std::move(volume);
  saving->dry_run = request.dry_run();
  saving->done = std::move(done);
  for (const api::Verdict& told : request.verdicts()) {
    Result<meta::Verdict> verdict = parse(told, executor_.wall_time());
    if (!verdict) return saving->done(verdict.error());
    saving->told.push_back(*std::move(verdict));
  }
  std::ranges::reverse(saving->told);
  find_moments(saving);
}

// One after the other: which moment the number means, and when that was.
void VerdictDesk::find_moments(const std::shared_ptr<Saving>& saving) {
  if (saving->told.empty()) return keep(saving);
  api::MomentSpec at;
  at.set_sequence(saving->told.back().sequence());
  resolve_moment(saving->volume.moments, at, executor_,
                 [this, saving](const Result<ResolvedMoment>& moment) {
                   meta::Verdict verdict = std::move(saving->told.back());
                   saving->told.pop_back();
                   if (moment) {
                     verdict.set_sequence(moment->at.sequence.value);
                     verdict.set_time_ns(moment->at.time.ns);
                     saving->found.verdicts.push_back(std::move(verdict));
                     saving->found.oldest = moment->oldest.sequence;
                   } else if (moment.error().code == ErrorCode::kOutsideWindow) {
                     saving->outside = moment.error();
                   } else {
                     return saving->done(moment.error());
                   }
                   find_moments(saving);
                 });
}

void VerdictDesk::keep(const std::shared_ptr<Saving>& saving) {
  if (saving->found.verdicts.empty()) return saving->done(*saving->outside);
  if (saving->dry_run) return saving->done(list_of(saving->name, saving->found.verdicts));
  for (const meta::Verdict& verdict : saving->found.verdicts) {
    if (verdict.duration_ns() != 0) {
      durations_[saving->volume.id].observe(verdict.duration_ns());
    }
  }
  shelf_.keep(saving->volume.id, std::move(saving->found),
              [saving](const Result<std::vector<meta::Verdict>>& kept) {
                if (!kept) return saving->done(kept.error());
                saving->done(list_of(saving->name, *kept));
              });
}

// A list that is being put together.
struct VerdictDesk::Listing {
  std::string name;
  Volume volume;
  api::MomentSpec since;
  SequenceNumber last{};
  List done;
};

void VerdictDesk::list(const api::VerdictsRequest& request, List done) {
  Result<Volume> volume = find_(request.volume());
  if (!volume) return done(volume.error());
  const auto listing = std::make_shared<Listing>(
      Listing{request.volume(), *std::move(volume), request.since(), {}, std::move(done)});
  resolve_moment(listing->volume.moments, or_now(request.until()), executor_,
                 [this, listing](const Result<ResolvedMoment>& until) {
                   if (!until) return listing->done(until.error());
                   listing->last = until->at.sequence;
                   find_first(listing, *until);
                 });
}

void VerdictDesk::find_first(const std::shared_ptr<Listing>& listing, const ResolvedMoment& until) {
  if (listing->since.at_case() == api::MomentSpec::AT_NOT_SET) {
    return answer(*listing, until.oldest.sequence);
  }
  // A start before the history begins means from there.
  api::MomentSpec since = listing->since;
  if (since.has_time_ns()) since.set_time_ns(std::max(since.time_ns(), until.oldest.time.ns));
  resolve_moment(listing->volume.moments, since, executor_,
                 [this, listing](const Result<ResolvedMoment>& first) {
                   if (!first) return listing->done(first.error());
                   answer(*listing, first->at.sequence);
                 });
}

void VerdictDesk::answer(Listing& listing, SequenceNumber first) {
  const Result<VerdictSet> known = shelf_.verdicts(listing.volume.id);
  if (!known) return listing.done(known.error());
  listing.done(list_of(listing.name, known->between(first, listing.last)));
}

Result<std::vector<meta::Verdict>> VerdictDesk::all(VolumeId volume) const {
  const Result<VerdictSet> known = shelf_.verdicts(volume);
  if (!known) return known.error();
  return known->between({}, SequenceNumber{UINT64_MAX});
}

const CheckHistogram* VerdictDesk::durations(VolumeId volume) const {
  const auto found = durations_.find(volume);
  return found == durations_.end() ? nullptr : &found->second;
}

}  // namespace mariner::node
