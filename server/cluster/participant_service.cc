#include "server/cluster/participant_service.h"

#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {

using replication::Envelope;
using replication::FromCoordinator;
using replication::NodeId;

void ParticipantService::peer_connected(PeerId peer, NodeId node) {
  CHECK(bus_ != nullptr);
  auto& shared = nodes_[node];
  if (shared == nullptr) shared = std::make_shared<HistorySession::Node>();
  peers_[peer].history = std::make_unique<HistorySession>(HistorySession::Parts{
      [this](VolumeId volume) -> volume::History* {
        const auto found = volumes_.find(volume);
        return found == volumes_.end() ? nullptr : found->second.history;
      },
      [this](VolumeId volume) -> volume::Base* {
        const auto found = volumes_.find(volume);
        return found == volumes_.end() ? nullptr : found->second.image;
      },
      [this, peer](const HistoryFrame& frame) { return bus_->answer(peer, frame); }, shared,
      [this](VolumeId volume) -> CurrentSource* {
        const auto found = volumes_.find(volume);
        return found == volumes_.end() ? nullptr : found->second.current;
      }});
}

void ParticipantService::peer_closed(PeerId peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  const Peer gone = std::move(found->second);
  peers_.erase(found);
  for (const auto& [channel, conversation] : gone.channels) end(conversation);
}

void ParticipantService::remove(VolumeId volume) {
  for (auto& [id, peer] : peers_) {
    std::erase_if(peer.channels, [&](const auto& each) {
      if (each.second.volume != volume) return false;
      end(each.second);
      return true;
    });
  }
  volumes_.erase(volume);
}

void ParticipantService::end(const Conversation& conversation) {
  const auto found = volumes_.find(conversation.volume);
  if (found == volumes_.end()) return;
  if (conversation.with_logger) {
    found->second.logger->closed(conversation.id);
  } else {
    found->second.storage->closed(conversation.id);
  }
}

Result<void> ParticipantService::received(PeerId from, std::uint64_t channel, VolumeId volume,
                                          FromCoordinator message) {
  Peer& peer = peers_.at(from);
  const auto found = peer.channels.find(channel);
  if (std::holds_alternative<replication::CloseChannel>(message)) {
    if (found == peer.channels.end()) return {};
    const Conversation conversation = found->second;
    peer.channels.erase(found);
    end(conversation);
    return {};
  }
  if (found == peer.channels.end()) return open(from, peer, channel, volume, std::move(message));
  if (found->second.volume != volume) {
    return Error{ErrorCode::kProtocol, "a conversation about volume " +
                                           std::to_string(found->second.volume.value) +
                                           " goes on about volume " + std::to_string(volume.value)};
  }
  return tell(found->second, std::move(message));
}

Result<void> ParticipantService::open(PeerId from, Peer& peer, std::uint64_t channel,
                                      VolumeId volume, FromCoordinator message) {
  const bool with_logger = std::holds_alternative<replication::OpenLog>(message);
  // What was under way when this end has ended the conversation (the volume was removed).
  if (!with_logger && !std::holds_alternative<replication::OpenStorage>(message)) return {};
  if (peer.channels.size() >= kChannelsMax) {
    return Error{ErrorCode::kLimit,
                 "more than " + std::to_string(kChannelsMax) + " conversations on one connection"};
  }
  const auto found = volumes_.find(volume);
  const bool here = found != volumes_.end() && (with_logger ? found->second.logger != nullptr
                                                            : found->second.storage != nullptr);
  if (!here) {
    bus_->send(
        from,
        Envelope{
            channel, volume,
            replication::ToCoordinator(replication::Refused{
                volume,
                {},
                {ErrorCode::kUnavailable,
                 "this node is not the " + std::string(with_logger ? "logger" : "storage node") +
                     " of volume " + std::to_string(volume.value) + ", or not yet"}})});
    return {};
  }
  const auto answer = [this, from, channel, volume](const auto& told) {
    bus_->send(from, Envelope{channel, volume, replication::widen(told)});
  };
  Conversation& conversation = peer.channels[channel];
  conversation = {
      volume, with_logger,
      with_logger ? found->second.logger->accept(answer) : found->second.storage->accept(answer)};
  return tell(conversation, std::move(message));
}

Result<void> ParticipantService::tell(const Conversation& conversation, FromCoordinator message) {
  const Parts& parts = volumes_.at(conversation.volume);
  if (conversation.with_logger) {
    auto told = replication::to_logger(std::move(message));
    if (!told) return told.error();
    parts.logger->received(conversation.id, std::move(*told));
  } else {
    auto told = replication::to_storage(std::move(message));
    if (!told) return told.error();
    parts.storage->received(conversation.id, std::move(*told));
  }
  return {};
}

Result<void> ParticipantService::received(PeerId from, HistoryQuestion question) {
  return peers_.at(from).history->received(std::move(question));
}

void ParticipantService::writable(PeerId peer) {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) found->second.history->writable();
}

}  // namespace mariner::cluster
