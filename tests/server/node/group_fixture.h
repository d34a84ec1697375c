// Groups over the volumes `data`, `log` and `other` of a node without the network (node_parts.h).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/node/group_moment.h"
#include "server/node/group_set.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node::testing {

class GroupFixture : public ::testing::Test {
 protected:
  GroupFixture() {
    for (const char* name : {"data", "log", "other"}) parts_.create(name);
    open();
  }

  void open() {
    groups_ = std::make_unique<GroupSet>(GroupSet::Parts{
        parts_.volumes(), parts_.views(), parts_.store(), parts_.executor(), parts_.log()});
    const Result<void> started = groups_->start();
    ASSERT_TRUE(started) << to_string(started.error());
  }
  void restart() {
    groups_->stop();
    parts_.stop();
    parts_.start();
    open();
  }

  ServedVolume& volume(const std::string& name) { return *parts_.volumes().find(name); }
  std::uint32_t id(const std::string& name) { return volume(name).meta.id(); }
  // Their first blocks.
  void write(const std::string& name, char byte) {
    parts_.write(*volume(name).volume->live_layer(), 0, byte);
  }
  char read(const std::string& name) { return parts_.read(*volume(name).volume->live_layer(), 0); }
  // Of the newest write.
  VersionTime written(const std::string& name) {
    return volume(name).volume->index().newest().time;
  }

  // What `ask` is answered with.
  template <typename T, typename Ask>
  Result<T> answer(Ask ask) {
    std::optional<Result<T>> out;
    ask([&out](Result<T> answered) { out = std::move(answered); });
    parts_.run_until([&out] { return out.has_value(); });
    return *std::move(out);
  }
  Result<GroupMoment> resolve(const std::string& group, const api::MomentSpec& spec) {
    const Result<GroupMoments> of = moments_of(*groups_, group, parts_.store());
    if (!of) return of.error();
    return answer<GroupMoment>(
        [&](auto done) { resolve_moment(*of, spec, parts_.executor(), std::move(done)); });
  }
  Result<GroupMoment> resolve_at(const std::string& group, VersionTime time) {
    api::MomentSpec spec;
    spec.set_time_ns(time.ns);
    return resolve(group, spec);
  }
  Result<GroupMoment> now(const std::string& group) {
    api::MomentSpec spec;
    spec.set_now(true);
    return resolve(group, spec);
  }
  // A group's rollback to these sequence numbers.
  std::vector<meta::GroupPart> targets(const std::string& group,
                                       const std::vector<std::uint64_t>& sequences) {
    std::vector<meta::GroupPart> out;
    const auto& members = (*groups_->find(group))->meta.members();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      meta::GroupPart& part = out.emplace_back();
      part.set_volume_id(members[static_cast<int>(i)].volume_id());
      part.set_sequence(sequences[i]);
    }
    return out;
  }
  Result<meta::GroupRollback> roll_back(const std::string& group,
                                        const std::vector<std::uint64_t>& sequences) {
    return answer<meta::GroupRollback>(
        [&](auto done) { groups_->roll_back(group, targets(group, sequences), std::move(done)); });
  }

  NodeParts parts_;
  std::unique_ptr<GroupSet> groups_;
};

}  // namespace mariner::node::testing
