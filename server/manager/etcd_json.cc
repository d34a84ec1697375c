#include "server/manager/etcd_json.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <limits>

#include "proto/check.h"
#include "proto/etcd.pb.h"
#include "proto/utf8.h"
#include "server/admin/json.h"

namespace mariner::manager {
namespace {

// More of an answer is not needed to say what failed.
constexpr std::size_t kFailureBytesMax = 16u << 10;
constexpr std::size_t kReasonBytesMax = 512;
// In an answer they are base64. What is around them is less than a megabyte.
static_assert(kPageEntriesMax * (kKeyBytesMax + kValueBytesMax) / 3 * 4 + (1u << 20) <=
              kAnswerBytesMax);
// The codes of gRPC that say for certain that nothing has been changed.
enum GrpcCode : int {
  kGrpcInvalidArgument = 3,
  kGrpcNotFound = 5,
  kGrpcPermissionDenied = 7,
  kGrpcResourceExhausted = 8,
  kGrpcFailedPrecondition = 9,
  kGrpcOutOfRange = 11,
  kGrpcUnimplemented = 12,
  kGrpcUnauthenticated = 16,
};

Error strange(std::string_view what) {
  return {ErrorCode::kProtocol, fmt::format("etcd's answer is not understood: {}", what)};
}

// Not admin::to_request_json(), which makes UTF-8 of everything: keys and values are any bytes.
std::string json_of(const google::protobuf::Message& request) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  // Fails only for messages with types that ours do not use.
  CHECK(google::protobuf::util::MessageToJsonString(request, &text, options).ok());
  return text;
}

Result<void> parse(std::string_view text, google::protobuf::Message& message) {
  if (text.size() > kAnswerBytesMax) return strange("it is too long");
  if (std::count(text.begin(), text.end(), '{') > static_cast<std::ptrdiff_t>(kAnswerObjectsMax)) {
    return strange("it has too many objects");
  }
  if (text.empty()) return strange("it is empty");
  // Not the parser's own words: they quote the text.
  if (!admin::from_answer_json(text, message)) return strange("it is no JSON of that kind");
  return {};
}

Result<Revision> revision_of(std::int64_t number) {
  if (number < 0) return strange("a revision is negative");
  return Revision{static_cast<std::uint64_t>(number)};
}

Result<EtcdHeader> checked_header(const etcd::Header& header) {
  auto revision = revision_of(header.revision());
  if (!revision) return revision.error();
  return EtcdHeader{header.cluster_id(), header.raft_term(), *revision};
}

// Of an answer to a call, which always has a revision.
Result<EtcdHeader> whole_header(const etcd::Header& header) {
  auto checked = checked_header(header);
  if (checked && (checked->revision.value == 0 || checked->term == 0)) {
    return strange("it has no revision");
  }
  return checked;
}

Result<Entry> checked_entry(const etcd::KeyValue& kv, Revision newest) {
  auto revision = revision_of(kv.mod_revision());
  if (!revision) return revision.error();
  if (kv.key().empty() || revision->value == 0) return strange("an entry has no key or revision");
  if (*revision > newest) return strange("an entry is newer than the store");
  if (kv.lease() < 0) return strange("a lease is negative");
  return Entry{kv.key(), kv.value(), *revision, LeaseId{static_cast<std::uint64_t>(kv.lease())}};
}

// The first key behind all that begin with `prefix`; a zero byte means "to the end" to etcd.
std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

// The first key of all that begin with `prefix`; an empty one is none to etcd.
std::string begin_of_prefix(std::string_view prefix) {
  return prefix.empty() ? std::string(1, '\0') : std::string(prefix);
}

std::int64_t number_of(std::uint64_t value) {
  // Whoever waits for a later revision than there can be waits for ever.
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMax));
}

ErrorCode code_of(int grpc, std::string_view message) {
  switch (grpc) {
    case kGrpcInvalidArgument: return ErrorCode::kInvalidArgument;
    case kGrpcNotFound: return ErrorCode::kNotFound;
    case kGrpcResourceExhausted:
      return message.find("space exceeded") != message.npos ? ErrorCode::kNoSpace
                                                            : ErrorCode::kLimit;
    case kGrpcPermissionDenied:
    case kGrpcFailedPrecondition:
    case kGrpcOutOfRange:
    case kGrpcUnimplemented:
    case kGrpcUnauthenticated: return ErrorCode::kProtocol;
    default: return ErrorCode::kUnavailable;
  }
}

}  // namespace

EtcdRequest get_request(std::string_view key) {
  etcd::RangeRequest request;
  request.set_key(std::string(key));
  return {"/v3/kv/range", json_of(request)};
}

