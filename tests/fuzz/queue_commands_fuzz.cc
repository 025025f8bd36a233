// libFuzzer target: bytes as a history of two queues (tests/support/queue_grammar.h): nothing
// aborts, each reply is RESP, and journal and checkpoint give the queues back.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/support/queue_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  try {
    sluice::test::QueueTrial(sluice::Bytes(reinterpret_cast<const char*>(data), size)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
