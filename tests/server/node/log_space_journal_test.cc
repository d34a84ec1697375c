// Room in a log that keeps a journal alone: server/node/log_space.cc.
#include <gtest/gtest.h>

#include "server/cluster/journal_reclaimable.h"
#include "server/node/log_space.h"
#include "server/node/node_log.h"
#include "server/node/node_promises.h"
#include "server/volume/thread_worker.h"
#include "tests/logging/temporary_directory.h"
#include "tests/server/node/log_file.h"

namespace mariner::node {
namespace {

constexpr VolumeId kVolume{7};
constexpr std::uint64_t kBlocks = 256;  // of a write, and of the volume

// A node with a log of seven tracks, of which two are a reserve, without the network.
class LogSpaceJournalTest : public ::testing::Test, public HistoryKeeper {
 protected:
  LogSpaceJournalTest() { start(); }
  ~LogSpaceJournalTest() override { stop(); }

  void start() {
    loop_ = std::make_unique<EventLoop>();
    ring_ = *logging::IoRing::create(*loop_);
    CHECK(loop_->wake_on(ring_->fd()).has_value());
    loop_->set_turn_hook([this] { ring_->reap(); });
    store_ = *MetaStore::open(directory_.file("store"));
    worker_ = std::make_unique<volume::ThreadWorker>(*loop_);
    promises_ = std::make_unique<NodePromises>(*store_, *loop_);
    recovered_ = std::make_unique<RecoveredVolumes>(*store_, log_.log());
    recovered_->expect(kVolume.value, {kBlocks}, RecoveredVolumes::Order::kByNumber);
    Config config;
    config.roles = {Role::kStorage};
    config.server.state_dir = directory_.file("");
    config.log.disks = {directory_.file("log")};
    config.log.max_size = ByteSize{8 * kTrackSizeMin.bytes};
    config.log.track_size = kTrackSizeMin;
    config.log.durability = LogDurability::kFua;
    config.index.memory = kJournalIndexMemory;
    auto log =
        NodeLog::open(config, {*loop_, *ring_, *store_, *worker_, *recovered_, log_.log()}, {});
    CHECK_MSG(log.has_value(), to_string(log.error()).c_str());
    node_log_ = *std::move(log);
    begin_journal();
    space_ = std::make_unique<LogSpace>(
        LogSpace::Parts{node_log_->stack(), *this, *store_, *worker_, *loop_, log_.log()},
        OnFull::kShortenWindow);
    node_log_->stack().start();
  }
  void begin_journal() {
    RecoveredVolumes::Found found = *recovered_->take(kVolume.value);
    const Epoch promised{store_->promise(kVolume.value)->epoch()};
    volume::LoggedVolume::Options options;
    options.id = kVolume;
    options.epoch = promised;
    options.based_everywhere = true;
    const auto start = cluster::begin_logging(kVolume, found.history, found.index->newest(),
                                              found.index->end(), promised, {});
    options.index = std::move(found.index);
    journal_ = std::make_unique<cluster::LoggerPart>(
        std::move(options), start,
        cluster::LoggerPart::Parts{node_log_->stack().parts(), *loop_, *promises_});
    reclaimable_ =
        std::make_unique<cluster::JournalReclaimable>(*journal_, [this] { return image_; });
  }
  void stop() {
    hold_.reset();
    space_->stop();
    journal_->close(Error{ErrorCode::kUnavailable, "stopping"});
    node_log_->stack().stop();
    node_log_->indexes().stop_repairs();
    run_until([this] { return space_->idle() && journal_->idle() && node_log_->stack().idle(); });
    node_log_->indexes().stop();
    run_until([this] { return node_log_->indexes().idle() && ring_->in_flight() == 0; });
    space_.reset();
    reclaimable_.reset();
    journal_.reset();
    recovered_.reset();
    node_log_->drop_indexes();
    worker_.reset();
    node_log_.reset();
    promises_.reset();
    store_.reset();
    loop_->stop_waking();
    loop_->set_turn_hook(nullptr);
    ring_.reset();
    loop_.reset();
  }
  bool run_until(const std::function<bool()>& done,
                 std::chrono::seconds timeout = std::chrono::seconds(20)) {
    auto over = std::make_shared<bool>(false);
    loop_->after(timeout, [over] { *over = true; });
    loop_->run_until([&] { return *over || done(); });
    return done();
  }

  // HistoryKeeper: a journal has no past that is to be kept; asked for it, this would say so.
  std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override {
    if (volume != kVolume) return nullptr;
    return {std::shared_ptr<void>(), reclaimable_.get()};
  }
  std::vector<VolumeId> volumes() const override { return {}; }
  std::optional<Window> window(VolumeId) const override { return std::nullopt; }
  bool knows() const override { return false; }
  Result<std::vector<meta::Mark>> marks(VolumeId) const override {
    return std::vector<meta::Mark>{};
  }
  std::vector<meta::View> views(VolumeId) const override { return {}; }
  std::vector<index::IndexMoment> clean_moments(VolumeId) const override { return {}; }
  void drop_view(const std::string&) override { ADD_FAILURE() << "a view of the volume's goes"; }
  bool drop_mark(const meta::Mark&) override { return false; }

