// History and marks. See node_control.h.
#include <algorithm>
#include <utility>

#include "server/node/names.h"
#include "server/node/node_control.h"

namespace mariner::node {
namespace {

constexpr std::uint32_t kBucketsMax = 10'000;
// More are not listed, whatever is asked for: the answer says that it is truncated.
constexpr std::uint32_t kWritesListedMax = 1'000'000;

std::uint64_t payload_bytes_of(const index::IndexedWrite& write) {
  return write.type == logging::RecordType::kWrite ? write.extent.count.bytes() : 0;
}

void add_event(api::History& out, const char* kind, SequenceNumber sequence, VersionTime time,
               const std::string& text) {
  api::HistoryEvent* event = out.add_events();
  event->set_kind(kind);
  event->set_sequence(sequence.value);
  event->set_time_ns(time.ns);
  event->set_text(text);
}

}  // namespace

Result<std::vector<meta::Mark>> NodeControl::marks_of(const ServedVolume& volume) {
  Result<std::vector<meta::Mark>> marks = node_.store_->marks();
  if (!marks) return marks.error();
  std::erase_if(*marks,
                [&](const meta::Mark& mark) { return mark.volume_id() != volume.meta.id(); });
  return marks;
}

api::Mark NodeControl::to_api(const meta::Mark& mark, const ServedVolume& volume) {
  api::Mark out;
  out.set_name(mark.name());
  out.set_volume(volume.meta.name());
  *out.mutable_at() = node::to_api(
      index::IndexMoment{SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()}});
  out.mutable_at()->set_mark(mark.name());
  out.set_locked_until_ns(mark.locked_until_ns());
  out.set_created_ns(mark.created_ns());
  out.set_automatic(mark.automatic());
  return out;
}

void NodeControl::history(const api::HistoryRequest& request, admin::Answer<api::History> done) {
  Result<ServedVolume*> served = find(request.name());
  if (!served) return done(served.error());
  if (request.buckets() > kBucketsMax) {
    return done(Error{ErrorCode::kLimit, "at most " + std::to_string(kBucketsMax) + " buckets"});
  }
  api::MomentSpec to = request.to();
  if (to.at_case() == api::MomentSpec::AT_NOT_SET) to.set_now(true);
  resolve_moment(**served, to, *node_.store_, node_.loop_,
                 [this, request, done = std::move(done)](Result<ResolvedMoment> end) mutable {
                   if (!end) return done(end.error());
                   Result<ServedVolume*> volume = find(request.name());
                   if (!volume) return done(volume.error());
                   if (request.from().at_case() == api::MomentSpec::AT_NOT_SET) {
                     api::History out;
                     *out.mutable_to() = node::to_api(*end);
                     return fill_history(**volume, request, {}, end->at, std::move(out),
                                         std::move(done));
                   }
                   // A start before the history begins means from there.
                   api::MomentSpec from = request.from();
                   if (from.has_time_ns()) {
                     from.set_time_ns(
                         std::max<std::uint64_t>(from.time_ns(), oldest_moment(**volume).time.ns));
                   }
                   resolve_moment(**volume, from, *node_.store_, node_.loop_,
                                  [this, request, end = *end,
                                   done = std::move(done)](Result<ResolvedMoment> begin) mutable {
                                    if (!begin) return done(begin.error());
                                    Result<ServedVolume*> again = find(request.name());
                                    if (!again) return done(again.error());
                                    api::History out;
                                    *out.mutable_from() = node::to_api(*begin);
                                    *out.mutable_to() = node::to_api(end);
                                    fill_history(**again, request, begin->at, end.at,
                                                 std::move(out), std::move(done));
                                  });
                 });
}

// A history that is being put together.
struct NodeControl::HistoryWork {
  std::shared_ptr<volume::Volume> volume;
  api::HistoryRequest request;
  index::IndexMoment from;
  index::IndexMoment to;
  api::History out;
  std::uint64_t start = 0;  // of the histogram
  std::uint64_t end = 0;
  std::uint64_t width = 0;  // of a column; 0: there is none

