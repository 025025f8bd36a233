// OutputBuffer: the bytes and times by which client-output-buffer-limit closes a client.
#include "net/io/output_buffer.h"

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/test.h"

namespace sluice {
namespace {

void append(OutputBuffer& output, size_t bytes) { output.bytes().append(std::string(bytes, 'x')); }

TEST_CASE("pushes that were sent do not count when a large reply follows") {
  OutputBuffer output;
  for (int i = 0; i < 100; ++i) {
    append(output, 1000);
    output.note_pushed(1000);
    CHECK(output.holds_mostly_pushes());
    output.open();
    output.sent(1000);
    output.compact();
  }
  append(output, 50'000);
  CHECK_FALSE(output.holds_mostly_pushes());
}

TEST_CASE("of pushes and replies that are mixed, their share stays as they are sent") {
  OutputBuffer output;
  append(output, 1000);
  output.note_pushed(600);
  output.open();
  output.sent(900);
  CHECK(output.holds_mostly_pushes());
  append(output, 50);
  CHECK_FALSE(output.holds_mostly_pushes());
}

TEST_CASE("the time above the soft limit counts from the last moment below it") {
  OutputLimit limit;
  limit.soft_bytes = 100;
  limit.soft_s = 1;
  OutputBuffer output;
  append(output, 101);
  CHECK_FALSE(output.exceeds(limit));
  CHECK(output.is_over_soft_limit());
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  CHECK(output.exceeds(limit));
  output.open();
  output.sent(101);
  CHECK_FALSE(output.exceeds(limit));
  CHECK_FALSE(output.is_over_soft_limit());
  append(output, 101);
  CHECK_FALSE(output.exceeds(limit));
}

TEST_CASE("the hard limit holds at once for who is above the soft limit too") {
  OutputLimit limit;
  limit.hard_bytes = 200;
  limit.soft_bytes = 100;
  limit.soft_s = 1'000'000;
  OutputBuffer output;
  append(output, 200);
  CHECK_FALSE(output.exceeds(limit));
  append(output, 1);
  CHECK(output.exceeds(limit));
}

}  // namespace
}  // namespace sluice
