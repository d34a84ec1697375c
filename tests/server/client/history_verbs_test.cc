#include <gmock/gmock.h>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HistoryVerbs : public DaemonTest {
 protected:
  void SetUp() override {
    auto& history = control.history_answer;
    history.set_name("db1");
    *history.mutable_from() = moment(0, 0);
    *history.mutable_to() = moment(9, kNow.ns);
    history.set_writes(9);
    history.set_bytes(36864);
    for (std::uint64_t i = 0; i < 4; ++i) {
      auto& bucket = *history.add_buckets();
      bucket.set_from_ns(kNow.ns + i * 1'000'000'000);
      bucket.set_to_ns(kNow.ns + (i + 1) * 1'000'000'000);
      bucket.set_bytes(i * 4096);
    }
    auto& event = *history.add_events();
    event.set_kind("mark");
    event.set_sequence(7);
    event.set_time_ns(kNow.ns);
    event.set_text("pre-upgrade");
    auto& write = *history.add_write_list();
    write.set_sequence(9);
    write.set_time_ns(kNow.ns);
    write.set_kind("rollback");
    write.set_target_sequence(3);
  }
};

TEST_F(HistoryVerbs, ShowDrawsAHistogram) {
  run({"history", "show", "db1", "--since", "-1h", "--until", "-5m", "--buckets", "4", "--writes",
       "10"});
  EXPECT_EQ(code, 0) << err;
  EXPECT_THAT(control.asked,
              ElementsAre("history name: \"db1\" from { time_ns: 1795177925123456789 } to { "
                          "time_ns: 1795181225123456789 } buckets: 4 max_writes: 10"));
  EXPECT_THAT(out, HasSubstr("from     #0  before the first write\n"));
  EXPECT_THAT(
      out,
      HasSubstr(
          "to       #9  2026-11-20T14:32:05.123456789+01:00  (2026-11-20T13:32:05.123456789Z)\n"));
  EXPECT_THAT(out, HasSubstr("Bytes written, a column is 1s, the highest 12 KiB\n   █\n   █\n  "
                             "██\n  ██\n ███\n ███\n"));
  EXPECT_THAT(out,
              HasSubstr("mark          7  2026-11-20T14:32:05.123456789+01:00  pre-upgrade\n"));
  EXPECT_THAT(out, HasSubstr("9  2026-11-20T14:32:05.123456789+01:00  rollback to #3"));
}

TEST_F(HistoryVerbs, ShowsWhatChecksFound) {
  control.history_answer.mutable_buckets(0)->set_clean(1);
  control.history_answer.mutable_buckets(1)->set_clean(1);
  control.history_answer.mutable_buckets(1)->set_repairable(1);
  control.history_answer.mutable_buckets(2)->set_repairable(2);
  control.history_answer.mutable_buckets(2)->set_damaged(1);
  run({"history", "show", "db1", "--buckets", "4"});
  EXPECT_THAT(out, HasSubstr(" ███\n ███\n+~!\n2026-11-20 14:32:05"));
  EXPECT_THAT(out, HasSubstr("File system checked:  + clean  ~ repairable  ! damaged\n"));
  run({"history", "show", "db1", "--json"});
  EXPECT_THAT(out, HasSubstr("\"clean\":1,\"repairable\":1,\"damaged\":0"));
}

TEST_F(HistoryVerbs, WithoutLimitsItIsAllOfIt) {
  run({"history", "show", "db1"});
  EXPECT_THAT(control.asked, ElementsAre("history name: \"db1\" buckets: 80"));
}

TEST_F(HistoryVerbs, AVolumeWithoutWrites) {
  control.history_answer.Clear();
  run({"history", "show", "db1"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out, HasSubstr("0 writes, 0 B"));
}

}  // namespace
}  // namespace mariner::client