  static std::string what(const replication::FromLogger& message) {
    if (const auto* failed = std::get_if<replication::LogFailed>(&message))
      return to_string(failed->error);
    if (const auto* refused = std::get_if<replication::Refused>(&message))
      return to_string(refused->error);
    return "a floor";
  }
  void hear(const replication::FromLogger& message) {
    if (const auto* logged = std::get_if<replication::Logged>(&message)) {
      through_ = logged->through.value;
    } else if (const auto* opened = std::get_if<replication::LogOpened>(&message)) {
      opened_ = *opened;
    } else {
      ADD_FAILURE() << what(message);
    }
  }
  // The writes above `since` begin.
  void open(std::uint64_t since) {
    epoch_ = {epoch_.value + 1};
    opened_.reset();
    journal_->host().closed(to_);
    to_ = journal_->host().accept([this](const auto& message) { hear(message); });
    journal_->host().received(to_, replication::OpenLog{kVolume, epoch_});
    ASSERT_TRUE(run_until([this] { return opened_.has_value(); }));
    journal_->host().received(
        to_, replication::VoidMessage{kVolume, epoch_, opened_->last.next(), {since}});
    ASSERT_TRUE(run_until([&] { return through_ == since; }));
    last_ = since;
    journal_->logged().history().hold({since}, [this](Result<volume::History::Hold> held) {
      ASSERT_TRUE(held);
      hold_ = *std::move(held);
    });
  }
  // So many MiB.
  void write(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      replication::WriteMessage message;
      message.volume = kVolume;
      message.stamp = {epoch_, {++last_}, {last_}};
      message.settled = {through_};
      message.write.extent = {{0}, {kBlocks}};
      Payload payload = Payload::allocate(kBlocks * kBlockBytes);
      std::memset(payload.data(), 'a', payload.size());
      message.write.payload = {payload, 0, payload.size()};
      journal_->host().received(to_, std::move(message));
    }
  }
  bool all_logged(std::chrono::seconds timeout = std::chrono::seconds(20)) {
    return run_until([this] { return through_ == last_; }, timeout);
  }
  // The logger is back, and has everything; the image gets on.
  void logger_returns() {
    hold_.reset();
    image_ = {last_};
  }

  logging::test::TemporaryDirectory directory_;
  testing::LogFile log_{directory_.file("daemon.log")};
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<logging::IoRing> ring_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<volume::Worker> worker_;
  std::unique_ptr<NodePromises> promises_;
  std::unique_ptr<RecoveredVolumes> recovered_;
  std::unique_ptr<NodeLog> node_log_;
  std::unique_ptr<cluster::LoggerPart> journal_;
  std::unique_ptr<cluster::JournalReclaimable> reclaimable_;
  std::unique_ptr<LogSpace> space_;
  SequenceNumber image_;
  volume::History::Hold hold_;
  replication::ConnectionId to_;
  std::optional<replication::LogOpened> opened_;
  Epoch epoch_;
  std::uint64_t last_ = 0;     // that was sent
  std::uint64_t through_ = 0;  // that is logged
};

constexpr std::uint64_t kManyNumbers = std::uint64_t{1} << 40;

TEST_F(LogSpaceJournalTest, WritesWaitWhenItIsFullUntilTheImageHasThem) {
  image_ = {kManyNumbers};
  open(kManyNumbers);
  write(60);
  EXPECT_FALSE(all_logged(std::chrono::seconds(4))) << "there is no room for all";
  EXPECT_GT(through_, kManyNumbers + 20);
  EXPECT_EQ(space_->tracks_freed(), 0u) << "the image has nothing of it";
  logger_returns();
  EXPECT_TRUE(all_logged());
}

TEST_F(LogSpaceJournalTest, WhatWasFilledHasRoomTheNextTime) {
  image_ = {kManyNumbers};
  open(kManyNumbers);
  write(28);
  ASSERT_TRUE(all_logged());
  logger_returns();
  open(2 * kManyNumbers);
  write(28);
  EXPECT_TRUE(all_logged()) << "what was in it before goes, though the image is far behind";
  EXPECT_GT(space_->tracks_freed(), 2u);
}

TEST_F(LogSpaceJournalTest, ARestartFindsWhatTheImageLacksAndLosesNothing) {
  image_ = {kManyNumbers};
  open(kManyNumbers);
  write(35);
  ASSERT_TRUE(all_logged());
  logger_returns();
  open(2 * kManyNumbers);
  write(20);
  ASSERT_TRUE(all_logged());
  stop();
  start();
  for (int i = 0; i < 5; ++i) space_->check();
  EXPECT_FALSE(run_until([this] { return space_->tracks_freed() > 4; }, std::chrono::seconds(1)));
  const std::uint64_t first = 2 * kManyNumbers + 1;
  EXPECT_LT(journal_->logged().index().oldest().sequence.value, first)
      << "nobody holds it, and the image lacks it";
  for (const std::string& line : testing::LogFile::lines(directory_.file("daemon.log"))) {
    EXPECT_EQ(line.find("missing"), std::string::npos) << line;
  }
  const std::uint64_t last = last_;
  open(last + 10);
  EXPECT_EQ(opened_->last.value, last);
  EXPECT_TRUE(opened_->holes.empty());
  write(5);
  EXPECT_TRUE(all_logged());
}

}  // namespace
}  // namespace mariner::node
