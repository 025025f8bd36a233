// LossySpill: an EventSpill that keeps everything in memory, counts reads, and loses everything on
// request.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "engine/ports/event_spill.h"

namespace sluice::test {

class LossySpill final : public EventSpill {
 public:
  bool lost = false;
  size_t reads = 0;

  std::unique_ptr<SpilledBytes> keep(std::string bytes) override {
    return std::make_unique<Kept>(std::move(bytes), *this);
  }

 private:
  class Kept final : public SpilledBytes {
   public:
    Kept(std::string bytes, LossySpill& spill)
        : bytes_(std::make_shared<const std::string>(std::move(bytes))), spill_(spill) {}
    std::shared_ptr<const std::string> read() const override {
      ++spill_.reads;
      return spill_.lost ? nullptr : bytes_;
    }
    size_t memory_bytes() const override { return 0; }

   private:
    const std::shared_ptr<const std::string> bytes_;
    LossySpill& spill_;
  };
};

}  // namespace sluice::test
