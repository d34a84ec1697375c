#include "server/node/view_set.h"

#include <set>
#include <utility>

#include "proto/check.h"
#include "server/node/identity.h"
#include "server/node/names.h"
#include "server/node/reservation_store.h"
#include "server/node/view_rules.h"
#include "server/volume/read_only_layer.h"

namespace mariner::node {

ViewSet::ViewSet(VolumeSet& volumes, MetaStore& store, Executor& executor, Log& log,
                 Options options)
    : volumes_(volumes),
      store_(store),
      executor_(executor),
      log_(log),
      options_(std::move(options)) {}

namespace {

// Its volume, its overlay or its moment.
bool is_gone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kOutsideWindow;
}

}  // namespace

Error not_served(const ServedView& view) {
  std::string message = "the view " + view.meta.name() + " is not served";
  if (view.failure) message += ": " + view.failure->message;
  return Error{ErrorCode::kUnavailable, std::move(message)};
}

Result<void> ViewSet::start() {
  Result<std::vector<meta::View>> views = store_.views();
  if (!views) return views.error();
  std::vector<std::uint32_t> claimed;
  std::set<std::string> broken;  // views of groups of which a part is gone
  for (const meta::View& meta : *views) {
    if (Result<void> r = open(meta); !r) {
      // What was written to it would be given up with the log's records, as nobody's.
      if (!is_gone(r.error())) {
        return Error{r.error().code, "the view " + meta.name() + ": " + r.error().message};
      }
      if (!meta.group_view().empty()) broken.insert(meta.group_view());
      log_.warning("a view cannot be opened again and is dropped",
                   {{"view", meta.name()}, {"error", to_string(r.error())}});
      if (Result<void> removed = store_.remove_view(meta.name()); !removed) return removed;
      continue;
    }
    if (meta.overlay_volume_id() != 0) claimed.push_back(meta.overlay_volume_id());
  }
  volumes_.remove_orphans(claimed);
  for (const std::string& name : broken) {
    if (together(name).empty()) continue;
    if (Result<void> r = unexpose(name); !r) return r;
  }
  return {};
}

// What it shows is kept from then on, whether or not it can be served.
Result<void> ViewSet::open(const meta::View& meta) {
  const ServedVolume* const volume = volumes_.find(meta.volume_id());
  if (volume == nullptr || volume->volume == nullptr) {
    return Error{ErrorCode::kNotFound, "its volume is gone"};
  }
  meta::View known = meta;
  if (known.size_bytes() == 0) {  // of a version in which no volume could grow
    known.set_size_bytes(volume->meta.size_bytes());
    if (Result<void> r = store_.put_view(known); !r) return r;
  }
  std::shared_ptr<volume::Volume> overlay;
  if (meta.overlay_volume_id() != 0) {
    Result<std::shared_ptr<volume::Volume>> opened =
        volumes_.open_overlay(meta.overlay_volume_id());
    if (!opened) return opened.error();
    overlay = std::move(*opened);
  }
  ServedView& view = views_[meta.name()] = made_of(*volume, known, std::move(overlay));
  if (Result<void> r = serve(*volume, view); !r) {
    view.failure = r.error();
    log_.error("a view is not served", {{"view", meta.name()}, {"error", to_string(r.error())}});
  }
  return {};
}

void ViewSet::serve_again(const ServedVolume& volume) {
  for (auto& [name, view] : views_) {
    if (view.meta.volume_id() != volume.meta.id() || !view.failure) continue;
    if (Result<void> r = serve(volume, view); !r) {
      view.failure = r.error();
      log_.error("a view is not served", {{"view", name}, {"error", to_string(r.error())}});
    } else {
      log_.info("a view is served again", {{"view", name}});
    }
  }
}

Result<ServedView*> ViewSet::add(const ServedVolume& volume, const meta::View& meta,
                                 std::shared_ptr<volume::Volume> overlay) {
  ServedView view = made_of(volume, meta, std::move(overlay));
  if (Result<void> r = serve(volume, view); !r) return r.error();
  ServedView& added = views_[meta.name()];
  added = std::move(view);
  return &added;
}

ServedView ViewSet::made_of(const ServedVolume& volume, const meta::View& meta,
                            std::shared_ptr<volume::Volume> overlay) const {
  ServedView view;
  view.meta = meta;
  view.iqn = view_iqn(options_.iqn_base, meta.name());
  view.identity = identity_of(meta.uuid(), view.iqn, meta.name(), "VIEW");
  view.identity.target_ports = volume.identity.target_ports;
  view.overlay = std::move(overlay);
  if (view.overlay != nullptr && meta.writable()) bound(view);
  return view;
}

