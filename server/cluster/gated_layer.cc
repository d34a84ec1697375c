#include "server/cluster/gated_layer.h"

#include <utility>

namespace mariner::cluster {

using volume::Done;
using volume::Layer;

template <typename DoneType, typename Ask>
void GatedLayer::pass_on(DoneType& done, Ask ask) {
  Layer* const layer = serving_ ? serving_() : nullptr;
  if (layer == nullptr) {
    return done(Error{ErrorCode::kUnavailable, "this node does not serve the volume now"});
  }
  ask(*layer);
}

void GatedLayer::read(ByteRange range, volume::ReadDone done) {
  pass_on(done, [&](Layer& layer) { layer.read(range, std::move(done)); });
}
void GatedLayer::prefetch(ByteRange range) {
  if (Layer* const layer = serving_ ? serving_() : nullptr) layer->prefetch(range);
}
void GatedLayer::write(ByteRange range, PayloadSlice data, Done done) {
  pass_on(done, [&](Layer& layer) { layer.write(range, std::move(data), std::move(done)); });
}
void GatedLayer::write_same(ByteRange range, PayloadSlice pattern, Done done) {
  pass_on(done,
          [&](Layer& layer) { layer.write_same(range, std::move(pattern), std::move(done)); });
}
void GatedLayer::update(ByteRange range, volume::Change change, Done done) {
  pass_on(done, [&](Layer& layer) { layer.update(range, std::move(change), std::move(done)); });
}
void GatedLayer::trim(ByteRange range, volume::TrimMode mode, Done done) {
  pass_on(done, [&](Layer& layer) { layer.trim(range, mode, std::move(done)); });
}
void GatedLayer::flush(Done done) {
  pass_on(done, [&](Layer& layer) { layer.flush(std::move(done)); });
}
void GatedLayer::allocation(ByteRange range, volume::AllocationDone done) {
  pass_on(done, [&](Layer& layer) { layer.allocation(range, std::move(done)); });
}
void GatedLayer::snapshot(volume::SnapshotDone done) {
  pass_on(done, [&](Layer& layer) { layer.snapshot(std::move(done)); });
}
// Where nobody serves, nothing is under way.
void GatedLayer::settle(Done done) {
  Layer* const layer = serving_ ? serving_() : nullptr;
  if (layer == nullptr) return done({});
  layer->settle(std::move(done));
}

}  // namespace mariner::cluster
