// mariner: the administrator's command.
#include "server/client/command.h"
#include "server/client/terminal.h"

int main(int argc, char** argv) {
  const mariner::SystemZone zone;
  return mariner::client::flushed(mariner::client::run_command({argv + 1, argv + argc},
                                                               mariner::client::process_console(),
                                                               zone, mariner::client::system_now));
}
