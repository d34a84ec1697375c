#include "server/node/verdict_shelf.h"

#include <memory>
#include <utility>

namespace mariner::node {
namespace {

// What `set` has for the moments of `added`, those that fell out again left out.
std::vector<meta::Verdict> as_kept(const VerdictSet& set, const std::vector<meta::Verdict>& added) {
  std::vector<meta::Verdict> out;
  for (const meta::Verdict& verdict : added) {
    const auto kept = set.all().find(verdict.sequence());
    if (kept != set.all().end()) out.push_back(kept->second);
  }
  return out;
}

}  // namespace

Result<VerdictSet> LocalVerdicts::verdicts(VolumeId volume) {
  const Result<std::vector<meta::Verdict>> all = store_.verdicts_of(volume.value);
  if (!all) return all.error();
  return VerdictSet(*all);
}

void LocalVerdicts::keep(VolumeId volume, New added, Done done) {
  Result<VerdictSet> set = verdicts(volume);
  if (!set) return done(set.error());
  for (const meta::Verdict& verdict : added.verdicts) set->add(verdict);
  std::vector<std::uint64_t> gone = set->drop_before(added.oldest);
  const std::vector<std::uint64_t> thinned = set->thin(most_);
  gone.insert(gone.end(), thinned.begin(), thinned.end());
  std::vector<meta::Verdict> kept = as_kept(*set, added.verdicts);
  if (Result<void> r = store_.change_verdicts(volume.value, kept, gone); !r) {
    return done(r.error());
  }
  done(std::move(kept));
}

Result<VerdictSet> ClusterVerdicts::verdicts(VolumeId volume) {
  return VerdictSet(moments_.verdicts(volume));
}

void ClusterVerdicts::keep(VolumeId volume, New added, Done done) {
  const auto kept = std::make_shared<std::vector<meta::Verdict>>();
  const auto change = [kept, added = std::move(added), most = most_](meta::Verdicts& all) {
    VerdictSet set({all.verdicts().begin(), all.verdicts().end()});
    for (const meta::Verdict& verdict : added.verdicts) set.add(verdict);
    set.drop_before(added.oldest);
    set.thin(most);
    all.clear_verdicts();
    for (const auto& [sequence, verdict] : set.all()) *all.add_verdicts() = verdict;
    *kept = as_kept(set, added.verdicts);
  };
  moments_.change_verdicts(volume, change,
                           [kept, done = std::move(done)](const Result<void>& changed) mutable {
                             if (!changed) return done(changed.error());
                             done(std::move(*kept));
                           });
}

}  // namespace mariner::node
