// What the storage keeps without the log: what is pending, in a file beside the image.
#include <string>
#include <utility>
#include <vector>

#include "server/volume/storage.h"

namespace mariner::volume {

using Kind = PendingContent::Kind;

// An image of which nothing was durable was made anew: what was spilled belongs to another one.
void Storage::take(Spill::Contents found) {
  CHECK(durable_ == committed_);
  spilled_ = found.committed;
  if (durable_.value == 0 || found.committed <= durable_) return remove_spill();
  durable_ = std::max(durable_, found.durable);  // that it got so far may not have been kept
  committed_ = found.committed;
  active_.last = found.committed;
  if (!found.runs.empty()) active_.since = executor_.wall_time();
  for (PendingTable::Run& run : found.runs) {
    const bool whole = run.content.kind == Kind::kMemory && !run.content.repeated;
    active_.bytes += whole ? run.range.count.bytes() : kBlockBytes;
    active_.runs->put(run.range, std::move(run.content));
  }
}

// What image and tables hold together: the newest of what is pending.
Result<Spill::Contents> Storage::contents() const {
  Spill::Contents all{durable_, committed_, {}};
  std::optional<Lbn> elsewhere;  // a block that only the history has
  const auto add = [&](BlockRange range, const PendingContent* content) {
    if (content == nullptr) return;
    if (content->kind == Kind::kHistory && !elsewhere) elsewhere = range.first;
    all.runs.push_back({range, *content});
  };
  visit_pending({Lbn{0}, {UINT64_MAX}}, add);
  if (elsewhere) {
    return Error{ErrorCode::kUnavailable, "what was written to block " +
                                              std::to_string(elsewhere->value) +
                                              " is known by its place in the log alone"};
  }
  return all;
}

void Storage::harden(Done done) {
  const auto answer = [&](Result<void> result) {
    executor_.post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  };
  const auto unavailable = [&](const char* why) { answer(Error{ErrorCode::kUnavailable, why}); };
  if (spill_ == nullptr) return unavailable("this node cannot keep writes by itself");
  if (stopped_) return unavailable("this node is stopping");
  if (behind_) return unavailable("this node has not caught up with what it had missed");
  // (A start makes such an image anew.)
  if (durable_.value == 0) return unavailable("nothing is durable in this node's image yet");
  if (hardening_) return unavailable("what is pending is being written beside the image already");
  if (hardened() >= committed_) return answer({});
  Result<Spill::Contents> all = contents();
  if (!all) return answer(all.error());
  hardening_ = true;
  ++spilling_;
  spill_->write(*std::move(all), [this, at = committed_, life = lives_,
                                  done = std::move(done)](Result<void> written) mutable {
    --spilling_;
    hardening_ = false;
    // (What was spilled of an image that is given up is removed behind this.)
    if (written && life != lives_) {
      written = Error{ErrorCode::kUnavailable, "this node's image begins anew"};
    }
    if (written) {
      spilled_ = at;
      remove_spill_if_kept();
    }
    done(std::move(written));
  });
}

// The spill as it was written, not what is pending by now: the image is to hold nothing newer than
// the history that begins behind it.
void Storage::put_spilled() {
  if (stopped_ || starting_over_ || putting_ || spill_ == nullptr || spilled_ <= durable_) return;
  if (applier_.running() || punching_ || hardening_) {
    return try_again([this] { put_spilled(); });
  }
  putting_ = true;
  ++spilling_;
  parts_.worker.run(
      [image = &parts_.image, spill = spill_]() -> Result<void> {
        auto found = spill->read({image->size_bytes() >> kBlockShift});
        if (!found) return found.error();
        if (!*found) return Error{ErrorCode::kNotFound, "what was kept beside an image is gone"};
        std::vector<ImageChange> changes;
        for (PendingTable::Run& run : (*found)->runs) {
          changes.push_back({run.range, std::move(run.content.payload), run.content.offset,
                             run.content.repeated});
        }
        if (Result<void> r = write_image(*image, changes); !r) return r;
        return image->flush();
      },
      [this, through = spilled_](const Result<void>& result) { spilled_put(result, through); });
}

void Storage::spilled_put(const Result<void>& result, SequenceNumber through) {
  --spilling_;
  putting_ = false;
  if (stopped_ || starting_over_) return;
  if (!result) {
    if (events_.apply_failed) events_.apply_failed(result.error());
    return try_again([this] { put_spilled(); });
  }
  durable_ = std::max(durable_, through);
  if (events_.durable) events_.durable(durable_);
  if (frozen_.runs) {
    apply_now();
  } else {
    apply_later(options_.apply_delay);
  }
}

void Storage::kept(SequenceNumber durable) {
  kept_ = std::max(kept_, durable);
  remove_spill_if_kept();
}

// (Not while another one may take its place.)
void Storage::remove_spill_if_kept() {
  if (spilled_.value > 0 && spilled_ <= kept_ && !hardening_) remove_spill();
}

void Storage::remove_spill() {
  spilled_ = {};
  if (spill_ == nullptr) return;
  ++spilling_;
  // One that stays is of no use to a start, and is removed then.
  spill_->remove([this](const Result<void>&) { --spilling_; });
}

}  // namespace mariner::volume
