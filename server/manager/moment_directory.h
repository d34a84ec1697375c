// The marks and views of a cluster's volumes, as the store that the nodes share says them: what is
// to be kept of their history, whoever serves or logs them.
//
// Owner's thread only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/meta.pb.h"
#include "server/manager/cluster_store.h"
#include "server/manager/cluster_view.h"

namespace mariner::manager {

// A meta::Mark.
[[nodiscard]] std::string mark_key(VolumeId volume, std::string_view name);
// A meta::View. Views of all volumes share their names.
[[nodiscard]] std::string view_key(std::string_view name);

class MomentDirectory {
 public:
  static constexpr std::size_t kMarksMax = 1024;  // of all volumes
  static constexpr std::size_t kViewsMax = 255;

  using Done = UniqueFunction<void(Result<void>)>;

  // Both outlive it, and what it has under way.
  MomentDirectory(ClusterStore& store, const ClusterView& view) : store_(store), view_(view) {}

  // All that the view knows, by name. What cannot be understood counts as not there, but for
  // readable().
  [[nodiscard]] std::vector<meta::Mark> marks(VolumeId volume) const;
  [[nodiscard]] std::vector<meta::View> views() const;
  // Whether all of it could be understood: if not, a mark of the volume may be among the rest.
  [[nodiscard]] bool readable(VolumeId volume) const;

  // It has happened when `done` says so, and not otherwise, unless the error is kUnavailable: then
  // it may have. kAlreadyExists; kLimit; kNotFound.
  void add(const meta::Mark& mark, Done done);
  void add(const meta::View& view, Done done);
  void remove_mark(VolumeId volume, const std::string& name, Done done);
  void remove_view(const std::string& name, Done done);

 private:
  void add(std::string key, std::string value, std::string what, Done done);
  void remove(std::string key, std::string what, Done done);

  ClusterStore& store_;
  const ClusterView& view_;
};

}  // namespace mariner::manager
