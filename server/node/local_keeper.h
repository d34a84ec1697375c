// The history keeper of a standalone server: its volumes, views and marks are its own.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/node/history_keeper.h"
#include "server/node/meta_store.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"

namespace mariner::node {

class LocalKeeper final : public HistoryKeeper {
 public:
  // Takes a view away with its sessions.
  using Unexpose = UniqueFunction<void(const std::string& name)>;

  // All outlive it.
  LocalKeeper(VolumeSet& volumes, const ViewSet& views, MetaStore& store, Unexpose unexpose)
      : volumes_(volumes), views_(views), store_(store), unexpose_(std::move(unexpose)) {}

  [[nodiscard]] std::vector<VolumeId> volumes() const override;
  [[nodiscard]] std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override;
  [[nodiscard]] std::optional<Window> window(VolumeId volume) const override;
  [[nodiscard]] bool knows() const override { return true; }
  [[nodiscard]] Result<std::vector<meta::Mark>> marks(VolumeId volume) const override;
  [[nodiscard]] std::vector<meta::View> views(VolumeId volume) const override;
  [[nodiscard]] std::vector<index::IndexMoment> clean_moments(VolumeId volume) const override;
  void drop_view(const std::string& name) override { unexpose_(name); }
  bool drop_mark(const meta::Mark& mark) override;

 private:
  VolumeSet& volumes_;
  const ViewSet& views_;
  MetaStore& store_;
  Unexpose unexpose_;
};

}  // namespace mariner::node
