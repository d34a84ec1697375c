#!/usr/bin/env python3
"""The checker of the house checked: each rule broken once in a small tree."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import walls  # noqa: E402  (the path comes first)


class Walls(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self._folder.name)
        self.put("proto/CMakeLists.txt", "SOURCES units.h units.cc")
        self.put("proto/units.h", "#pragma once\n")
        self.put("proto/units.cc", '#include "proto/units.h"\nint unit = 1;\n')
        self.put("tests/proto/CMakeLists.txt", "SOURCES units_test.cc")
        self.put("tests/proto/units_test.cc", '#include "proto/units.h"\n')

    def tearDown(self):
        self._folder.cleanup()

    def put(self, name: str, text: str):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def expect(self, *pieces: str):
        faults = walls.faults_of(self.root)
        self.assertEqual(len(faults), len(pieces), faults)
        for fault, piece in zip(faults, pieces):
            self.assertIn(piece, fault)

    def test_a_house_in_order(self):
        self.expect()

    def test_an_include_across_an_undrawn_wall(self):
        self.put("logging/CMakeLists.txt", "SOURCES disk.h")
        self.put("logging/disk.h", "#pragma once\n")
        self.put("proto/units.h", '#pragma once\n#include "logging/disk.h"\n')
        self.expect("proto/units.h:2: proto may not include logging/disk.h")

    def test_a_drawn_wall_has_a_door_one_way(self):
        self.put("logging/CMakeLists.txt", "SOURCES disk.h")
        self.put("logging/disk.h", '#pragma once\n#include "proto/units.h"\n')
        self.expect()

    def test_a_constant_that_nothing_uses(self):
        self.put("proto/units.cc", '#include "proto/units.h"\n'
                 "constexpr int kUsed = 1;\nconstexpr std::size_t kIdle = 2;\nint unit = kUsed;\n")
        self.expect("proto/units.cc:3: kIdle is not used")

    def test_nothing_includes_tests(self):
        self.put("tests/proto/CMakeLists.txt", "SOURCES units_test.cc help.h")
        self.put("tests/proto/help.h", "#pragma once\n")
        self.put("proto/units.h", '#pragma once\n#include "tests/proto/help.h"\n')
        self.expect("proto may not include tests/proto/help.h")

    def test_a_room_with_walls_of_its_own(self):
        self.put("server/CMakeLists.txt", "peer/frame.h node/node.h")
        self.put("server/node/node.h", '#pragma once\n#include "server/peer/frame.h"\n')
        self.put("server/peer/frame.h", '#pragma once\n#include "proto/units.h"\n')
        self.expect()
        self.put("server/peer/frame.h", '#pragma once\n#include "server/node/node.h"\n')
        self.expect("server/peer may not include server/node/node.h")

    def test_only_one_room_of_the_server_is_open_to_uvfs(self):
        self.put("server/CMakeLists.txt", "client/api.h node/node.h")
        self.put("server/client/api.h", "#pragma once\n")
        self.put("server/node/node.h", "#pragma once\n")
        self.put("uvfs/CMakeLists.txt", "mount.h")
        self.put("uvfs/mount.h",
                 '#pragma once\n#include "server/client/api.h"\n#include "server/node/node.h"\n')
        self.expect("uvfs/mount.h:3")

    def test_what_has_another_licence_stands_alone(self):
        self.put("server/tgt/CMakeLists.txt", "SOURCES session.h")
        self.put("server/tgt/session.h", '#pragma once\n#include "proto/units.h"\n')
        self.put("server/node/CMakeLists.txt", "SOURCES node.h")
        self.put("server/node/node.h", '#pragma once\n#include "server/tgt/session.h"\n')
        self.put("tests/server/tgt/CMakeLists.txt", "SOURCES session_test.cc")
        self.put("tests/server/tgt/session_test.cc", '#include "server/tgt/session.h"\n')
        self.expect("server may not include server/tgt/session.h", "server/tgt may not include proto/units.h")

    def test_a_library_does_not_include_what_its_programs_have(self):
        self.put("ifsck/CMakeLists.txt", "past.h program/remote_past.h main.cc")
        self.put("ifsck/past.h", "#pragma once\n")
        self.put("server/CMakeLists.txt", "client/api.h")
        self.put("server/client/api.h", "#pragma once\n")
        self.put("ifsck/program/remote_past.h",
                 '#pragma once\n#include "ifsck/past.h"\n#include "server/client/api.h"\n')
        self.put("ifsck/main.cc", '#include "ifsck/program/remote_past.h"\nint main() {}\n')
        self.put("uvfs/CMakeLists.txt", "mount.h")
        self.put("uvfs/mount.h", '#pragma once\n#include "ifsck/program/remote_past.h"\n')
        self.expect()
        self.put("ifsck/past.h", '#pragma once\n#include "ifsck/program/remote_past.h"\n')
        self.expect("ifsck/past.h:2: ifsck may not include ifsck/program/remote_past.h")

    def test_an_unregistered_source(self):
        self.put("proto/CMakeLists.txt", "SOURCES units.h more_units.cc")
        self.expect("proto/units.cc:1: is not listed")

    def test_a_source_without_its_mirror(self):
        (self.root / "tests/proto/units_test.cc").unlink()
        self.expect("has no mirror tests/proto/units_test.cc")

    def test_a_main_program_needs_none(self):
        self.put("proto/CMakeLists.txt", "units.h units.cc main.cc")
        self.put("proto/main.cc", "int main() {}\n")
        self.expect()

    def test_a_source_of_includes_only_needs_none(self):
        self.put("proto/CMakeLists.txt", "units.h units.cc library.cc")
        self.put("proto/library.cc", "// Compiled once.\n#include <library/src.hpp>\n")
        self.expect()

    def test_a_header_that_may_be_read_twice(self):
        self.put("proto/units.h", "\n")
        self.expect("no #pragma once")

    def test_two_classes_of_one_name(self):
        self.put("proto/units.h", "#pragma once\nnamespace mariner {\nstruct Unit {};\n}  // namespace mariner\n")
        self.put("tests/proto/units_test.cc", "namespace mariner {\nnamespace {\nstruct Unit {};\n}  // namespace\nclass Unit;\n}  // namespace mariner\n")
        self.expect()
        self.put("tests/proto/units_test.cc", "namespace mariner {\nnamespace {\n}  // namespace\nclass Unit {\n};\n}  // namespace mariner\n")
        self.expect("mariner::Unit is another one in proto/units.h")

    def test_a_missing_header(self):
        self.put("proto/units.cc", '#include "proto/unit.h"\n')
        self.expect("proto/unit.h does not exist")

    def test_a_folder_that_the_design_does_not_know(self):
        self.put("utils/helper.h", "#pragma once\n")
        self.expect("utils is not a folder of the project")

    def test_a_name_of_this_machine(self):
        self.put("README.md", "see /" + "work/notes\n")
        self.expect("README.md:1: names")


if __name__ == "__main__":
    unittest.main()
