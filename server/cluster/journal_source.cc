#include "server/cluster/journal_source.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::cluster {

using index::IndexedWrite;
using logging::RecordType;
using replication::WriteKind;
using replication::WriteMessage;

namespace {

WriteMessage message_of(VolumeId volume, const IndexedWrite& logged) {
  WriteMessage message;
  message.volume = volume;
  message.stamp = {logged.epoch, logged.sequence, logged.time};
  replication::WriteRequest& write = message.write;
  const bool repeats = (logged.flags & logging::kRepeats) != 0;
  write.kind = logged.type == RecordType::kZero ? WriteKind::kZero
               : repeats                        ? WriteKind::kRepeated
                                                : WriteKind::kData;
  write.has_head = (logged.flags & logging::kHasHead) != 0;
  write.has_tail = (logged.flags & logging::kHasTail) != 0;
  write.extent = logged.extent;
  if (logged.payload_blocks > 0) {
    const std::size_t bytes = std::size_t{logged.payload_blocks} * kBlockBytes;
    write.payload = {Payload::allocate(bytes), 0, bytes};
  }
  return message;
}

}  // namespace

// One fetch() and what it still waits for.
struct JournalSource::Fetch {
  SequenceNumber from;
  Portion portion;
  std::vector<logging::LogLocation> locations;  // of portion.writes
  std::uint64_t bytes = 0;
  UniqueFunction<void(Result<Portion>)> done;
  Result<void> result;
  std::size_t waiting = 1;  // one for read() itself
};

JournalSource::~JournalSource() { CHECK_MSG(in_flight_ == 0, "a journal is destroyed in use"); }

Result<void> JournalSource::check(SequenceNumber from) const {
  const SequenceNumber given_up = journal_.logged().index().given_up();
  if (from >= given_up) return {};
  return Error{ErrorCode::kOutsideWindow,
               "what came behind #" + std::to_string(from.value) +
                   " is no longer in the journal, which has given up everything to #" +
                   std::to_string(given_up.value)};
}

void JournalSource::fetch(SequenceNumber from, SequenceNumber to,
                          UniqueFunction<void(Result<Portion>)> done) {
  CHECK(from < to);
  if (to > journal_.settled()) {
    return done(Error{ErrorCode::kUnavailable, "the journal has nothing behind #" +
                                                   std::to_string(journal_.settled().value) +
                                                   " yet, #" + std::to_string(to.value) +
                                                   " was asked for"});
  }
  if (Result<void> r = check(from); !r) return done(r.error());
  const auto fetch = std::make_shared<Fetch>();
  fetch->from = from;
  fetch->portion.through = to;
  fetch->done = std::move(done);
  ++in_flight_;
  index::StoredIndex& index = journal_.logged().index();
  index.for_each(
      from, to,
      [fetch, volume = journal_.logged().log().volume()](const IndexedWrite& logged) {
        if (logged.type == RecordType::kRollback) return true;
        Portion& portion = fetch->portion;
        const std::uint64_t bytes = std::uint64_t{logged.payload_blocks} * kBlockBytes;
        if (portion.writes.size() == kPortionWritesMax ||
            (!portion.writes.empty() && fetch->bytes + bytes > kPortionBytesMax)) {
          portion.through = portion.writes.back().stamp.sequence;
          return false;
        }
        fetch->bytes += bytes;
        fetch->locations.push_back(logged.location);
        portion.writes.push_back(message_of(volume, logged));
        return true;
      },
      [this, fetch](const Result<void>& visited) {
        if (visited) read(fetch);
        finished(fetch, visited);
      });
}

void JournalSource::read(const std::shared_ptr<Fetch>& fetch) {
  for (std::size_t i = 0; i < fetch->locations.size(); ++i) {
    WriteMessage& message = fetch->portion.writes[i];
    Payload& payload = message.write.payload.payload;
    if (payload.size() == 0) continue;
    ++fetch->waiting;
    reader_.read({fetch->locations[i], message.volume, message.stamp.sequence, 0, payload.bytes()},
                 [this, fetch](const Result<void>& r) { finished(fetch, r); });
  }
}

void JournalSource::finished(const std::shared_ptr<Fetch>& fetch, const Result<void>& result) {
  if (!result && fetch->result) fetch->result = result;
  if (--fetch->waiting > 0) return;
  --in_flight_;
  if (!fetch->result) return fetch->done(fetch->result.error());
  // What was given up meanwhile looks like a void.
  if (Result<void> r = check(fetch->from); !r) return fetch->done(r.error());
  fetch->done(std::move(fetch->portion));
}

}  // namespace mariner::cluster
