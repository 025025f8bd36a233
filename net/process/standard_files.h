// Keeps the descriptors 0 to 2 for standard input, output and error.
#pragma once

namespace sluice {

// A program that is started with one of them closed gives that number to the next file or socket
// that it opens, and what it prints goes there: to the server as commands, or into the journal.
// Call this first: they are occupied then, and their use still fails. Only what a library has
// opened before main may have one of the numbers, as an eventfd of gRPC does.
void occupy_standard_files();

}  // namespace sluice
