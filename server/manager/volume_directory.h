// Which volumes the cluster has, as the store that the nodes share says it: what each is, beside
// the record of who does what for it (volume_record.h).
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/meta.pb.h"
#include "server/manager/cluster_store.h"
#include "server/manager/cluster_view.h"
#include "server/manager/volume_record.h"

namespace mariner::manager {

// What a volume is: a meta::Volume.
[[nodiscard]] std::string definition_key(VolumeId volume);
// The volume of a name: its number.
[[nodiscard]] std::string name_key(std::string_view name);

// The nodes that may serve it, the first rather than the others.
[[nodiscard]] std::vector<std::uint32_t> targets_of(const meta::Volume& volume);

class VolumeDirectory {
 public:
  using Created = UniqueFunction<void(Result<meta::Volume>)>;

  // Both outlive it, and what it has under way.
  VolumeDirectory(ClusterStore& store, const ClusterView& view) : store_(store), view_(view) {}

  // All that the view knows. What cannot be understood is left out, with an error to say so.
  [[nodiscard]] std::vector<meta::Volume> volumes(std::vector<Error>* left_out = nullptr) const;
  // The record of a volume, as the view knows it.
  [[nodiscard]] std::optional<VolumeRecord> record(VolumeId volume) const;

  // Creates the volume, whose name, uuid and nodes (cluster()) are given, with a number that was
  // never given before. It has happened when `done` says so, and not otherwise, unless the error is
  // kUnavailable: then it may have. kAlreadyExists.
  void create(meta::Volume volume, Created done);

 private:
  void try_create(meta::Volume volume, int tries_left, Created done);
  void find_out(meta::Volume volume, std::string why, Created done);

  ClusterStore& store_;
  const ClusterView& view_;
};

}  // namespace mariner::manager
