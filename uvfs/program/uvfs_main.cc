// uvfs: the files of any moment of a volume.
#include "proto/heap.h"
#include "server/client/sandbox.h"
#include "server/client/terminal.h"
#include "uvfs/program/files_command.h"

int main(int argc, char** argv) {
  mariner::keep_freed_memory(32 << 20, 64 << 20);
  const mariner::SystemZone zone;
  return mariner::client::flushed(mariner::uvfs::run_files_command(
      {argv + 1, argv + argc}, mariner::client::process_console(), zone,
      mariner::client::system_now, mariner::client::enter_sandbox));
}