EtcdRequest list_request(std::string_view prefix) {
  etcd::RangeRequest request;
  request.set_key(begin_of_prefix(prefix));
  request.set_range_end(end_of_prefix(prefix));
  request.set_limit(kPageEntriesMax);
  return {"/v3/kv/range", json_of(request)};
}

EtcdRequest list_request(std::string_view prefix, std::string_view last, Revision at) {
  etcd::RangeRequest request;
  request.set_key(std::string(last) + '\0');
  request.set_range_end(end_of_prefix(prefix));
  request.set_limit(kPageEntriesMax);
  request.set_revision(number_of(at.value));
  return {"/v3/kv/range", json_of(request)};
}

EtcdRequest commit_request(const Transaction& transaction) {
  etcd::TxnRequest request;
  for (const Compare& compare : transaction.compares) {
    auto& added = *request.add_compare();
    added.set_key(compare.key);
    if (const auto* revision = std::get_if<Revision>(&compare.expected); revision != nullptr) {
      added.set_target("MOD");
      added.set_mod_revision(number_of(revision->value));
    } else {
      added.set_target("LEASE");
      added.set_lease(number_of(std::get<LeaseId>(compare.expected).value));
    }
    request.add_failure()->mutable_request_range()->set_key(compare.key);
  }
  for (const Put& put : transaction.puts) {
    auto& added = *request.add_success()->mutable_request_put();
    added.set_key(put.key);
    added.set_value(put.value);
    added.set_lease(number_of(put.lease.value));
  }
  for (const std::string& key : transaction.deletes) {
    request.add_success()->mutable_request_delete_range()->set_key(key);
  }
  return {"/v3/kv/txn", json_of(request)};
}

EtcdRequest grant_request(std::chrono::seconds ttl) {
  etcd::LeaseRequest request;
  request.set_ttl(ttl.count());
  return {"/v3/lease/grant", json_of(request)};
}

EtcdRequest keep_alive_request(LeaseId lease) {
  etcd::LeaseRequest request;
  request.set_id(number_of(lease.value));
  return {"/v3/lease/keepalive", json_of(request)};
}

EtcdRequest revoke_request(LeaseId lease) {
  etcd::LeaseRequest request;
  request.set_id(number_of(lease.value));
  return {"/v3/lease/revoke", json_of(request)};
}

EtcdRequest watch_request(std::string_view prefix, Revision from) {
  etcd::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(begin_of_prefix(prefix));
  create.set_range_end(end_of_prefix(prefix));
  create.set_start_revision(number_of(std::max<std::uint64_t>(from.value, 2) - 1));
  create.set_progress_notify(true);
  create.set_fragment(true);
  return {"/v3/watch", json_of(request)};
}

Result<EtcdHeader> header_of(std::string_view answer) {
  etcd::HeaderOnly response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  return whole_header(response.header());
}

Result<EtcdHeader> stream_header_of(std::string_view answer) {
  etcd::StreamHeaderOnly response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  return whole_header(response.result().header());
}

Result<Reading> parse_get(std::string_view answer, std::string_view key) {
  etcd::RangeResponse response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  auto header = whole_header(response.header());
  if (!header) return header.error();
  if (response.kvs_size() > 1) return strange("one key has several entries");
  Reading reading{header->revision, std::nullopt};
  for (const auto& kv : response.kvs()) {
    auto entry = checked_entry(kv, header->revision);
    if (!entry) return entry.error();
    if (entry->key != key) return strange("another key was asked for");
    reading.entry = std::move(*entry);
  }
  return reading;
}

Result<ListingPage> parse_list(std::string_view answer, std::string_view prefix) {
  etcd::RangeResponse response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  auto header = whole_header(response.header());
  if (!header) return header.error();
  if (response.kvs_size() > static_cast<int>(kPageEntriesMax)) {
    return strange("a page of a listing is too long");
  }
  if (response.more() && response.kvs_size() == 0) return strange("a page of a listing is empty");
  ListingPage listing{{header->revision, {}}, response.more()};
  for (const auto& kv : response.kvs()) {
    auto entry = checked_entry(kv, header->revision);
    if (!entry) return entry.error();
    if (!entry->key.starts_with(prefix)) return strange("another prefix was asked for");
    if (!listing.entries.empty() && listing.entries.back().key >= entry->key) {
      return strange("a listing is not in order");
    }
    listing.entries.push_back(std::move(*entry));
  }
  return listing;
}

