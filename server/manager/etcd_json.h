// etcd's JSON gateway, without a socket: requests as text, answers as checked types.
//
// Sources: etcd 3.4, "api_grpc_gateway" (keys and values are base64, 64-bit numbers are strings)
// and "api_reference_v3". Anything may stand in an answer: what is not as expected is kProtocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/manager/cluster_store.h"

namespace mariner::manager {

// The longest answer, and the longest line of a watch. A piece of a watch ends at what etcd takes
// as a request (1.5 MiB) plus half a MiB; as text that is up to five times as much.
inline constexpr std::size_t kAnswerBytesMax = 16u << 20;
// What an answer may hold in objects, so that "[{},{},..." costs no more memory than text does.
inline constexpr std::size_t kAnswerObjectsMax = 400u << 10;

// A listing is asked for in pages of so many entries, whose answers are never too long.
inline constexpr std::size_t kPageEntriesMax = 32;

struct EtcdRequest {
  std::string_view path;  // a constant
  std::string body;
};

[[nodiscard]] EtcdRequest get_request(std::string_view key);
// The first page, or the one behind `last`, a key, of the store as it was at a revision.
[[nodiscard]] EtcdRequest list_request(std::string_view prefix);
[[nodiscard]] EtcdRequest list_request(std::string_view prefix, std::string_view last, Revision at);
[[nodiscard]] EtcdRequest commit_request(const Transaction& transaction);
[[nodiscard]] EtcdRequest grant_request(std::chrono::seconds ttl);
[[nodiscard]] EtcdRequest keep_alive_request(LeaseId lease);
[[nodiscard]] EtcdRequest revoke_request(LeaseId lease);
// Asks for what comes before `from`, too, because a watch that begins just where the history was
// compacted is not told of a deletion there: so that is refused as compacted.
[[nodiscard]] EtcdRequest watch_request(std::string_view prefix, Revision from);

// What stands at the head of every answer.
struct EtcdHeader {
  std::uint64_t cluster = 0;
  std::uint64_t term = 0;  // of the newest entry that the answering member has applied
  Revision revision;
};

[[nodiscard]] Result<EtcdHeader> header_of(std::string_view answer);
// The same of an answer that is a stream's only line.
[[nodiscard]] Result<EtcdHeader> stream_header_of(std::string_view answer);
[[nodiscard]] Result<Reading> parse_get(std::string_view answer, std::string_view key);
// A page. Its revision is the store's when it answered; if `more` follows, it has entries.
struct ListingPage : Listing {
  bool more = false;
};
[[nodiscard]] Result<ListingPage> parse_list(std::string_view answer, std::string_view prefix);
[[nodiscard]] Result<CommitAnswer> parse_commit(std::string_view answer,
                                                const Transaction& transaction);
// `counted_from` is left to the caller. At least `ttl` is granted, otherwise kProtocol.
[[nodiscard]] Result<Lease> parse_grant(std::string_view answer, std::chrono::seconds ttl);
// kNotFound: there is no such lease.
[[nodiscard]] Result<Lease> parse_keep_alive(std::string_view answer, LeaseId lease);

// How a call has failed.
struct EtcdFailure {
  Error error;
  // The call was refused and has changed nothing; otherwise it may have been carried out.
  bool refused = false;
};

// Of an answer with an HTTP status other than 200, or of a stream's line that has no result.
[[nodiscard]] EtcdFailure parse_failure(unsigned status, std::string_view answer);

// One line of a watch.
struct WatchLine {
  EtcdHeader header;
  bool created = false;
  bool canceled = false;
  Revision compacted;  // with `canceled`: not 0 if what was asked for has been compacted
  std::string reason;  // with `canceled`
  bool fragment = false;
  std::vector<Change> changes;  // with revisions that do not decrease
};

[[nodiscard]] Result<WatchLine> parse_watch_line(std::string_view line, std::string_view prefix);

}  // namespace mariner::manager
