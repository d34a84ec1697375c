#include "logging/pack_table.h"

#include <gtest/gtest.h>

namespace mariner::logging {
namespace {

using Kind = PackPiece::Kind;
using Track = PackTable::Track;

PackTable table() {
  return {{{.bytes = 100000,
            .pieces = {{.at = 0, .bytes = 4096, .region = 0, .offset = 0},
                       {.at = 8192, .bytes = 100, .region = 1, .offset = 10},
                       {.at = 8292,
                        .bytes = 4096,
                        .region = 1,
                        .offset = 110,
                        .base_region = 0,
                        .base_offset = 512,
                        .delta_bytes = 30,
                        .kind = Kind::kDelta}}},
           {.bytes = 0, .pieces = {}}},
          {{.at = 0, .stored_bytes = 100, .plain_bytes = 8192},
           {.at = 100, .stored_bytes = 140, .plain_bytes = 140}}};
}

TEST(PackTable, FindsThePiecesFromAPlaceOn) {
  const PackTable t = table();
  EXPECT_EQ(t.pieces_from(0, 0).size(), 3u);
  EXPECT_EQ(t.pieces_from(0, 4095).size(), 3u);
  EXPECT_EQ(t.pieces_from(0, 4096).size(), 2u);
  EXPECT_EQ(t.pieces_from(0, 8291).front().at, 8192u);
  EXPECT_EQ(t.pieces_from(0, 8292).front().at, 8292u);
  EXPECT_EQ(t.pieces_from(0, 12388).size(), 0u);
  EXPECT_EQ(t.pieces_from(1, 0).size(), 0u);
}

TEST(PackTable, TellsItsBytes) {
  EXPECT_EQ(table().pack_bytes(), 240u);
  EXPECT_EQ(PackTable().pack_bytes(), 0u);
  EXPECT_GE(table().memory_bytes(), 3 * sizeof(PackPiece));
}

// What changes in the table above, and the fault that it then has.
template <typename Change>
std::string fault(Change change) {
  const PackTable whole = table();
  std::vector<Track> tracks(whole.tracks().begin(), whole.tracks().end());
  std::vector<PackRegion> regions(whole.regions().begin(), whole.regions().end());
  change(tracks, regions);
  return PackTable::fault_of(tracks, regions);
}
std::string piece_fault(std::size_t piece, auto change) {
  return fault([&](auto& tracks, auto&) { change(tracks[0].pieces[piece]); });
}
std::string region_fault(auto change) {
  return fault([&](auto&, auto& regions) { change(regions[1]); });
}

TEST(PackTable, FindsEveryFault) {
  EXPECT_EQ(fault([](auto&, auto&) {}), "");
  EXPECT_EQ(region_fault([](auto& r) { r.plain_bytes = 0; }), "region 1 has 0 plain bytes");
  EXPECT_EQ(region_fault([](auto& r) { r.plain_bytes = (1u << 20) + 1; }),
            "region 1 has 1048577 plain bytes");
  EXPECT_EQ(region_fault([](auto& r) { r.stored_bytes = 141; }),
            "region 1 has 141 bytes for 140 plain ones");
  EXPECT_EQ(region_fault([](auto& r) { r.stored_bytes = 0; }),
            "region 1 has 0 bytes for 140 plain ones");
  EXPECT_EQ(region_fault([](auto& r) { r.at = kPackBytesMax - 139; }),
            "region 1 begins at byte 8589934453");
  EXPECT_EQ(region_fault([](auto& r) { r.at = kPackBytesMax - 140; }), "");
  const std::string outside = "track 0: piece at byte 8192 is not within a region";
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.bytes = 0; }), outside);
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.region = 2; }), outside);
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.offset = 41; }), outside);
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.offset = UINT32_MAX; }), outside);
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.base_offset = 1; }),
            "track 0: piece at byte 8192 is plain and has a base");
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.bytes = 101; }),
            "track 0: piece at byte 8292 is out of its place");
  EXPECT_EQ(piece_fault(1, [](auto& p) { p.at = 4095; }),
            "track 0: piece at byte 4095 is out of its place");
  const std::string delta = "track 0: piece at byte 8292 ";
  EXPECT_EQ(piece_fault(2, [](auto& p) { p.delta_bytes = 0; }), delta + "is not within a region");
  EXPECT_EQ(piece_fault(2, [](auto& p) { p.delta_bytes = 31; }), delta + "is not within a region");
  EXPECT_EQ(piece_fault(2, [](auto& p) { p.bytes = 4095; }),
            delta + "is a delta and not one block");
  EXPECT_EQ(piece_fault(2, [](auto& p) { p.base_region = 1; }),
            delta + "has a base that is not within a region");
  EXPECT_EQ(piece_fault(2, [](auto& p) { p.base_offset = 4097; }),
            delta + "has a base that is not within a region");
}

TEST(PackTable, KeepsItsBounds) {
  EXPECT_EQ(fault([](auto& tracks, auto&) { tracks[0].bytes = 12387; }),
            "track 0: piece at byte 8292 is out of its place");
  EXPECT_EQ(fault([](auto& tracks, auto&) { tracks[1].bytes = (1u << 30) + 1; }),
            "track 1: has 1073741825 bytes");
  EXPECT_EQ(fault([](auto& tracks, auto&) { tracks.resize(6, {.bytes = 1u << 30}); }),
            "tracks of 4295067296 bytes");
  EXPECT_EQ(fault([](auto& tracks, auto&) { tracks.resize((1u << 16) + 1); }), "65537 tracks");
  EXPECT_EQ(fault([](auto&, auto& regions) { regions.resize((1u << 20) + 1, regions[0]); }),
            "1048577 regions");
  EXPECT_EQ(fault([](auto& tracks, auto&) {
              tracks[1].bytes = 1u << 30;
              for (std::uint32_t i = 0; i <= kPackPiecesMax; ++i) {
                tracks[1].pieces.push_back({.at = i, .bytes = 1});
              }
            }),
            "4194308 pieces");
}

}  // namespace
}  // namespace mariner::logging
