// What libtsk's tsk_fatfs.h includes and no package installs: as much of it as that header needs.
#pragma once

#include <tsk/libtsk.h>

#include <cstdint>

using TSKConversionResult = int;
using UTF8 = std::uint8_t;
using UTF16 = std::uint16_t;
