// Progress: shows on standard error how far an import has come. On a terminal it updates one line,
// otherwise it prints a line every few seconds. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::import {

// 1234567 as "1,234,567".
std::string grouped(uint64_t number);
std::string megabytes(uint64_t bytes);

class Progress {
 public:
  explicit Progress(bool quiet);

  // `done` of `total` are bytes of a file, or keys of a server. `bytes` have been read so far.
  void show(uint64_t keys, uint64_t bytes, uint64_t done, uint64_t total);
  // Announces another step, without a count.
  void say(const std::string& text);
  // Ends the line on a terminal.
  void end();
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  void print(const std::string& line);

  bool quiet_;
  bool terminal_;
  bool open_line_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_;
  uint64_t calls_ = 0;
};

}  // namespace sluice::import
