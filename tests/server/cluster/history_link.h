// A storage node's history and the logger's session that answers it, over bytes, in one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "server/cluster/history_session.h"
#include "server/cluster/remote_history.h"
#include "tests/support/manual_executor.h"

namespace mariner::cluster {

class HistoryLink {
 public:
  static constexpr VolumeId kVolume{7};

  explicit HistoryLink(volume::History& far) : far_(far) {}
  ~HistoryLink() { disconnect(); }

  // Frames arrive at once, in turns of the executor.
  void connect() {
    ++connection_;
    session_ = std::make_unique<HistorySession>(HistorySession::Parts{
        [this](VolumeId volume) { return volume == kVolume ? &far_ : nullptr; },
        [this](VolumeId volume) { return volume == kVolume ? image : nullptr; },
        [this](const HistoryFrame& frame) {
          if (refuse_answers) return false;
          executor.post([this, frame, connection = connection_] {
            if (connection != connection_) return;
            auto answer = decode_answer(frame.header, whole(frame.payload));
            ASSERT_TRUE(answer.has_value()) << answer.error().message;
            broken = !near.received(std::move(*answer)).has_value();
          });
          return true;
        },
        node_, [this](VolumeId volume) { return volume == kVolume ? current : nullptr; }});
    near.up([this](const HistoryFrame& frame) {
      if (refuse_questions) return false;
      executor.post([this, frame, connection = connection_] {
        if (connection != connection_) return;
        auto question = decode_question(frame.header, whole(frame.payload));
        ASSERT_TRUE(question.has_value()) << question.error().message;
        ASSERT_TRUE(session_->received(std::move(*question)).has_value());
      });
      return true;
    });
  }
  void disconnect() {
    ++connection_;
    session_.reset();
    near.down();
  }
  void let_answers_go() {
    refuse_answers = false;
    session_->writable();
  }
  void let_questions_go() {
    refuse_questions = false;
    near.writable();
  }

  // As the receiver of frames has it: a payload of its own.
  static Payload whole(const PayloadSlice& slice) {
    if (slice.length == 0) return {};
    Payload copy = Payload::allocate(slice.length);
    std::copy(slice.bytes().begin(), slice.bytes().end(), copy.bytes().begin());
    return copy;
  }

  test::ManualExecutor executor;
  RemoteHistory near{kVolume};
  volume::Base* image = nullptr;     // of the far node
  CurrentSource* current = nullptr;  // ...
  bool refuse_answers = false;
  bool refuse_questions = false;
  bool broken = false;

 private:
  volume::History& far_;
  std::shared_ptr<HistorySession::Node> node_ = std::make_shared<HistorySession::Node>();
  std::unique_ptr<HistorySession> session_;
  std::uint64_t connection_ = 0;
};

}  // namespace mariner::cluster
