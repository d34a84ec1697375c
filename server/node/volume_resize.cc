// Growing a volume while it is used. A part of volume_set.h.
//
// In this order, so that a crash between two steps leaves a volume of the old size or of the new
// one: the image is longer, durably (a start takes an image that is longer than its volume, and
// nothing was ever written behind the volume's end); the store has the size, durably; layers and
// initiators get it.
#include <utility>

#include "server/node/volume_set.h"

namespace mariner::node {

Result<meta::Volume> VolumeSet::plan_resize(const std::string& name,
                                            std::uint64_t size_bytes) const {
  if (closing_) return Error{ErrorCode::kUnavailable, "the server is stopping"};
  const auto found = volumes_.find(name);
  if (found == volumes_.end() || found->second.volume == nullptr) {
    return Error{ErrorCode::kNotFound, "there is no volume " + name};
  }
  if (!found->second.serves()) return not_served(found->second);
  const Result<std::uint64_t> size = checked_size(size_bytes);
  if (!size) return size.error();
  meta::Volume meta = found->second.meta;
  if (*size < meta.size_bytes()) {
    return Error{ErrorCode::kInvalidArgument,
                 name + " has " + std::to_string(meta.size_bytes()) +
                     " bytes and cannot shrink to " + std::to_string(*size) +
                     ": what is behind that would be lost, with its history; create a smaller "
                     "volume and copy to it what is to stay"};
  }
  meta.set_size_bytes(*size);
  return meta;
}

void VolumeSet::resize(const std::string& name, std::uint64_t size_bytes,
                       UniqueFunction<void(Result<ServedVolume*>)> done) {
  const Result<meta::Volume> planned = plan_resize(name, size_bytes);
  if (!planned) return done(planned.error());
  ServedVolume& served = volumes_.at(name);
  if (planned->size_bytes() == served.meta.size_bytes()) return done(&served);
  ++resizes_;
  // On the worker, in turn with what is applied to the image: the file system may take its time.
  parts_.worker.run(
      [image = served.image, size = planned->size_bytes()]() -> Result<void> {
        // What a crash has left, or a resize that failed, may be longer.
        if (image->size_bytes() >= size) return {};
        return image->resize(size);
      },
      // The volume keeps the image.
      [this, name, volume = served.volume, size = planned->size_bytes(),
       done = std::move(done)](const Result<void>& resized) mutable {
        --resizes_;
        if (!resized) return done(resized.error());
        const ServedVolume* now = find(name);
        if (now == nullptr || now->volume != volume) {
          return done(Error{ErrorCode::kNotFound, "the volume " + name + " was deleted meanwhile"});
        }
        done(finish_resize(name, size));
      });
}

// The image is long enough.
Result<ServedVolume*> VolumeSet::finish_resize(const std::string& name, std::uint64_t size_bytes) {
  ServedVolume& served = volumes_.at(name);
  if (size_bytes < served.meta.size_bytes()) {
    return Error{
        ErrorCode::kBusy,
        name + " was resized to " + std::to_string(served.meta.size_bytes()) + " bytes meanwhile"};
  }
  meta::Volume meta = served.meta;
  meta.set_size_bytes(size_bytes);
  if (Result<void> r = parts_.store.put_volume(meta); !r) return r.error();
  served.meta = std::move(meta);
  served.volume->grow(size_bytes);
  served.device->capacity_changed(scsi::Lun{0});
  return &served;
}

}  // namespace mariner::node
