// A GroupControl that notes what it is asked and answers what a test has set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/admin/group_control.h"

namespace mariner::admin {

class FakeGroups final : public GroupControl {
 public:
  // What was asked goes to `asked`, with what other controls were asked; `error` answers
  // everything, if it is set. Both outlive this.
  FakeGroups(std::vector<std::string>& asked, const std::optional<Error>& error)
      : asked_(asked), error_(error) {}

  api::GroupList groups;
  api::Group group;
  api::GroupMark mark;
  api::GroupMarkList marks;
  api::GroupView view;
  api::GroupRollbackAnswer rollback_answer;

  void list(Answer<api::GroupList> done) override {
    asked_.emplace_back("group_list");
    reply(groups, std::move(done));
  }
  void show(const api::GroupRequest& request, Answer<api::Group> done) override {
    note("group_show", request);
    reply(group, std::move(done));
  }
  void create(const api::GroupRequest& request, Answer<api::Group> done) override {
    note("group_create", request);
    reply(group, std::move(done));
  }
  void add(const api::GroupRequest& request, Answer<api::Group> done) override {
    note("group_add", request);
    reply(group, std::move(done));
  }
  void remove(const api::GroupRequest& request, Answer<api::Group> done) override {
    note("group_remove", request);
    reply(group, std::move(done));
  }
  void erase(const api::GroupRequest& request, Answer<api::Group> done) override {
    note("group_erase", request);
    reply(group, std::move(done));
  }
  void mark_add(const api::GroupMarkRequest& request, Answer<api::GroupMark> done) override {
    note("group_mark_add", request);
    reply(mark, std::move(done));
  }
  void mark_list(const api::GroupMarkRequest& request, Answer<api::GroupMarkList> done) override {
    note("group_mark_list", request);
    reply(marks, std::move(done));
  }
  void mark_remove(const api::GroupMarkRequest& request, Answer<api::GroupMark> done) override {
    note("group_mark_remove", request);
    reply(mark, std::move(done));
  }
  void expose(const api::GroupExposeRequest& request, Answer<api::GroupView> done) override {
    note("group_expose", request);
    reply(view, std::move(done));
  }
  void rollback(const api::GroupRollbackRequest& request,
                Answer<api::GroupRollbackAnswer> done) override {
    note("group_rollback", request);
    reply(rollback_answer, std::move(done));
  }

 private:
  void note(const char* what, const google::protobuf::Message& request) {
    const std::string text = request.ShortDebugString();
    asked_.push_back(what + (text.empty() ? "" : " " + text));
  }
  template <typename T>
  void reply(const T& message, Answer<T> done) const {
    if (error_) return done(*error_);
    done(message);
  }

  std::vector<std::string>& asked_;
  const std::optional<Error>& error_;
};

}  // namespace mariner::admin
