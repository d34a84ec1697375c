// Takes the blocks that make a moment of a volume a sound file system, for a view or a rollback to
// use. API.md, "Repairs".
//
// As Control: on the Executor's thread, `done` once; requests are untrusted.
#pragma once

#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "server/admin/past_source.h"
#include "server/admin/repair_wire.h"

namespace mariner::admin {

class RepairSink {
 public:
  virtual ~RepairSink() = default;

  virtual void open(const api::RepairsRequest& request, Answer<api::Repairs> done) = 0;
  // Behind those that are there. After an error none of them was taken.
  virtual void add(const std::string& id, const std::vector<RepairedBlock>& blocks,
                   Answer<api::Repairs> done) = 0;
  // Answers with them as they were.
  virtual void drop(const std::string& id, Answer<api::Repairs> done) = 0;
};

}  // namespace mariner::admin
