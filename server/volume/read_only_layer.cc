#include "server/volume/read_only_layer.h"

namespace mariner::volume {
namespace {

Error refused() { return {ErrorCode::kReadOnly, "this view cannot be written"}; }

}  // namespace

void ReadOnlyLayer::write(ByteRange, PayloadSlice, Done done) { done(refused()); }
void ReadOnlyLayer::write_same(ByteRange, PayloadSlice, Done done) { done(refused()); }
void ReadOnlyLayer::update(ByteRange, Change, Done done) { done(refused()); }
void ReadOnlyLayer::trim(ByteRange, TrimMode, Done done) { done(refused()); }

}  // namespace mariner::volume
