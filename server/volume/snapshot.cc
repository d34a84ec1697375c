#include "server/volume/snapshot.h"

#include <algorithm>
#include <utility>

namespace mariner::volume {
namespace {

Error dropped() {
  return Error{ErrorCode::kOutsideWindow, "this moment is not kept readable any more"};
}

Error read_only_error() { return Error{ErrorCode::kReadOnly, "a snapshot cannot be written"}; }

}  // namespace

SnapshotPins::Id SnapshotPins::add(SequenceNumber at) {
  pins_.emplace(++last_, at);
  return last_;
}

std::optional<SequenceNumber> SnapshotPins::oldest(SequenceNumber from) const {
  std::optional<SequenceNumber> oldest;
  for (const auto& [id, at] : pins_) {
    if (at >= from && (!oldest || at < *oldest)) oldest = at;
  }
  return oldest;
}

bool SnapshotPins::any_at(SequenceNumber moment) const {
  return std::ranges::any_of(pins_, [&](const auto& pin) { return pin.second == moment; });
}

bool SnapshotPins::drop_all() {
  const bool any = !pins_.empty();
  pins_.clear();
  return any;
}

std::shared_ptr<Layer> Snapshot::view() const {
  return pins_->holds(pin_) ? open_view_() : nullptr;
}

// What is read while it is dropped may be of a later time already: it is asked again afterwards.
void Snapshot::read(ByteRange range, ReadDone done) {
  const std::shared_ptr<Layer> view = this->view();
  if (view == nullptr) return done(dropped());
  view->read(range, [view, pins = pins_, pin = pin_,
                     done = std::move(done)](Result<PayloadSlice> result) mutable {
    if (!pins->holds(pin)) return done(dropped());
    done(std::move(result));
  });
}

void Snapshot::allocation(ByteRange range, AllocationDone done) {
  const std::shared_ptr<Layer> view = this->view();
  if (view == nullptr) return done(dropped());
  view->allocation(range, [view, pins = pins_, pin = pin_,
                           done = std::move(done)](Result<std::vector<Allocation>> found) mutable {
    if (!pins->holds(pin)) return done(dropped());
    done(std::move(found));
  });
}

void Snapshot::snapshot(SnapshotDone done) {
  const std::shared_ptr<Layer> view = this->view();
  if (view == nullptr) return done(dropped());
  view->snapshot(std::move(done));
}

void Snapshot::write(ByteRange, PayloadSlice, Done done) { done(read_only_error()); }
void Snapshot::write_same(ByteRange, PayloadSlice, Done done) { done(read_only_error()); }
void Snapshot::update(ByteRange, Change, Done done) { done(read_only_error()); }
void Snapshot::trim(ByteRange, TrimMode, Done done) { done(read_only_error()); }

}  // namespace mariner::volume
