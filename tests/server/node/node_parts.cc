#include "tests/server/node/node_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "proto/check.h"
#include "server/volume/thread_worker.h"

namespace mariner::node::testing {
namespace {

std::string make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "mariner-node-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  return name;
}

int open_log(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

NodeParts::NodeParts(std::uint64_t log_tracks)
    : directory_(make_directory()),
      log_tracks_(log_tracks),
      log_file_(open_log(path("daemon.log"))) {
  start();
}

NodeParts::~NodeParts() {
  if (volumes_ != nullptr) stop();
  ::close(log_file_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void NodeParts::start() {
  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(loop_);
  CHECK(ring.has_value());
  ring_ = std::move(*ring);
  CHECK(loop_.wake_on(ring_->fd()).has_value());
  loop_.set_turn_hook([this] { ring_->reap(); });
  Result<std::unique_ptr<MetaStore>> store = MetaStore::open(path("store"));
  CHECK(store.has_value());
  store_ = std::move(*store);
  worker_ = std::make_unique<volume::ThreadWorker>(loop_);
  recovered_ = std::make_unique<RecoveredVolumes>(*store_, log_);
  VolumeSetOptions options;
  options.state_dir = directory_;
  options.iqn_base = "iqn.2026-11.org.example";
  options.storage.apply_delay = std::chrono::milliseconds(5);
  options.look_again = std::chrono::milliseconds(5);
  options.serves_again = [this](const ServedVolume& volume) { views_->serve_again(volume); };
  volumes_ = std::make_unique<VolumeSet>(
      VolumeSetParts{clock_, *ring_, *store_, *worker_, *recovered_, log_}, std::move(options));
  CHECK(volumes_->load().has_value());
  LogSettings settings;
  settings.paths = {path("log")};
  settings.size_bytes =
      logging::kReservedBytes + log_tracks_ * std::uint64_t{logging::kTrackBytesMin};
  settings.track_bytes = logging::kTrackBytesMin;
  settings.durable_way = logging::DurableWay::kFua;
  Result<std::unique_ptr<LogStack>> stack = LogStack::open(
      settings, loop_, *ring_,
      [&](const std::string& id) -> Result<LogStack::Known> {
        const Result<std::uint64_t> given_up = store_->given_up(id);
        CHECK(given_up.has_value());
        IndexStack::Settings index;
        index.path = path("index");
        index.log = id;
        index.memory_bytes = 64u << 20;
        Result<void> learnt = Error{};
        for (int tries = 0; !learnt && tries < 2; ++tries) {  // as Node does
          indexes_.reset();
          Result<std::unique_ptr<IndexStack>> opened =
              IndexStack::open(index, {loop_, *ring_, *store_, log_});
          CHECK(opened.has_value());
          indexes_ = *std::move(opened);
          learnt = recovered_->open_indexes(*indexes_, *given_up);
        }
        CHECK(learnt.has_value());
        return LogStack::Known{*given_up, indexes_->store().last_number(), {}};
      },
      [&](const logging::Record& record, const logging::LogLocation& at) {
        recovered_->record(record, at);
      });
  CHECK(stack.has_value());
  stack_ = std::move(*stack);
  indexes_->set_used_through([this] { return stack_->writer().ordinal_frontier() - 1; });
  indexes_->start_repairs(stack_->array(), *worker_);
  Result<Epoch> epoch = store_->next_epoch();
  CHECK(epoch.has_value());
  const Result<void> started = volumes_->start(*stack_, *epoch);
  CHECK_MSG(started.has_value(), to_string(started.error()).c_str());
  views_ = std::make_unique<ViewSet>(*volumes_, *store_, clock_, log_,
                                     ViewSet::Options{"iqn.2026-11.org.example", 0});
  CHECK(views_->start().has_value());
}

void NodeParts::stop() {
  volumes_->close(Error{ErrorCode::kUnavailable, "stopping"});
  indexes_->stop_repairs();
  run_until([this] { return volumes_->idle() && stack_->idle() && ring_->in_flight() == 0; });
  volumes_->save_progress();
  views_.reset();
  volumes_.reset();
  recovered_.reset();
  indexes_.reset();
  worker_.reset();
  stack_.reset();
  store_.reset();
  loop_.stop_waking();
  loop_.set_turn_hook(nullptr);
  ring_.reset();
}

void NodeParts::run_until(const std::function<bool()>& done) {
  auto waiting = std::make_shared<bool>(true);
  loop_.after(std::chrono::seconds(20),
              [waiting] { CHECK_MSG(!*waiting, "what a test waits for does not come"); });
  loop_.run_until(done);
  *waiting = false;
}

test::IndexAnswers NodeParts::answers(const ServedVolume& volume) {
  return test::IndexAnswers(volume.volume->index(), [this] {
    bool turned = false;
    loop_.post([&turned] { turned = true; });
    loop_.run_until([&turned] { return turned; });
  });
}

bool NodeParts::has_file(const std::string& name) const {
  return std::filesystem::exists(path(name));
}

ServedVolume& NodeParts::create(const std::string& name) {
  NewVolume wanted;
  wanted.name = name;
  wanted.size_bytes = kVolumeBytes;
  Result<ServedVolume*> created = volumes_->create(wanted);
  CHECK(created.has_value());
  return **created;
}

Result<ServedVolume*> NodeParts::import(const std::string& name, const std::string& file,
                                        bool dry_run) {
  NewVolume wanted;
  wanted.name = name;
  std::optional<Result<ServedVolume*>> result;
  volumes_->import(
      wanted, file, dry_run, [](std::uint64_t, std::uint64_t) {},
      [&result](Result<ServedVolume*> imported) { result = std::move(imported); });
  run_until([&] { return result.has_value(); });
  return *result;
}

Result<void> NodeParts::remove(const std::string& name) {
  std::optional<Result<void>> result;
  volumes_->remove(name, [&result](Result<void> removed) { result = std::move(removed); });
  run_until([&] { return result.has_value(); });
  return *result;
}

void NodeParts::write(volume::Layer& layer, std::uint64_t block, char byte) {
  Payload data = Payload::allocate(kBlockBytes);
  std::memset(data.data(), byte, kBlockBytes);
  bool done = false;
  layer.write({block * kBlockBytes, kBlockBytes}, {data, 0, kBlockBytes},
              [&done](const Result<void>& result) {
                CHECK(result.has_value());
                done = true;
              });
  run_until([&] { return done; });
}

char NodeParts::read(volume::Layer& layer, std::uint64_t block) {
  std::optional<char> byte;
  layer.read({block * kBlockBytes, kBlockBytes}, [&byte](const Result<PayloadSlice>& read) {
    CHECK(read.has_value());
    byte = static_cast<char>(read->bytes()[kBlockBytes - 1]);
  });
  run_until([&] { return byte.has_value(); });
  return *byte;
}

}  // namespace mariner::node::testing
