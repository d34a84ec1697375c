#include "tests/logging/pack_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace mariner::logging::test {

Bytes noise(std::uint64_t seed, std::size_t bytes) {
  std::mt19937_64 random(seed);
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(made.data() + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return made;
}

Bytes prose(std::uint64_t seed, std::size_t bytes) {
  static const std::vector<Bytes> words = [] {
    std::vector<Bytes> made;
    for (std::uint64_t i = 0; i < 3000; ++i) made.push_back(noise(i, 3 + i % 7));
    return made;
  }();
  std::mt19937_64 random(seed);
  Bytes made;
  while (made.size() < bytes) {
    const Bytes& word = words[random() % words.size()];
    made.insert(made.end(), word.begin(), word.end());
  }
  made.resize(bytes);
  return made;
}

void MemoryTracks::begin_track(std::uint64_t bytes) {
  tracks_.push_back({.bytes = bytes});
  bytes_.emplace_back(bytes);
  littered_.emplace_back();
}

void MemoryTracks::add_header(std::span<const std::byte> bytes) {
  PackTrack& track = tracks_.back();
  ASSERT_LE(track.used + bytes.size(), track.bytes);
  std::ranges::copy(bytes, bytes_.back().begin() + static_cast<std::ptrdiff_t>(track.used));
  track.used += bytes.size();
}

void MemoryTracks::add_payload(std::span<const std::byte> bytes, std::uint64_t lbn,
                               std::uint32_t volume) {
  PackTrack& track = tracks_.back();
  track.payloads.push_back({.at = static_cast<std::uint32_t>(track.used),
                            .blocks = static_cast<std::uint32_t>(bytes.size() / kBlockBytes),
                            .volume = {volume},
                            .lbn = lbn});
  add_header(bytes);
}

void MemoryTracks::add_hole(std::uint64_t bytes) { add_header(Bytes(bytes)); }

std::span<const std::byte> MemoryTracks::contents(std::size_t track) const { return bytes_[track]; }

std::uint64_t MemoryTracks::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (const PackTrack& track : tracks_) {
    for (const PackBlocks& blocks : track.payloads) bytes += blocks.blocks * kBlockBytes;
  }
  return bytes;
}

void MemoryTracks::litter(std::size_t track) {
  littered_[track] = bytes_[track];
  std::fill(littered_[track].begin() + static_cast<std::ptrdiff_t>(tracks_[track].used),
            littered_[track].end(), std::byte{0xee});
}

Result<void> MemoryTracks::read(std::size_t track, std::uint64_t offset, std::span<std::byte> to) {
  const std::uint64_t number = reads++;
  if (number >= fail_at_read) return Error{ErrorCode::kIo, "a read that fails"};
  EXPECT_EQ(offset % kBlockBytes, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(to.data()) % kBlockBytes, 0u);
  EXPECT_TRUE(to.size() % kBlockBytes == 0 || offset + to.size() == tracks_[track].bytes);
  EXPECT_LE(offset + to.size(), tracks_[track].bytes);
  const bool is_tampered = track == 0 && number >= tampered_from;
  const Bytes& from = is_tampered                ? *tampered
                      : littered_[track].empty() ? bytes_[track]
                                                 : littered_[track];
  std::memcpy(to.data(), from.data() + offset, to.size());
  return {};
}

Result<void> MemoryPack::append(std::span<const std::byte> more) {
  if (appends++ == fail_at_append) return Error{ErrorCode::kNoSpace, "an append that fails"};
  bytes.insert(bytes.end(), more.begin(), more.end());
  return {};
}

Result<void> MemoryPack::read(std::uint64_t at, std::span<std::byte> to) {
  reads.push_back(at);
  if (at > bytes.size() || to.size() > bytes.size() - at) {
    return Error{ErrorCode::kIo, "a read past the end"};
  }
  std::memcpy(to.data(), bytes.data() + at, to.size());
  return {};
}

MadePack::MadePack(MemoryTracks& tracks, PackOptions options) {
  Result<BuiltPack> built = build_pack(tracks.tracks(), tracks, pack, options);
  EXPECT_TRUE(built) << (built ? "" : to_string(built.error()));
  if (built) taken_as_equal = built->taken_as_equal;
  const Bytes coded = to_bytes(built ? built->table : PackTable());
  table_bytes = coded.size();
  Result<PackTable> decoded = PackTable::from_bytes(coded);
  EXPECT_TRUE(decoded) << (decoded ? "" : to_string(decoded.error()));
  EXPECT_TRUE(built && decoded && built->table == *decoded);
  table = std::make_shared<const PackTable>(std::move(*decoded));
  EXPECT_EQ(table->pack_bytes(), pack.bytes.size());
  reader = std::make_unique<PackReader>(1, table, pack, cache);
}

void expect_reads_back(const MemoryTracks& tracks, const PackReader& reader, std::uint64_t seed,
                       int count) {
  std::mt19937_64 random(seed);
  for (std::size_t track = 0; track < tracks.tracks().size(); ++track) {
    const std::span<const std::byte> expected = tracks.contents(track);
    Bytes found(expected.size(), std::byte{0xaa});
    ASSERT_TRUE(reader.read(track, 0, found));
    ASSERT_TRUE(std::ranges::equal(found, expected)) << "track " << track;
    for (int i = 0; i < count && !expected.empty(); ++i) {
      const std::size_t at = random() % expected.size();
      const std::size_t bytes = std::min<std::size_t>(random() % 20000, expected.size() - at);
      Bytes part(bytes, std::byte{0xaa});
      ASSERT_TRUE(reader.read(track, at, part));
      ASSERT_TRUE(std::ranges::equal(part, expected.subspan(at, bytes)))
          << bytes << " bytes at " << at << " of track " << track << ", seed " << seed;
    }
  }
}

void expect_shallow(const PackTable& table) {
  // What deltas take of each region; no literal may stand there.
  std::map<std::uint32_t, std::set<std::pair<std::uint32_t, std::uint32_t>>> deltas;
  for (const PackTable::Track& track : table.tracks()) {
    for (const PackPiece& piece : track.pieces) {
      if (piece.kind != PackPiece::Kind::kDelta) continue;
      deltas[piece.region].emplace(piece.offset, piece.offset + piece.delta_bytes);
    }
  }
  const auto expect_literal = [&deltas](std::uint32_t region, std::uint32_t begin,
                                        std::uint32_t end) {
    for (const auto& [from, until] : deltas[region]) EXPECT_TRUE(until <= begin || end <= from);
  };
  for (const PackTable::Track& track : table.tracks()) {
    for (const PackPiece& piece : track.pieces) {
      if (piece.kind == PackPiece::Kind::kPlain) {
        expect_literal(piece.region, piece.offset, piece.offset + piece.bytes);
      } else {
        expect_literal(piece.base_region, piece.base_offset, piece.base_offset + kBlockBytes);
      }
    }
  }
}

}  // namespace mariner::logging::test
