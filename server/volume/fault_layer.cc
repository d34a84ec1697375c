#include "server/volume/fault_layer.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

Error injected(const char* what) {
  return Error{ErrorCode::kIo, std::string("an injected fault failed this ") + what};
}

}  // namespace

FaultLayer::~FaultLayer() { CHECK_MSG(idle(), "a fault layer is destroyed in use"); }

bool FaultLayer::strikes(double rate) {
  return rate > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < rate;
}

void FaultLayer::later(std::chrono::nanoseconds delay, UniqueFunction<void()> work) {
  if (delay <= std::chrono::nanoseconds(0)) return work();
  ++delayed_;
  executor_.after(delay, [this, work = std::move(work)]() mutable {
    --delayed_;
    work();
  });
}

void FaultLayer::read(ByteRange range, ReadDone done) {
  const bool fails = strikes(options_.read_error_rate);
  later(options_.read_delay, [this, range, fails, done = std::move(done)]() mutable {
    if (fails) return done(injected("read"));
    below_.read(range, std::move(done));
  });
}

void FaultLayer::write(ByteRange range, PayloadSlice data, Done done) {
  const bool fails = strikes(options_.write_error_rate);
  later(options_.write_delay,
        [this, range, fails, data = std::move(data), done = std::move(done)]() mutable {
          if (fails) return done(injected("write"));
          below_.write(range, std::move(data), std::move(done));
        });
}

void FaultLayer::write_same(ByteRange range, PayloadSlice pattern, Done done) {
  const bool fails = strikes(options_.write_error_rate);
  later(options_.write_delay,
        [this, range, fails, pattern = std::move(pattern), done = std::move(done)]() mutable {
          if (fails) return done(injected("write"));
          below_.write_same(range, std::move(pattern), std::move(done));
        });
}

void FaultLayer::update(ByteRange range, Change change, Done done) {
  const bool fails = strikes(options_.write_error_rate);
  later(options_.write_delay,
        [this, range, fails, change = std::move(change), done = std::move(done)]() mutable {
          if (fails) return done(injected("write"));
          below_.update(range, std::move(change), std::move(done));
        });
}

void FaultLayer::trim(ByteRange range, TrimMode mode, Done done) {
  const bool fails = strikes(options_.write_error_rate);
  later(options_.write_delay, [this, range, mode, fails, done = std::move(done)]() mutable {
    if (fails) return done(injected("write"));
    below_.trim(range, mode, std::move(done));
  });
}

void FaultLayer::allocation(ByteRange range, AllocationDone done) {
  const bool fails = strikes(options_.read_error_rate);
  later(options_.read_delay, [this, range, fails, done = std::move(done)]() mutable {
    if (fails) return done(injected("look at the allocation"));
    below_.allocation(range, std::move(done));
  });
}

}  // namespace mariner::volume
