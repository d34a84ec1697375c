#include "server/node/verdict_set.h"

#include <optional>
#include <string>

namespace mariner::node {
namespace {

constexpr std::size_t kSlackShare = 16;  // of the bound: so much goes beyond what must

struct Kept {
  std::uint64_t sequence = 0;
  std::uint64_t time_ns = 0;
  meta::Verdict::Kind kind{};
};

// The one whose neighbours are closest to each other: of those between two like themselves, or if
// there is none, of all that have two.
std::size_t least_missed(const std::vector<Kept>& all) {
  std::optional<std::size_t> among_equals;
  std::optional<std::size_t> among_all;
  const auto closer = [&all](std::size_t i, const std::optional<std::size_t>& best) {
    const auto gap = [&all](std::size_t at) { return all[at + 1].time_ns - all[at - 1].time_ns; };
    return !best || gap(i) < gap(*best);
  };
  for (std::size_t i = 1; i + 1 < all.size(); ++i) {
    if (closer(i, among_all)) among_all = i;
    const bool equals = all[i - 1].kind == all[i].kind && all[i].kind == all[i + 1].kind;
    if (equals && closer(i, among_equals)) among_equals = i;
  }
  return among_equals.value_or(among_all.value_or(0));
}

}  // namespace

std::string_view verdict_name(meta::Verdict::Kind kind) {
  switch (kind) {
    case meta::Verdict::CLEAN: return "clean";
    case meta::Verdict::REPAIRABLE: return "repairable";
    case meta::Verdict::DAMAGED: return "damaged";
    default: return "";
  }
}

Result<meta::Verdict::Kind> verdict_of(std::string_view name) {
  for (const auto kind :
       {meta::Verdict::CLEAN, meta::Verdict::REPAIRABLE, meta::Verdict::DAMAGED}) {
    if (verdict_name(kind) == name) return kind;
  }
  return Error{ErrorCode::kInvalidArgument,
               "expected clean, repairable or damaged, found \"" + std::string(name) + "\""};
}

bool VerdictSet::add(const meta::Verdict& verdict) {
  const auto [known, added] = all_.try_emplace(verdict.sequence(), verdict);
  if (added) return true;
  const meta::Verdict& before = known->second;
  if (before.level() < verdict.level()) return false;
  if (before.level() == verdict.level() && before.checked_ns() > verdict.checked_ns()) return false;
  known->second = verdict;
  return true;
}

std::vector<std::uint64_t> VerdictSet::drop_before(SequenceNumber oldest) {
  std::vector<std::uint64_t> gone;
  while (!all_.empty() && all_.begin()->first < oldest.value) {
    gone.push_back(all_.begin()->first);
    all_.erase(all_.begin());
  }
  return gone;
}

std::vector<std::uint64_t> VerdictSet::thin(std::size_t most) {
  std::vector<std::uint64_t> gone;
  if (all_.size() <= most) return gone;
  std::vector<Kept> left;
  left.reserve(all_.size());
  for (const auto& [sequence, verdict] : all_) {
    left.push_back({sequence, verdict.time_ns(), verdict.kind()});
  }
  while (left.size() > most - most / kSlackShare) {
    const std::size_t one = least_missed(left);
    gone.push_back(left[one].sequence);
    all_.erase(left[one].sequence);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(one));
  }
  return gone;
}

std::vector<meta::Verdict> VerdictSet::between(SequenceNumber first, SequenceNumber last) const {
  std::vector<meta::Verdict> out;
  for (auto at = all_.lower_bound(first.value); at != all_.end() && at->first <= last.value; ++at) {
    out.push_back(at->second);
  }
  return out;
}

}  // namespace mariner::node
