// The marks and views of a cluster's volumes, as the store that the nodes share says them: what is
// to be kept of their history, whoever serves or logs them. And what is known of their moments.
//
// Owner's thread only.
#pragma once

#include <functional>
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
// A meta::Verdicts: all of a volume's.
[[nodiscard]] std::string verdicts_key(VolumeId volume);

class MomentDirectory {
 public:
  static constexpr std::size_t kMarksMax = 1024;  // of all volumes
  static constexpr std::size_t kViewsMax = 255;

  static constexpr int kTriesMax = 8;  // of a change that others come before

  using Done = UniqueFunction<void(Result<void>)>;
  using ChangeVerdicts = std::function<void(meta::Verdicts&)>;

  // Both outlive it, and what it has under way.
  MomentDirectory(ClusterStore& store, const ClusterView& view) : store_(store), view_(view) {}

  // As ClusterView::known(): otherwise there may be more than is known here.
  [[nodiscard]] bool known() const { return view_.known(); }
  // All that the view knows, by name. What cannot be understood counts as not there, but for
  // readable().
  [[nodiscard]] std::vector<meta::Mark> marks(VolumeId volume) const;
  [[nodiscard]] std::vector<meta::View> views() const;
  // Whether all of it could be understood: if not, a mark of the volume may be among the rest.
  [[nodiscard]] bool readable(VolumeId volume) const;

  // It has happened when `done` says so, and not otherwise, unless the error is kUnavailable: then
  // it may have. kAlreadyExists; kLimit; kNotFound; kBusy: another one has the name by now, of
  // which this node has not heard.
  void add(const meta::Mark& mark, Done done);
  void add(const meta::View& view, Done done);
  void remove_mark(VolumeId volume, const std::string& name, Done done);
  void remove_view(const std::string& name, Done done);

  // What checks found; what cannot be understood is not known.
  [[nodiscard]] std::vector<meta::Verdict> verdicts(VolumeId volume) const;
  // Puts what `change` makes of them in their place, with no other change between the two. It may
  // be called again. kUnavailable: it may have happened; also when others come first again and
  // again. kInvalidArgument: they are more than an entry holds.
  void change_verdicts(VolumeId volume, ChangeVerdicts change, Done done);

 private:
  void change_verdicts(VolumeId volume, ChangeVerdicts change, int tries, Done done);
  void add(std::string key, std::string value, std::string what, Done done);
  void remove(std::string key, std::string what, Done done);

  ClusterStore& store_;
  const ClusterView& view_;
};

}  // namespace mariner::manager
