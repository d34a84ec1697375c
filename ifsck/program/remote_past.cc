#include "ifsck/program/remote_past.h"

#include <algorithm>
#include <iterator>

namespace mariner::ifsck {
namespace {

std::vector<admin::BlockQuestion> to_wire(std::span<const Past::Question> questions) {
  std::vector<admin::BlockQuestion> asked;
  asked.reserve(questions.size());
  for (const Past::Question& each : questions) asked.push_back({each.block, each.at});
  return asked;
}

}  // namespace

Result<RemotePast> RemotePast::open(const client::PastClient::Options& options) {
  Result<client::PastClient> opened = client::PastClient::open(options);
  if (!opened) return opened.error();
  return RemotePast(*std::move(opened), options);
}

Result<Past::Reach> RemotePast::reach() {
  if (const Result<void> looked = client_.look(); !looked) return looked.error();
  const api::Past& past = client_.past();
  size_bytes_ = std::max(size_bytes_, past.size_bytes());
  return Reach{{past.from().sequence()}, {past.newest().sequence()}};
}

Result<SequenceNumber> RemotePast::moment_of(VersionTime time) {
  api::MomentSpec spec;
  spec.set_time_ns(time.ns);
  return moment_of(spec);
}

Result<SequenceNumber> RemotePast::moment_of(const api::MomentSpec& spec) {
  const Result<api::Moment> moment = client_.moment(spec);
  if (!moment) return moment.error();
  return SequenceNumber{moment->sequence()};
}

Result<VersionTime> RemotePast::time_of(SequenceNumber sequence) {
  if (sequence.value == 0 || sequence.value < client_.past().from().sequence()) {
    return VersionTime{};
  }
  api::MomentSpec spec;
  spec.set_sequence(sequence.value);
  const Result<api::Moment> moment = client_.moment(spec);
  if (!moment) return moment.error();
  return VersionTime{moment->time_ns()};
}

Result<void> RemotePast::read(std::span<const Question> questions, std::span<std::byte> to) {
  return client_.read(to_wire(questions), to);
}

void RemotePast::expect(std::span<const Question> questions) { client_.expect(to_wire(questions)); }

Result<std::vector<BlockRange>> RemotePast::changed(SequenceNumber from, SequenceNumber to) {
  if (to <= from) return std::vector<BlockRange>{};
  return client_.changed(from, to);
}

Result<std::vector<Past::Version>> RemotePast::versions(std::span<const Lbn> blocks,
                                                        SequenceNumber from, SequenceNumber to) {
  const Result<std::vector<admin::BlockVersion>> found = client_.versions(blocks, from, to);
  if (!found) return found.error();
  std::vector<Version> out;
  out.reserve(found->size());
  std::ranges::transform(*found, std::back_inserter(out), [](const admin::BlockVersion& each) {
    return Version{each.block, each.sequence, each.time};
  });
  return out;
}

Result<SequenceNumber> RemotePast::first_break(SequenceNumber from, SequenceNumber to) {
  api::HistoryRequest request;
  request.set_name(volume_);
  request.mutable_from()->set_sequence(from.value);
  request.mutable_to()->set_sequence(to.value);
  const Result<api::History> history = admin_.history(request);
  if (!history) return history.error();
  SequenceNumber first;
  for (const api::HistoryEvent& event : history->events()) {
    if (event.kind() != "rollback" && event.kind() != "gap") continue;
    const SequenceNumber at{event.sequence()};
    if (at > from && at <= to && (first.value == 0 || at < first)) first = at;
  }
  return first;
}

}  // namespace mariner::ifsck
