// What a write puts into a cell: bytes that say which write they are of, and where they belong.
//
// A cell of WRITE starts with a magic number, the write's id, the cell's place and a CRC32C of the
// rest; the rest is noise drawn from both, so that no two cells are alike. Every other write has so
// little noise that it can be compressed. WRITE SAME repeats one such cell, whose place is
// "anywhere".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tests/hammer/journal.h"

namespace mariner::hammer {

using Cell = std::span<std::byte, kCellBytes>;
using ConstCell = std::span<const std::byte, kCellBytes>;

// The contents of `cell` after `write`; null: as a volume that was never written (zeros).
void fill_cell(Cell out, const Write* write, std::uint64_t cell);
bool cell_holds(ConstCell bytes, const Write* write, std::uint64_t cell);

// The whole payload of a write command: every cell of kWrite, one cell of kSame and kZeroes.
void fill_payload(std::span<std::byte> out, const Write& write);

// What the bytes claim to be, for people: "write 42 of cell 7", "zeros", "no cell of ours".
std::string describe_cell(ConstCell bytes);

}  // namespace mariner::hammer
