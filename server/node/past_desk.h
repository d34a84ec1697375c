// Where programs beside the daemon read the past of its volumes (server/admin/API.md, "Reading the
// past").
//
// A reading keeps the past of one volume from a moment on, until it is closed, is not used for
// kIdle, or has lasted kLife; where the volume drops its snapshots, it ends then. What is read
// while that happens fails. Bounded: readings, bytes on their way out, who waits for such bytes.
// Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "server/admin/past_source.h"
#include "server/node/moments.h"
#include "server/volume/history_reader.h"

namespace mariner::node {

class PastDesk final : public admin::PastSource {
 public:
  static constexpr std::size_t kReadingsMax = 32;
  static constexpr std::chrono::seconds kIdle{60};
  static constexpr std::chrono::seconds kLife{3600};
  static constexpr std::uint64_t kBytesMax = 64u << 20;
  static constexpr std::size_t kWaitingMax = 64;
  // Of one stored(): blocks that are gone through, and those of them that are looked up in one
  // turn.
  static constexpr std::uint64_t kStoredBlocksMax = 1u << 24;  // 64 GiB
  static constexpr std::uint64_t kStoredBlocksAtATime = 1u << 14;

  // Keeps a moment as long as it is held.
  struct Hold {
    std::shared_ptr<const void> hold;
    std::function<bool()> holds;  // false: it was dropped all the same; none: it never is
  };
  using HoldDone = UniqueFunction<void(Result<Hold>)>;
  // A volume that serves, for as long as `moments.keeps` is held.
  struct Volume {
    VolumeId id;
    std::uint64_t size_bytes = 0;
    MomentsOf moments;
    volume::HistoryReader* reader = nullptr;
    std::function<void(SequenceNumber, HoldDone)> hold;
  };
  using Find = UniqueFunction<Result<Volume>(const std::string& name)>;

  // `executor` outlives it.
  PastDesk(Executor& executor, Find find) : executor_(executor), find_(std::move(find)) {}
  ~PastDesk() override { *alive_ = false; }
  PastDesk(const PastDesk&) = delete;
  PastDesk& operator=(const PastDesk&) = delete;

  void open(const api::OpenPastRequest& request, admin::Answer<api::Past> done) override;
  void show(const api::PastRequest& request, admin::Answer<api::Past> done) override;
  void close(const api::PastRequest& request, admin::Answer<api::Past> done) override;
  void moment(const api::PastMomentRequest& request, admin::Answer<api::Moment> done) override;
  void blocks(const std::string& id, std::vector<admin::BlockQuestion> questions,
              admin::Answer<Blocks> done) override;
  void changed(const api::PastChangedRequest& request,
               admin::Answer<admin::ChangedPart> done) override;
  void stored(const api::PastStoredRequest& request,
              admin::Answer<admin::StoredPart> done) override;
  void versions(const std::string& id, admin::VersionsRequest request,
                admin::Answer<admin::VersionsPart> done) override;

  [[nodiscard]] std::size_t readings() const { return readings_.size(); }

 private:
  struct Reading {
    std::string id;
    std::string volume_name;
    VolumeId volume;
    index::IndexMoment from;
    Hold hold;
    std::chrono::nanoseconds used{0};
    std::chrono::nanoseconds ends{0};
    VersionTime expires;  // the same by the wall clock
  };
  // A reading that is asked something, and its volume.
  struct Asked {
    Reading* reading;
    Volume volume;
  };
  class Budget;

  [[nodiscard]] Result<Asked> use(const std::string& id);
  // Whether what was read under the reading counts.
  [[nodiscard]] Result<void> held(const std::string& id) const;
  [[nodiscard]] static Result<void> check(const Asked& asked, SequenceNumber at);
  [[nodiscard]] static Result<void> check(const Asked& asked, Lbn block);
  void keep(const Volume& volume, index::IndexMoment from, index::IndexMoment newest,
            admin::Answer<api::Past> done);
  [[nodiscard]] static api::Past to_api(const Reading& reading, std::uint64_t size_bytes,
                                        index::IndexMoment newest);
  void sweep_later();
  void sweep();
  void begin_waiting();
  struct Storing;
  void store_next(const std::shared_ptr<Storing>& storing);

  Executor& executor_;
  Find find_;
  std::map<std::string, Reading> readings_;  // by id
  std::size_t opening_ = 0;
  bool sweeping_ = false;
  std::uint64_t bytes_ = 0;  // on their way out
  std::deque<UniqueFunction<void()>> waiting_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
