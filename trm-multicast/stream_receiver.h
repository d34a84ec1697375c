// One stream as a receiver has it: datagrams and repairs in, whole and verified payloads out.
//
// Sans I/O. A datagram goes to its place in its payload as it is opened: that is the only copy.
// What the frames refer to and has not come within the receiver's patience is asked for, once:
// repairs come over TCP, which loses nothing. Patience adapts: a frame normally follows its
// payload, so little is waited for; when what was asked for comes by multicast all the same, more
// is.
//
// Invariants:
// - nothing is handed out that is not complete, under a good tag and of the CRC that the frame
// says.
// - bytes that are here are never written again, whatever arrives.
// - memory is bounded, by twice the window: what nobody has referred to yet gives way, and is asked
//   for when somebody does.
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "trm-multicast/byte_ranges.h"
#include "trm-multicast/messages.h"
#include "trm-multicast/sealer.h"

namespace mariner::trm {

class StreamReceiver {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Options {
    Nanoseconds patience_min = std::chrono::microseconds(100);
    Nanoseconds patience_max = std::chrono::milliseconds(50);
    // What nobody has referred to for so long is forgotten. It is sent again if somebody does.
    Nanoseconds unreferenced_max = std::chrono::seconds(5);
  };
  enum class Taken : std::uint8_t {
    kNew,
    kProbe,
    kDuplicate,
    kOutside,   // late, not for this receiver, or more than there is room for
    kUnsealed,  // nobody who has the key has sent it
  };

  StreamReceiver(const OpenStream& stream, const Options& options);

  // What the sender says of it. kProtocol: something that was referred to has not come yet, or it
  // goes back.
  Result<void> admit(Position begin);
  void dismiss();

  // A datagram of this stream.
  Taken datagram(const SealedDatagram& datagram, Nanoseconds now);

  // The next frame with a payload of this stream: in the order of frames. kProtocol: it goes back,
  // or beyond the window.
  Result<void> refer(const Reference& reference, Nanoseconds now);

  // kProtocol: it is not what was asked for.
  Result<void> repair(const Repair& repair);

  // What was referred to, once it is whole; null: it is not yet. To be called once, with success,
  // for each reference, in their order. kCorrupt: it has not the CRC of the reference, although
  // every byte was authenticated: the sender's memory, or this one's.
  Result<Payload> complete(const Reference& reference);

  // What is to be asked for now; ascending, and not more than one message takes: call it until
  // there is nothing.
  [[nodiscard]] std::optional<Missing> missing(Nanoseconds now);
  // When missing() is worth a call; nothing: not before something else happens.
  [[nodiscard]] std::optional<Nanoseconds> deadline() const {
    if (asking_.empty()) return std::nullopt;
    return asking_.front().at;
  }

  [[nodiscard]] Report report(Nanoseconds now) const;
  // How much there is to report since the last one that was made: bytes that the sender may forget.
  [[nodiscard]] std::uint64_t unreported_bytes() const { return through_.value - reported_.value; }
  void reported() { reported_ = through_; }

  // Forgets what nobody refers to (Options::unreferenced_max).
  void tidy(Nanoseconds now);

  [[nodiscard]] StreamId id() const { return stream_.stream; }
  [[nodiscard]] Nanoseconds patience() const { return patience_; }
  [[nodiscard]] std::uint64_t repaired_bytes() const { return repaired_bytes_; }

 private:
  struct Entry {
    Payload payload;
    ByteRanges here;
    Nanoseconds since{};
    ByteRanges asked;  // what was missing when it was asked for
    bool referred = false;
    std::uint32_t waiting = 0;  // references that it was not handed out for yet
    bool verified = false;

    [[nodiscard]] bool whole() const {
      return here.contains({0, static_cast<std::uint32_t>(payload.size())});
    }
  };
  using Entries = std::map<Position, Entry>;
  struct Asking {
    Nanoseconds at{};
    Position start;
  };

  Taken probe(const SealedDatagram& datagram, Nanoseconds now);
  Taken first_of(const SealedDatagram& datagram, Nanoseconds now);
  Taken part_of(Entry& entry, const SealedDatagram& datagram);
  bool open(const SealedDatagram& datagram, std::span<std::byte> to);
  // Room for so many bytes at `start`, by forgetting what was not referred to: what is below, or,
  // for what is `referred` to, whatever there is.
  bool make_room(Position start, std::uint32_t length, bool referred);
  void skip_to(Position start);
  [[nodiscard]] static bool ask_for(Position start, Entry& entry, std::vector<Part>& parts);
  // It overlaps nothing that is there.
  [[nodiscard]] bool is_free(Position start, std::uint32_t length) const;
  void handed_out(const Reference& reference);
  Entries::iterator erase(Entries::iterator entry);
  template <typename If>
  void erase_if(If condition);

  const OpenStream stream_;
  const Options options_;
  Sealer sealer_;
  Entries entries_;
  std::uint64_t held_bytes_ = 0;  // of memory, of all entries
  std::deque<Asking> asking_;     // referred to when it was not whole; in the order of references
  Payload spare_;                 // made for a datagram that was not to be trusted
  std::vector<std::byte> scratch_;
  Position through_;   // end of the last payload that was handed out
  Position referred_;  // start of the last reference
  Position highest_;
  Position reported_;
  Position probed_;  // end of the last probe
  bool admitted_ = false;
  Nanoseconds patience_;
  std::uint64_t bytes_ = 0;
  std::uint64_t repaired_bytes_ = 0;
  std::uint64_t unsealed_ = 0;
  std::uint64_t probes_ = 0;
  std::uint32_t largest_probe_ = 0;
  Nanoseconds largest_probe_at_{};
};

}  // namespace mariner::trm
