// ifsck: any moment of a volume becomes a file system.
#include "ifsck/program/fsck_command.h"
#include "proto/heap.h"
#include "server/client/sandbox.h"
#include "server/client/terminal.h"

int main(int argc, char** argv) {
  mariner::keep_freed_memory(32 << 20, 64 << 20);  // what one moment took, the next does
  const mariner::SystemZone zone;
  return mariner::client::flushed(mariner::ifsck::run_fsck_command(
      {argv + 1, argv + argc}, mariner::client::process_console(), zone,
      mariner::client::system_now, mariner::client::enter_sandbox));
}
