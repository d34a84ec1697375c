// The only source that is compiled anew for each clone: with the path in the command line of all
// tests, the compiler's cache would know none of them.
#include "tests/support/source_folder.h"

namespace mariner::test {

std::string source_path(const std::string& inside) { return MARINER_SOURCE_DIR "/" + inside; }

}  // namespace mariner::test
