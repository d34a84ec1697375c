#include "index/block_reader.h"

#include <algorithm>
#include <utility>

#include "index/repeater.h"
#include "proto/check.h"

namespace mariner::index {
namespace {

// How much is read at most before what is there is used: what else is missing is heard of again.
constexpr std::size_t kFetchedAtOnceMax = 256;

}  // namespace

void BlockReader::fetch(UniqueFunction<void(Result<void>)> done) {
  struct Fetch {
    std::size_t waiting = 1;
    Result<void> result;
    UniqueFunction<void(Result<void>)> done;
    void ended() {
      if (--waiting == 0) done(result);
    }
  };
  auto fetch = std::make_shared<Fetch>();
  fetch->done = std::move(done);
  std::vector<BlockAddress> missing = std::exchange(missing_, {});
  std::ranges::sort(missing);
  const auto same = std::ranges::unique(missing);
  missing.erase(same.begin(), same.end());
  if (missing.size() > kFetchedAtOnceMax) missing.resize(kFetchedAtOnceMax);
  for (const BlockAddress address : missing) {
    ++fetch->waiting;
    store_.fetch(address, [this, fetch, address](Result<Bosc::Fetched> fetched) {
      if (fetched) {
        fetched_[address.value] = *std::move(fetched);
      } else if (fetch->result) {
        fetch->result = fetched.error();
      }
      fetch->ended();
    });
  }
  fetch->ended();
}

Result<void> BlockReader::fetch_now() {
  for (const BlockAddress address : std::exchange(missing_, {})) {
    Result<Bosc::Fetched> fetched = store_.fetch_now(address);
    if (!fetched) return fetched.error();
    fetched_[address.value] = *std::move(fetched);
  }
  return {};
}

void consult(Bosc& store, UniqueFunction<void(BlockReader&)> compute,
             UniqueFunction<void(Result<void>)> done) {
  struct Consultation {
    explicit Consultation(Bosc& of) : store(of), reader(of) {}
    Bosc& store;
    BlockReader reader;
    UniqueFunction<void(BlockReader&)> compute;
    UniqueFunction<void(Result<void>)> done;
    Repeater repeater;

    static void step(const std::shared_ptr<Consultation>& self) {
      self->repeater.run([&] {
        self->reader.begin();
        self->compute(self->reader);
        if (!self->reader.failure()) return failed(self, self->reader.failure());
        if (self->reader.complete()) return self->done({});
        self->reader.fetch([self](const Result<void>& fetched) {
          if (!fetched) return failed(self, fetched);
          step(self);
        });
      });
    }
    // Damage is made again from the log, if somebody does that, while this waits.
    static void failed(const std::shared_ptr<Consultation>& self, const Result<void>& result) {
      const bool damage = Bosc::is_damage(result.error());
      if (damage && self->store.when_mended([self] { step(self); })) return;
      self->done(result);
    }
  };
  auto consultation = std::make_shared<Consultation>(store);
  consultation->compute = std::move(compute);
  consultation->done = std::move(done);
  Consultation::step(consultation);
}

}  // namespace mariner::index
