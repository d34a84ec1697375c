// What the admin API can ask about groups of volumes.
//
// As Control: on the Executor's thread, `done` once; requests are untrusted.
#pragma once

#include "proto/admin.pb.h"
#include "server/admin/past_source.h"

namespace mariner::admin {

class GroupControl {
 public:
  virtual ~GroupControl() = default;

  virtual void list(Answer<api::GroupList> done) = 0;
  virtual void show(const api::GroupRequest& request, Answer<api::Group> done) = 0;
  // Each answers with the group as it is from then on, or in a dry run would be; erase() with it as
  // it was.
  virtual void create(const api::GroupRequest& request, Answer<api::Group> done) = 0;
  virtual void add(const api::GroupRequest& request, Answer<api::Group> done) = 0;
  virtual void remove(const api::GroupRequest& request, Answer<api::Group> done) = 0;
  virtual void erase(const api::GroupRequest& request, Answer<api::Group> done) = 0;

  virtual void mark_add(const api::GroupMarkRequest& request, Answer<api::GroupMark> done) = 0;
  virtual void mark_list(const api::GroupMarkRequest& request, Answer<api::GroupMarkList> done) = 0;
  virtual void mark_remove(const api::GroupMarkRequest& request, Answer<api::GroupMark> done) = 0;
  // A group's view is unexposed as any other.
  virtual void expose(const api::GroupExposeRequest& request, Answer<api::GroupView> done) = 0;
  virtual void rollback(const api::GroupRollbackRequest& request,
                        Answer<api::GroupRollbackAnswer> done) = 0;
};

}  // namespace mariner::admin
