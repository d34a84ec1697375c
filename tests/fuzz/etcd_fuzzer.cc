// What a member of etcd answers: any text, to every reader of answers, as the lines of a watch, and
// as the values that nodes keep there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/check.h"
#include "server/manager/alive_node.h"
#include "server/manager/etcd_json.h"
#include "server/manager/etcd_watch.h"
#include "server/manager/volume_record.h"

using namespace mariner;
using namespace mariner::manager;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = parse_list(text, "k");
  for (std::size_t i = 0; listing && i < listing->entries.size(); ++i) {
    const Entry& entry = listing->entries[i];
    CHECK(entry.key.starts_with("k") && entry.revision <= listing->revision);
    CHECK(i == 0 || listing->entries[i - 1].key < entry.key);
  }
  const auto reading = parse_get(text, "k");
  CHECK(!reading || !reading->entry || reading->entry->key == "k");
  const Transaction transaction{.compares = {{"k", Revision{1}}}, .deletes = {"k"}};
  const auto commit = parse_commit(text, transaction);
  CHECK(!commit || commit->outcome != CommitOutcome::kUnknown);
  const auto lease = parse_grant(text, std::chrono::seconds(2));
  CHECK(!lease || (lease->id.value != 0 && lease->ttl >= std::chrono::seconds(2)));
  const auto renewed = parse_keep_alive(text, LeaseId{7});
  CHECK(!renewed || (renewed->ttl.count() > 0 && renewed->ttl <= kLeaseTtlMax));
  if (const auto node = decode_alive_node(text)) CHECK(*decode_alive_node(encode(*node)) == *node);
  if (const auto record = decode_volume_record({1}, text)) {
    CHECK(*decode_volume_record({1}, encode(*record)) == *record);
  }
  (void)header_of(text);
  (void)stream_header_of(text);
  CHECK(!parse_failure(503, text).error.message.empty());

  // Whatever the lines are, what a watch tells is in order, and nothing of it comes twice.
  WatchCursor cursor(Revision{3});
  Revision told{2};
  for (std::size_t begin = 0; begin < size;) {
    const std::size_t end = std::min(text.find('\n', begin), size);
    auto line = parse_watch_line(text.substr(begin, end - begin), "k");
    begin = end + 1;
    if (!line) {
      cursor.reconnected();
      continue;
    }
    const auto changes = cursor.take(std::move(*line));
    if (!changes) break;
    const Revision before = told;
    for (const Change& change : *changes) {
      CHECK(change.entry.revision > before && change.entry.revision >= told);
      told = change.entry.revision;
    }
    CHECK(told < cursor.next());
  }
  return 0;
}
