// Cloning: a moment of a volume becomes the base of a new one. The third part of volume_set.h.
#include <utility>

#include "server/node/volume_set.h"
#include "server/volume/layer_copy.h"

namespace mariner::node {

void VolumeSet::clone(const NewVolume& request, const ServedVolume& source, SequenceNumber at,
                      bool dry_run, UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                      UniqueFunction<void(Result<ServedVolume*>)> done) {
  if (!source.serves()) return done(not_served(source));
  NewVolume wanted = request;
  wanted.size_bytes = source.meta.size_bytes();
  wanted.block_size = source.meta.block_size();
  Result<meta::Volume> meta = dry_run ? plan(wanted) : new_meta(wanted);
  if (!meta) return done(meta.error());
  // Who may not use the source does not get to see its contents here.
  *meta->mutable_acl() = source.meta.acl();
  meta->set_acl_closed(source.meta.acl_closed());
  *meta->mutable_auth() = source.meta.auth();
  Result<std::shared_ptr<volume::Layer>> moment = source.volume->open_snapshot(at);
  if (!moment) return done(moment.error());
  if (dry_run) {
    ServedVolume preview;
    preview.meta = *meta;
    return done(&preview);
  }
  auto clone = std::make_shared<Filling>();
  clone->meta = *meta;
  clone->progress = std::move(progress);
  clone->done = std::move(done);
  if (Result<void> r = begin_filling(*clone, meta::Volume::CLONING); !r) {
    return clone->done(r.error());
  }
  volume::copy_layer(
      {.from = *std::move(moment),
       .to = *clone->image,
       .worker = parts_.worker,
       .executor = parts_.executor,
       .progress = [clone](std::uint64_t copied,
                           std::uint64_t all) { clone->progress(copied, all); },
       .may_go_on = [this] { return may_fill(); }},
      [this, clone](Result<void> copied) { finish_filling(*clone, std::move(copied)); });
}

}  // namespace mariner::node