// Its target.
Result<void> ViewSet::serve(const ServedVolume& volume, ServedView& view) {
  if (!volume.serves()) return not_served(volume);
  const meta::View& meta = view.meta;
  auto reservations = reservation_options(store_, MetaStore::unit_of_view(meta.name()));
  if (!reservations) return reservations.error();
  std::vector<scsi::LogicalUnitOptions> units(1);
  if (view.overlay == nullptr) {
    units[0].layer = volume.volume->view_layer(SequenceNumber{meta.sequence()}, meta.size_bytes());
  } else if (meta.writable()) {
    units[0].layer = view.overlay->live_layer();
  } else {
    units[0].layer = std::make_shared<volume::ReadOnlyLayer>(view.overlay->live_layer());
  }
  units[0].disk.identity = view.identity;
  units[0].disk.block_bytes = volume.meta.block_size();
  units[0].disk.clock = [executor = &executor_] { return executor->monotonic_time(); };
  units[0].reservations = *std::move(reservations);
  view.device = volumes_.make_device(volume.meta.id(), std::move(units));
  view.failure.reset();
  return {};
}

void ViewSet::bound(const ServedView& view) const {
  const std::uint64_t bytes_max = view.meta.overlay_bytes_max();
  if (bytes_max == 0) return;  // of a version in which overlays had none
  view.overlay->bound(bytes_max, [&log = log_, name = view.meta.name(),
                                  bytes_max](std::uint64_t used_bytes) {
    log.warning(
        "the overlay of a view fills up: writes to it fail with SPACE ALLOCATION FAILED when it is "
        "full",
        {{"view", name}, {"used_bytes", used_bytes}, {"limit_bytes", bytes_max}});
  });
}

Result<void> ViewSet::check_new(const std::string& name) const {
  if (views_.size() >= kViewsMax) {
    return Error{ErrorCode::kLimit, "there are " + std::to_string(kViewsMax) +
                                        " views already, which is the limit; unexpose one"};
  }
  if (Result<void> r = check_volume_name(name); !r) return r.error();
  if (!together(name).empty()) {
    return Error{ErrorCode::kAlreadyExists, "a view named " + name + " exists already"};
  }
  return {};
}

Result<meta::View> ViewSet::plan(const ServedVolume& volume, const NewView& request) const {
  CHECK(volume.volume != nullptr);
  if (!volume.serves()) return not_served(volume);
  std::string name = request.name;
  if (name.empty()) {
    name = free_view_name(volume.meta.name(), request.at.sequence,
                          [this](const std::string& other) { return !together(other).empty(); });
  }
  if (Result<void> r = check_new(name); !r) return r.error();
  meta::View meta;
  meta.set_group(request.group);
  meta.set_group_view(request.group_view);
  meta.set_name(name);
  meta.set_volume_id(volume.meta.id());
  meta.set_sequence(request.at.sequence.value);
  meta.set_time_ns(request.at.time.ns);
  meta.set_asked_ns(request.asked.ns);
  meta.set_writable(request.writable);
  meta.set_size_bytes(volume.meta.size_bytes());
  meta.set_uuid(new_uuid());
  meta.set_expires_ns(request.expires.ns);
  meta.set_created_ns(executor_.wall_time().ns);
  meta.set_repaired_blocks(request.repaired_blocks);
  meta.set_overlay_bytes_max(overlay_bytes_max(request));
  meta.set_keep(request.keep);
  return meta;
}

std::uint64_t ViewSet::overlay_bytes_max(const NewView& request) const {
  if (!request.writable) return 0;
  return request.overlay_bytes_max != 0 ? request.overlay_bytes_max : options_.overlay_bytes_max;
}

Result<ServedView*> ViewSet::expose(const ServedVolume& volume, const NewView& request) {
  CHECK(request.repairs == nullptr);
  Result<meta::View> meta = plan(volume, request);
  if (!meta) return meta.error();
  std::shared_ptr<volume::Volume> overlay;
  if (request.writable) {
    std::uint32_t id = 0;
    Result<std::shared_ptr<volume::Volume>> created =
        volumes_.create_overlay(volume, request.at.sequence, id);
    if (!created) return created.error();
    overlay = *created;
    meta->set_overlay_volume_id(id);
  }
  if (Result<void> r = store_.put_view(*meta); !r) {
    if (overlay != nullptr) volumes_.remove_overlay(meta->overlay_volume_id(), std::move(overlay));
    return r.error();
  }
  return add(volume, *meta, std::move(overlay));
}

