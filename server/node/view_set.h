// The exposed views of a node: each is a target of its own, with an identity of its own.
//
// A read-only view is a layer over the volume's history; a writable one a hidden volume whose base
// is that moment, so that what is written to it is as durable as anything. One that was repaired
// has such a volume, too, for the repaired blocks; hosts write to it if it is writable, as much as
// the view's bound allows (server/volume/bounded_layer.h). Views survive restarts until they are
// unexposed or their time to live ends, and keep the size that the volume had when they were
// exposed. Owner's thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/meta.pb.h"
#include "server/node/volume_set.h"
#include "server/volume/repair_source.h"

namespace mariner::node {

struct ServedView {
  meta::View meta;
  std::string iqn;
  scsi::Identity identity;
  std::shared_ptr<volume::Volume> overlay;  // of a writable or repaired view
  // Why it is not served now; then there is no device. What it shows is kept all the same.
  std::optional<Error> failure;
  std::shared_ptr<scsi::Device> device;
};

// kUnavailable: what whoever asks for a view that does not serve is told.
Error not_served(const ServedView& view);

struct NewView {
  std::string name;  // empty: "<volume>-<sequence>", made unique
  index::IndexMoment at;
  VersionTime asked;  // what was asked for, if a time
  bool writable = false;
  std::uint64_t overlay_bytes_max = 0;              // of a writable one; 0: the set's default
  bool keep = false;                                // a full log does not drop it
  VersionTime expires;                              // 0: never
  std::shared_ptr<volume::RepairSource> repairs{};  // null: none
  std::uint64_t repaired_blocks = 0;
  // Of a view of a group, of which this is the part of one volume: the group's name, and the
  // view's (empty: "<group>-<number>"). The part's own is made of that and the volume's.
  std::string group{};
  std::string group_view{};
};

// Views of one group at one moment are there together, or none of them is.
class ViewSet {
 public:
  static constexpr std::size_t kViewsMax = 255;

  struct Options {
    std::string iqn_base;
    // What hosts may fill of the overlay of a writable view of which nothing else is asked. 0: no
    // bound.
    std::uint64_t overlay_bytes_max = 0;
  };

  ViewSet(VolumeSet& volumes, MetaStore& store, Executor& executor, Log& log, Options options);

  // Opens what the store remembers, and drops overlays that belong to no view.
  Result<void> start();
  // Serves the views of a volume that could not be served before it was.
  void serve_again(const ServedVolume& volume);

  using Exposed = UniqueFunction<void(Result<ServedView*>)>;
  // Only when all repairs are in its overlay; without any, at once.
  void expose(const ServedVolume& volume, const NewView& request, Exposed done);
  // Of a view without repairs.
  Result<ServedView*> expose(const ServedVolume& volume, const NewView& request);
  // The parts of a view of a group. After an error there is none.
  struct OfVolume {
    const ServedVolume* volume;
    NewView view;
  };
  Result<std::vector<ServedView*>> expose_together(const std::vector<OfVolume>& parts);
  // What that would make, after every check.
  [[nodiscard]] Result<std::vector<meta::View>> plan_together(
      const std::vector<OfVolume>& parts) const;
  // Of views exposed from now on.
  void set_overlay_default(std::uint64_t bytes_max) { options_.overlay_bytes_max = bytes_max; }
  // What its overlay would be bounded by; 0: by nothing.
  [[nodiscard]] std::uint64_t overlay_bytes_max(const NewView& request) const;
  // The caller has closed the sessions of all together(name).
  Result<void> unexpose(const std::string& name);
  // The names of all views that go with this one, which is itself a view, or a view of a group;
  // none: there is no such view.
  [[nodiscard]] std::vector<std::string> together(const std::string& name) const;
  // The names of views whose time is over; of a group's, that of the whole.
  [[nodiscard]] std::vector<std::string> expired(VersionTime now) const;

  [[nodiscard]] ServedView* find(const std::string& name);
  [[nodiscard]] ServedView* find_target(std::string_view iqn);
  [[nodiscard]] std::size_t count_of(std::uint32_t volume_id) const;
  [[nodiscard]] const std::map<std::string, ServedView>& all() const { return views_; }

 private:
  // One that is being repaired.
  struct Mending;
  void mend(const std::shared_ptr<Mending>& mending);
  void give_up(const std::shared_ptr<Mending>& mending, const Error& error);
  void finish(const std::shared_ptr<Mending>& mending);

  // kAlreadyExists, kLimit: there may not be one more of that name.
  [[nodiscard]] Result<void> check_new(const std::string& name) const;
  [[nodiscard]] Result<meta::View> plan(const ServedVolume& volume, const NewView& request) const;
  [[nodiscard]] std::string group_view_name(const NewView& request) const;
  Result<void> open(const meta::View& meta);
  void bound(const ServedView& view) const;
  [[nodiscard]] ServedView made_of(const ServedVolume& volume, const meta::View& meta,
                                   std::shared_ptr<volume::Volume> overlay) const;
  Result<void> serve(const ServedVolume& volume, ServedView& view);
  Result<ServedView*> add(const ServedVolume& volume, const meta::View& meta,
                          std::shared_ptr<volume::Volume> overlay);

  VolumeSet& volumes_;
  MetaStore& store_;
  Executor& executor_;
  Log& log_;
  Options options_;
  std::map<std::string, ServedView> views_;
};

}  // namespace mariner::node
