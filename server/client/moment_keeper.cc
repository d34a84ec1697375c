#include "server/client/moment_keeper.h"

#include <utility>

namespace mariner::client {

Result<std::unique_ptr<MomentKeeper>> MomentKeeper::keep(PastClient::Options options,
                                                         KeeperPace pace) {
  Result<PastClient> past = PastClient::open(options);
  if (!past) return past.error();
  return std::unique_ptr<MomentKeeper>(
      new MomentKeeper(std::move(options), *std::move(past), pace));
}

MomentKeeper::MomentKeeper(PastClient::Options options, PastClient past, KeeperPace pace)
    : options_(std::move(options)),
      pace_(pace),
      past_(std::make_unique<PastClient>(std::move(past))) {
  options_.from.set_sequence(past_->past().from().sequence());
  thread_ = std::thread([this] { look_after(); });
}

MomentKeeper::~MomentKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MomentKeeper::look_after() {
  auto begun = std::chrono::steady_clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, pace_.look, [this] { return stopping_; })) return;
    }
    if (std::chrono::steady_clock::now() - begun < pace_.replace) {
      (void)past_->look();
      continue;
    }
    // The next one is there before the last one goes.
    Result<PastClient> next = PastClient::open(options_);
    if (!next) continue;
    past_ = std::make_unique<PastClient>(*std::move(next));
    begun = std::chrono::steady_clock::now();
  }
}

}  // namespace mariner::client
