// A PastSource that notes what it is asked and answers what a test has set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/admin/past_source.h"

namespace mariner::admin {

class FakePast final : public PastSource {
 public:
  std::vector<std::string> asked;
  std::optional<Error> error;
  std::vector<std::string> lost;  // ids of readings that have ended
  std::uint64_t gone_to = 0;      // moments before it, that cannot be read from any more

  api::Past past;
  api::Moment moment_answer;
  std::vector<ChangedPart> changed_answers;    // one after the other
  std::vector<StoredPart> stored_answers;      // likewise
  std::vector<VersionsPart> versions_answers;  // likewise
  std::vector<BlockQuestion> questions;
  std::vector<VersionsRequest> versions_requests;
  std::shared_ptr<const void> budget = std::make_shared<int>();

  void open(const api::OpenPastRequest& request, Answer<api::Past> done) override {
    if (request.from().has_sequence() && request.from().sequence() < gone_to) {
      asked.push_back("open too early");
      return done(Error{ErrorCode::kOutsideWindow, "that is not there any more"});
    }
    reply("open " + request.ShortDebugString(), past, std::move(done));
  }
  void show(const api::PastRequest& request, Answer<api::Past> done) override {
    reply("show " + request.id(), past, std::move(done));
  }
  void close(const api::PastRequest& request, Answer<api::Past> done) override {
    reply("close " + request.id(), past, std::move(done));
  }
  void moment(const api::PastMomentRequest& request, Answer<api::Moment> done) override {
    reply("moment " + request.ShortDebugString(), moment_answer, std::move(done));
  }
  // Each block is full of the low byte of its number plus that of the moment.
  void blocks(const std::string& id, std::vector<BlockQuestion> asked_for,
              Answer<Blocks> done) override {
    questions = std::move(asked_for);
    Blocks out{{}, budget};
    for (const BlockQuestion& each : questions) {
      Payload payload = Payload::allocate(kBlockBytes);
      std::fill_n(payload.data(), kBlockBytes,
                  static_cast<std::byte>(each.block.value + each.at.value));
      out.slices.push_back({payload, 0, kBlockBytes});
    }
    reply("blocks " + id, std::move(out), std::move(done));
  }
  void changed(const api::PastChangedRequest& request, Answer<ChangedPart> done) override {
    reply("changed " + request.ShortDebugString(), next(changed_answers), std::move(done));
  }
  void stored(const api::PastStoredRequest& request, Answer<StoredPart> done) override {
    reply("stored " + request.ShortDebugString(), next(stored_answers), std::move(done));
  }
  void versions(const std::string& id, VersionsRequest request,
                Answer<VersionsPart> done) override {
    versions_requests.push_back(std::move(request));
    reply("versions " + id, next(versions_answers), std::move(done));
  }

 private:
  template <typename T>
  static T next(std::vector<T>& answers) {
    if (answers.empty()) return {};
    T first = std::move(answers.front());
    answers.erase(answers.begin());
    return first;
  }
  template <typename T>
  void reply(std::string what, T value, Answer<T> done) {
    for (const std::string& id : lost) {
      if (what.ends_with(" " + id)) {
        asked.push_back(std::move(what));
        return done(Error{ErrorCode::kNotFound, "it has ended"});
      }
    }
    asked.push_back(std::move(what));
    if (error) return done(*error);
    done(std::move(value));
  }
};

}  // namespace mariner::admin
