// What checks found the file systems of a volume's moments to be, by moment: which verdict counts,
// and which go when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/meta.pb.h"
#include "proto/units.h"

namespace mariner::node {

// "clean", "repairable", "damaged"; "" for none of them.
[[nodiscard]] std::string_view verdict_name(meta::Verdict::Kind kind);
// kInvalidArgument.
[[nodiscard]] Result<meta::Verdict::Kind> verdict_of(std::string_view name);

class VerdictSet {
 public:
  VerdictSet() = default;
  explicit VerdictSet(const std::vector<meta::Verdict>& all) {
    for (const meta::Verdict& verdict : all) add(verdict);
  }

  // A moment never changes: of two checks of it the more thorough one counts (that of the lower
  // level), of equal ones the later. False: it was not taken.
  bool add(const meta::Verdict& verdict);

  // Both return the sequence numbers of what has gone.
  // Moments before `oldest`, which cannot be opened any more.
  std::vector<std::uint64_t> drop_before(SequenceNumber oldest);
  // If there are more than `most`, some go, so that it need not be done again soon: those that
  // stand closest between two of the same verdict, so that every change of the verdict stays, with
  // the oldest and the newest moment, while there are others.
  std::vector<std::uint64_t> thin(std::size_t most);

  // By sequence number.
  [[nodiscard]] const std::map<std::uint64_t, meta::Verdict>& all() const { return all_; }
  // Both ends included.
  [[nodiscard]] std::vector<meta::Verdict> between(SequenceNumber first, SequenceNumber last) const;

 private:
  std::map<std::uint64_t, meta::Verdict> all_;
};

}  // namespace mariner::node
