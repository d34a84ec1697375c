// Where the verdicts on the moments of volumes are kept: the store of a standalone server, or the
// one that the nodes of a cluster share.
//
// Owner's thread only; `done` is called once, maybe before the call returns.
#pragma once

#include <vector>

#include "proto/unique_function.h"
#include "server/manager/moment_directory.h"
#include "server/node/meta_store.h"
#include "server/node/verdict_set.h"

namespace mariner::node {

class VerdictShelf {
 public:
  struct New {
    std::vector<meta::Verdict> verdicts;
    SequenceNumber oldest;  // the first moment that can be opened: what is before it goes
  };
  // What the shelf has for the moments of the new ones then.
  using Done = UniqueFunction<void(Result<std::vector<meta::Verdict>>)>;

  virtual ~VerdictShelf() = default;

  [[nodiscard]] virtual Result<VerdictSet> verdicts(VolumeId volume) = 0;
  // Durable when `done` says so.
  virtual void keep(VolumeId volume, New added, Done done) = 0;
};

// Of a standalone server. `store` outlives it.
class LocalVerdicts final : public VerdictShelf {
 public:
  static constexpr std::size_t kVerdictsMax = 10'000;  // of a volume

  explicit LocalVerdicts(MetaStore& store, std::size_t most = kVerdictsMax)
      : store_(store), most_(most) {}
  [[nodiscard]] Result<VerdictSet> verdicts(VolumeId volume) override;
  void keep(VolumeId volume, New added, Done done) override;

 private:
  MetaStore& store_;
  const std::size_t most_;
};

// Of a cluster: all of a volume's stand in one entry of the shared store, which holds no more, and
// keeps every version of it for a while. `moments` outlives it, and what it has under way.
class ClusterVerdicts final : public VerdictShelf {
 public:
  static constexpr std::size_t kVerdictsMax = 2'048;  // of a volume

  explicit ClusterVerdicts(manager::MomentDirectory& moments, std::size_t most = kVerdictsMax)
      : moments_(moments), most_(most) {}
  [[nodiscard]] Result<VerdictSet> verdicts(VolumeId volume) override;
  void keep(VolumeId volume, New added, Done done) override;

 private:
  manager::MomentDirectory& moments_;
  const std::size_t most_;
};

}  // namespace mariner::node