  void add(const index::IndexedWrite& write) {
    out.set_writes(out.writes() + 1);
    out.set_bytes(out.bytes() + payload_bytes_of(write));
    if (width != 0 && write.time.ns >= start) {
      const std::uint64_t column =
          std::min((write.time.ns - start) / width, std::uint64_t{request.buckets()} - 1);
      api::HistoryBucket* bucket = out.mutable_buckets(static_cast<int>(column));
      bucket->set_writes(bucket->writes() + 1);
      bucket->set_bytes(bucket->bytes() + payload_bytes_of(write));
    }
    if (write.type == logging::RecordType::kRollback) {
      add_event(out, "rollback", write.sequence, write.time,
                "to #" + std::to_string(write.target_sequence.value));
    }
    if (request.max_writes() == 0) return;
    if (static_cast<std::uint32_t>(out.write_list_size()) >=
        std::min(request.max_writes(), kWritesListedMax)) {
      out.set_truncated(true);
      return;
    }
    api::HistoryWrite* listed = out.add_write_list();
    listed->set_sequence(write.sequence.value);
    listed->set_time_ns(write.time.ns);
    listed->set_kind(std::string(logging::record_type_name(write.type)));
    listed->set_first_block(write.extent.first.value);
    listed->set_blocks(write.extent.count.value);
    listed->set_target_sequence(write.target_sequence.value);
    listed->set_epoch(write.epoch.value);
  }
};

void NodeControl::fill_history(const ServedVolume& volume, const api::HistoryRequest& request,
                               const index::IndexMoment& from, const index::IndexMoment& to,
                               api::History out, admin::Answer<api::History> done) {
  auto work = std::make_shared<HistoryWork>();
  work->volume = volume.volume;
  work->request = request;
  work->from = from;
  work->to = to;
  // The histogram spans what was asked for, or else from the first write to the last.
  work->start = out.from().asked_ns() != 0 ? out.from().asked_ns() : from.time.ns;
  work->end = out.to().asked_ns() != 0 ? out.to().asked_ns() : to.time.ns;
  if (work->start == 0) work->start = volume.meta.created_ns();
  work->out = std::move(out);
  work->out.set_schema(1);
  work->out.set_name(volume.meta.name());
  const std::uint64_t columns = request.buckets();
  work->width =
      columns == 0 || work->end <= work->start ? 0 : (work->end - work->start) / columns + 1;
  for (std::uint64_t i = 0; work->width != 0 && i < columns; ++i) {
    api::HistoryBucket* bucket = work->out.add_buckets();
    bucket->set_from_ns(work->start + i * work->width);
    bucket->set_to_ns(std::min(work->start + (i + 1) * work->width, work->end));
  }
  volume.volume->index().for_each(
      from.sequence, to.sequence,
      [work](const index::IndexedWrite& write) {
        work->add(write);
        return true;
      },
      [this, work, done = std::move(done)](const Result<void>& visited) mutable {
        if (!visited) return done(visited.error());
        work->volume->index().changed(work->from.sequence, work->to.sequence,
                                      [this, work, done = std::move(done)](
                                          const Result<std::vector<BlockRange>>& changed) mutable {
                                        if (!changed) return done(changed.error());
                                        std::uint64_t distinct = 0;
                                        for (const BlockRange& extent : *changed)
                                          distinct += extent.count.bytes();
                                        work->out.set_distinct_bytes(distinct);
                                        add_events(*work);
                                        done(std::move(work->out));
                                      });
      });
}

