#include "tests/server/node/node_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "proto/check.h"
#include "server/volume/thread_worker.h"

namespace mariner::node::testing {
namespace {

std::string make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "mariner-node-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  return name;
}

int open_null() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }

}  // namespace

NodeParts::NodeParts() : directory_(make_directory()), null_(open_null()) { start(); }

NodeParts::~NodeParts() {
  if (volumes_ != nullptr) stop();
  ::close(null_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void NodeParts::start() {
  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(executor_);
  CHECK(ring.has_value());
  ring_ = std::move(*ring);
  Result<std::unique_ptr<MetaStore>> store = MetaStore::open(path("store"));
  CHECK(store.has_value());
  store_ = std::move(*store);
  worker_ = std::make_unique<volume::ThreadWorker>(executor_);
  VolumeSetOptions options;
  options.state_dir = directory_;
  options.iqn_base = "iqn.2026-11.org.example";
  options.storage.apply_delay = std::chrono::milliseconds(5);
  volumes_ = std::make_unique<VolumeSet>(VolumeSetParts{executor_, *ring_, *store_, *worker_, log_},
                                         std::move(options));
  CHECK(volumes_->load().has_value());
  LogSettings settings;
  settings.paths = {path("log")};
  settings.size_bytes = logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin};
  settings.track_bytes = logging::kTrackBytesMin;
  settings.durable_way = logging::DurableWay::kFua;
  Result<std::unique_ptr<LogStack>> stack = LogStack::open(
      settings, executor_, *ring_, [this](const std::string& id) { return store_->given_up(id); },
      [this](const logging::Record& record, const logging::LogLocation& at) {
        volumes_->record(record, at);
      });
  CHECK(stack.has_value());
  stack_ = std::move(*stack);
  Result<Epoch> epoch = store_->next_epoch();
  CHECK(epoch.has_value());
  CHECK(volumes_->start(*stack_, *epoch).has_value());
  views_ =
      std::make_unique<ViewSet>(*volumes_, *store_, executor_, log_, "iqn.2026-11.org.example");
  CHECK(views_->start().has_value());
}

void NodeParts::stop() {
  volumes_->close(Error{ErrorCode::kUnavailable, "stopping"});
  run_until([this] { return volumes_->idle() && stack_->idle() && ring_->in_flight() == 0; });
  volumes_->save_progress();
  views_.reset();
  volumes_.reset();
  worker_.reset();
  context_.poll();
  stack_.reset();
  store_.reset();
  ring_.reset();
}

void NodeParts::run_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    CHECK_MSG(std::chrono::steady_clock::now() < end, "what a test waits for does not come");
    context_.restart();
    const std::size_t ran = context_.poll();
    ring_->reap();
    if (ran == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
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
