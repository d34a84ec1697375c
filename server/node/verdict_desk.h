// Where checks of file systems say what they have found, and where it is asked for (server/admin/
// API.md, "Verdicts"). What is kept of it is kept by a shelf.
//
// Loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "proto/histogram.h"
#include "server/admin/past_source.h"
#include "server/node/moments.h"
#include "server/node/verdict_shelf.h"

namespace mariner::node {

class VerdictDesk {
 public:
  static constexpr int kAtOnceMax = 256;  // verdicts of one request

  struct Volume {
    VolumeId id;
    MomentsOf moments;
  };
  // kNotFound, kUnavailable.
  using Find = UniqueFunction<Result<Volume>(const std::string& name)>;
  using List = admin::Answer<api::VerdictList>;

  // All outlive it, and what it has under way.
  VerdictDesk(const Executor& executor, VerdictShelf& shelf, Find find)
      : executor_(executor), shelf_(shelf), find_(std::move(find)) {}
  VerdictDesk(const VerdictDesk&) = delete;
  VerdictDesk& operator=(const VerdictDesk&) = delete;

  // Answers with what is known of the moments then. Those outside the window are left out; if all
  // of them are: kOutsideWindow. kInvalidArgument, kLimit.
  void save(const api::SaveVerdictsRequest& request, List done);
  void list(const api::VerdictsRequest& request, List done);

  // What is known of all the moments of a volume that can still be opened, or could a moment ago.
  [[nodiscard]] Result<std::vector<meta::Verdict>> all(VolumeId volume) const;

  // How long the checks of a volume took that were told of since the start; null: none were.
  [[nodiscard]] const CheckHistogram* durations(VolumeId volume) const;

 private:
  struct Saving;
  struct Listing;
  void find_moments(const std::shared_ptr<Saving>& saving);
  void keep(const std::shared_ptr<Saving>& saving);
  void find_first(const std::shared_ptr<Listing>& listing, const ResolvedMoment& until);
  void answer(Listing& listing, SequenceNumber first);

  const Executor& executor_;
  VerdictShelf& shelf_;
  Find find_;
  std::map<VolumeId, CheckHistogram> durations_;
};

// As an answer.
[[nodiscard]] api::Verdict to_api(const meta::Verdict& verdict);

}  // namespace mariner::node
