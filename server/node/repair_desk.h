// Where a check hands over the blocks that make a moment a sound file system, for one view or one
// rollback to use (server/admin/API.md, "Repairs").
//
// They stand in files without a name, so that a crash leaves nothing, until they are used, dropped,
// or not asked for during kIdle. Bounded: how many there are, and how many blocks they have in all.
// Loop's thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "server/admin/repair_sink.h"
#include "server/node/moments.h"
#include "server/volume/repair_source.h"

namespace mariner::node {

// The blocks of one, ascending. Its file is gone when nobody holds it.
class RepairFile {
 public:
  // In `folder`, without a name.
  static Result<std::shared_ptr<RepairFile>> create(const std::string& folder);
  ~RepairFile();
  RepairFile(const RepairFile&) = delete;
  RepairFile& operator=(const RepairFile&) = delete;

  // They ascend, and come behind the last one.
  Result<void> append(const std::vector<admin::RepairedBlock>& blocks);
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] Lbn last() const { return last_; }  // if there are any

  // Reads `file` from the beginning.
  [[nodiscard]] static std::shared_ptr<volume::RepairSource> read(
      std::shared_ptr<const RepairFile> file);

 private:
  class Reader;
  explicit RepairFile(int fd) : fd_(fd) {}

  const int fd_;
  std::uint64_t blocks_ = 0;
  Lbn last_;
};

class RepairDesk final : public admin::RepairSink {
 public:
  static constexpr std::size_t kRepairsMax = 16;
  static constexpr std::uint64_t kBlocksMax = 1u << 18;  // of all of them: 1 GiB
  static constexpr std::chrono::seconds kIdle{300};

  struct Volume {
    VolumeId id;
    std::uint64_t size_bytes = 0;
    MomentsOf moments;
  };
  // kNotFound, kUnavailable.
  using Find = UniqueFunction<Result<Volume>(const std::string& name)>;

  // `folder`: where the files are. `executor` outlives it.
  RepairDesk(Executor& executor, std::string folder, Find find)
      : executor_(executor), folder_(std::move(folder)), find_(std::move(find)) {}
  ~RepairDesk() override { *alive_ = false; }
  RepairDesk(const RepairDesk&) = delete;
  RepairDesk& operator=(const RepairDesk&) = delete;

  // admin::RepairSink. kOutsideWindow, kLimit, kInvalidArgument.
  void open(const api::RepairsRequest& request, admin::Answer<api::Repairs> done) override;
  void add(const std::string& id, const std::vector<admin::RepairedBlock>& blocks,
           admin::Answer<api::Repairs> done) override;
  void drop(const std::string& id, admin::Answer<api::Repairs> done) override;

  // Those with this id, which must be of this moment. They are not here any more then, unless it is
  // only asked whether they are.
  [[nodiscard]] Result<std::shared_ptr<const RepairFile>> take(const std::string& id,
                                                               VolumeId volume, SequenceNumber at,
                                                               bool only_ask);

 private:
  struct Repairs {
    std::string id;
    std::string volume_name;
    VolumeId volume;
    std::uint64_t size_bytes = 0;
    index::IndexMoment at;
    std::shared_ptr<RepairFile> file;
    std::chrono::nanoseconds used{0};
  };

  [[nodiscard]] Result<Repairs*> find(const std::string& id);
  [[nodiscard]] Result<void> check(const Repairs& to,
                                   const std::vector<admin::RepairedBlock>& blocks) const;
  [[nodiscard]] static api::Repairs to_api(const Repairs& repairs);
  void sweep_later();
  void sweep();

  Executor& executor_;
  const std::string folder_;
  Find find_;
  std::map<std::string, Repairs> repairs_;  // by id
  bool sweeping_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