// Marks and steps of the clock, among the rollbacks.
void NodeControl::add_events(HistoryWork& work) {
  api::History& out = work.out;
  if (Result<std::vector<meta::Mark>> marks = node_.store_->marks(); marks) {
    for (const meta::Mark& mark : *marks) {
      if (mark.volume_id() != work.volume->id().value) continue;
      if (mark.sequence() < work.from.sequence.value || mark.sequence() > work.to.sequence.value)
        continue;
      add_event(out, "mark", SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()},
                mark.name());
    }
  }
  if (Result<std::vector<meta::ClockStep>> steps = node_.store_->clock_steps(); steps) {
    for (const meta::ClockStep& step : *steps) {
      if (step.at_ns() < work.start || step.at_ns() > work.end) continue;
      add_event(out, "clock-step", {}, VersionTime{step.at_ns()},
                std::to_string(step.step_ns() / 1'000'000) + " ms");
    }
  }
  std::stable_sort(out.mutable_events()->begin(), out.mutable_events()->end(),
                   [](const api::HistoryEvent& a, const api::HistoryEvent& b) {
                     return a.time_ns() < b.time_ns();
                   });
}

void NodeControl::mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  Result<ServedVolume*> served = find(request.volume());
  if (!served) return done(served.error());
  if (Result<void> r = check_volume_name(request.name()); !r) {
    return done(Error{r.error().code, "the mark's name: " + r.error().message});
  }
  Result<std::vector<meta::Mark>> marks = marks_of(**served);
  if (!marks) return done(marks.error());
  for (const meta::Mark& mark : *marks) {
    if (mark.name() == request.name()) {
      return done(Error{ErrorCode::kAlreadyExists,
                        request.volume() + " has a mark named " + request.name() + " already"});
    }
  }
  api::MomentSpec spec = request.at();
  if (spec.at_case() == api::MomentSpec::AT_NOT_SET) spec.set_now(true);
  resolve_moment(**served, spec, *node_.store_, node_.loop_,
                 [this, request, done = std::move(done)](Result<ResolvedMoment> moment) mutable {
                   if (!moment) return done(moment.error());
                   Result<ServedVolume*> volume = find(request.volume());
                   if (!volume) return done(volume.error());
                   const std::uint64_t now = node_.loop_.wall_time().ns;
                   meta::Mark mark;
                   mark.set_volume_id((*volume)->meta.id());
                   mark.set_name(request.name());
                   mark.set_sequence(moment->at.sequence.value);
                   mark.set_time_ns(moment->at.time.ns);
                   mark.set_created_ns(now);
                   if (request.lock_s() != 0) {
                     constexpr std::uint64_t kNs = 1'000'000'000;
                     mark.set_locked_until_ns(request.lock_s() > (UINT64_MAX - now) / kNs
                                                  ? UINT64_MAX
                                                  : now + request.lock_s() * kNs);
                   }
                   if (!request.dry_run()) {
                     if (Result<void> r = node_.store_->put_mark(mark); !r) return done(r.error());
                   }
                   done(to_api(mark, **volume));
                 });
}

void NodeControl::mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done) {
  Result<ServedVolume*> served = find(request.volume());
  if (!served) return done(served.error());
  Result<std::vector<meta::Mark>> marks = marks_of(**served);
  if (!marks) return done(marks.error());
  std::sort(marks->begin(), marks->end(),
            [](const meta::Mark& a, const meta::Mark& b) { return a.sequence() < b.sequence(); });
  api::MarkList out;
  out.set_schema(1);
  for (const meta::Mark& mark : *marks) *out.add_marks() = to_api(mark, **served);
  done(std::move(out));
}

void NodeControl::mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  Result<ServedVolume*> served = find(request.volume());
  if (!served) return done(served.error());
  Result<std::vector<meta::Mark>> marks = marks_of(**served);
  if (!marks) return done(marks.error());
  for (const meta::Mark& mark : *marks) {
    if (mark.name() != request.name()) continue;
    if (!request.dry_run()) {
      if (Result<void> r = node_.store_->remove_mark(mark.volume_id(), mark.name()); !r) {
        return done(r.error());
      }
    }
    return done(to_api(mark, **served));
  }
  done(Error{ErrorCode::kNotFound, request.volume() + " has no mark named " + request.name()});
}

}  // namespace mariner::node