struct ViewSet::Mending {
  meta::View meta;
  std::shared_ptr<volume::Volume> overlay;
  std::shared_ptr<const void> pin;  // keeps the moment, until the view does
  std::shared_ptr<volume::RepairSource> repairs;
  std::size_t left = 0;  // writes under way
  Exposed done;
};

void ViewSet::expose(const ServedVolume& volume, const NewView& request, Exposed done) {
  if (request.repairs == nullptr) return done(expose(volume, request));
  Result<meta::View> meta = plan(volume, request);
  if (!meta) return done(meta.error());
  const auto pin = volume.volume->pin(request.at.sequence);
  if (!pin) return done(pin.error());
  std::uint32_t id = 0;
  Result<std::shared_ptr<volume::Volume>> overlay =
      volumes_.create_overlay(volume, request.at.sequence, id);
  if (!overlay) return done(overlay.error());
  meta->set_overlay_volume_id(id);
  mend(std::make_shared<Mending>(
      Mending{*std::move(meta), *std::move(overlay), *pin, request.repairs, 0, std::move(done)}));
}

// Writes the next blocks; what a crash interrupts belongs to no view, and goes at the next start.
void ViewSet::mend(const std::shared_ptr<Mending>& mending) {
  Result<std::vector<volume::RepairedRun>> runs = mending->repairs->next();
  if (!runs) return give_up(mending, runs.error());
  if (runs->empty()) return finish(mending);
  mending->left = runs->size();
  for (volume::RepairedRun& run : *runs) {
    mending->overlay->live().write(to_bytes(run.extent), std::move(run.bytes),
                                   [this, mending](const Result<void>& written) {
                                     if (!written) mending->repairs->fail(written.error());
                                     if (--mending->left > 0) return;
                                     if (const auto& failure = mending->repairs->failure())
                                       return give_up(mending, *failure);
                                     mend(mending);
                                   });
  }
}

void ViewSet::give_up(const std::shared_ptr<Mending>& mending, const Error& error) {
  volumes_.remove_overlay(mending->meta.overlay_volume_id(), std::move(mending->overlay));
  mending->done(error);
}

// Time has passed.
void ViewSet::finish(const std::shared_ptr<Mending>& mending) {
  const ServedVolume* const volume = volumes_.find(mending->meta.volume_id());
  if (volume == nullptr || volume->volume == nullptr) {
    return give_up(mending, {ErrorCode::kNotFound, "its volume is gone"});
  }
  if (Result<void> r = check_new(mending->meta.name()); !r) return give_up(mending, r.error());
  if (Result<void> r = store_.put_view(mending->meta); !r) return give_up(mending, r.error());
  mending->done(add(*volume, mending->meta, std::move(mending->overlay)));
}

Result<void> ViewSet::unexpose(const std::string& name) {
  const std::vector<std::string> names = together(name);
  if (names.empty()) return Error{ErrorCode::kNotFound, "there is no view " + name};
  if (Result<void> r = store_.remove_views(names); !r) return r;
  for (const std::string& each : names) {
    ServedView& view = views_.at(each);
    view.device.reset();
    if (view.meta.overlay_volume_id() != 0) {
      volumes_.remove_overlay(view.meta.overlay_volume_id(), std::move(view.overlay));
    }
    views_.erase(each);
  }
  return {};
}

std::vector<std::string> ViewSet::expired(VersionTime now) const {
  std::set<std::string> names;
  for (const auto& [name, view] : views_) {
    if (view.meta.expires_ns() == 0 || view.meta.expires_ns() > now.ns) continue;
    names.insert(view.meta.group_view().empty() ? name : view.meta.group_view());
  }
  return {names.begin(), names.end()};
}

ServedView* ViewSet::find(const std::string& name) {
  const auto found = views_.find(name);
  return found == views_.end() ? nullptr : &found->second;
}

ServedView* ViewSet::find_target(std::string_view iqn) {
  for (auto& [name, view] : views_) {
    if (view.iqn == iqn) return &view;
  }
  return nullptr;
}

std::size_t ViewSet::count_of(std::uint32_t volume_id) const {
  std::size_t count = 0;
  for (const auto& [name, view] : views_) count += view.meta.volume_id() == volume_id ? 1u : 0u;
  return count;
}

}  // namespace mariner::node