Result<CommitAnswer> parse_commit(std::string_view answer, const Transaction& transaction) {
  etcd::TxnResponse response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  auto header = whole_header(response.header());
  if (!header) return header.error();
  CommitAnswer commit{
      .outcome = response.succeeded() ? CommitOutcome::kApplied : CommitOutcome::kNotApplied,
      .revision = header->revision,
      .present = {},
      .why = {}};
  if (response.succeeded()) return commit;
  // Without compares it cannot fail.
  const auto& compares = transaction.compares;
  if (compares.empty() || response.responses_size() != static_cast<int>(compares.size())) {
    return strange("it answers another transaction");
  }
  for (std::size_t i = 0; i < compares.size(); ++i) {
    const auto& range = response.responses(static_cast<int>(i)).response_range();
    if (range.kvs_size() > 1) return strange("one key has several entries");
    for (const auto& kv : range.kvs()) {
      auto entry = checked_entry(kv, header->revision);
      if (!entry) return entry.error();
      if (entry->key != compares[i].key) return strange("another key was asked for");
      // A key that is compared twice is told once.
      if (std::find(commit.present.begin(), commit.present.end(), *entry) == commit.present.end()) {
        commit.present.push_back(std::move(*entry));
      }
    }
  }
  return commit;
}

Result<Lease> parse_grant(std::string_view answer, std::chrono::seconds ttl) {
  etcd::LeaseResponse response;
  if (auto parsed = parse(answer, response); !parsed) return parsed.error();
  auto header = whole_header(response.header());
  if (!header) return header.error();
  if (response.id() <= 0) return strange("a lease has no number");
  if (response.ttl() < ttl.count() || response.ttl() > kLeaseTtlMax.count()) {
    return strange("a lease's time is another than was asked for");
  }
  return Lease{
      LeaseId{static_cast<std::uint64_t>(response.id())}, std::chrono::seconds(response.ttl()), {}};
}

Result<Lease> parse_keep_alive(std::string_view answer, LeaseId lease) {
  etcd::LeaseStreamResponse stream;
  if (auto parsed = parse(answer, stream); !parsed) return parsed.error();
  if (!stream.has_result()) return parse_failure(200, answer).error;
  const etcd::LeaseResponse& response = stream.result();
  auto header = whole_header(response.header());
  if (!header) return header.error();
  if (response.id() != number_of(lease.value)) return strange("it is of another lease");
  if (response.ttl() == 0) {
    return Error{ErrorCode::kNotFound, fmt::format("the lease {:x} has ended", lease.value)};
  }
  if (response.ttl() < 0 || response.ttl() > kLeaseTtlMax.count()) {
    return strange("a lease's time is out of bounds");
  }
  return Lease{lease, std::chrono::seconds(response.ttl()), {}};
}

EtcdFailure parse_failure(unsigned status, std::string_view answer) {
  etcd::Failure failure;
  etcd::StreamFailure stream;
  const std::string_view text = answer.substr(0, kFailureBytesMax);
  // A call fails with the words under "error", too: that is no object, and the second way fails.
  if (!parse(text, failure)) failure.Clear();
  if (failure.message().empty() && parse(text, stream)) failure = stream.error();
  const int grpc = failure.code() != 0 ? failure.code() : failure.grpc_code();
  const std::string words = to_utf8(failure.message().substr(0, kReasonBytesMax));
  if (words.empty() || grpc <= 0) {
    return {{ErrorCode::kUnavailable,
             fmt::format("etcd answered with HTTP status {} and no reason", status)},
            false};
  }
  const ErrorCode code = code_of(grpc, words);
  return {{code, fmt::format("etcd refused it: {}", words)}, code != ErrorCode::kUnavailable};
}

Result<WatchLine> parse_watch_line(std::string_view line, std::string_view prefix) {
  etcd::WatchStreamResponse stream;
  if (auto parsed = parse(line, stream); !parsed) return parsed.error();
  if (!stream.has_result()) return parse_failure(200, line).error;
  const etcd::WatchResponse& response = stream.result();
  auto header = checked_header(response.header());
  if (!header) return header.error();
  auto compacted = revision_of(response.compact_revision());
  if (!compacted) return compacted.error();
  WatchLine watch{.header = *header,
                  .created = response.created(),
                  .canceled = response.canceled() || compacted->value != 0,
                  .compacted = *compacted,
                  .reason = to_utf8(response.cancel_reason().substr(0, kReasonBytesMax)),
                  .fragment = response.fragment(),
                  .changes = {}};
  watch.changes.reserve(static_cast<std::size_t>(response.events_size()));
  for (const auto& event : response.events()) {
    const bool deleted = event.type() == "DELETE";
    if (!deleted && !event.type().empty() && event.type() != "PUT") {
      return strange("a change is of no known type");
    }
    auto entry = checked_entry(event.kv(), header->revision);
    if (!entry) return entry.error();
    if (!entry->key.starts_with(prefix)) return strange("another prefix is watched");
    if (!watch.changes.empty() && watch.changes.back().entry.revision > entry->revision) {
      return strange("changes are not in order");
    }
    if (deleted) {
      entry->value.clear();
      entry->lease = {};
    }
    watch.changes.push_back({deleted, std::move(*entry)});
  }
  return watch;
}

}  // namespace mariner::manager
