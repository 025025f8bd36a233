// LossySpill: an EventSpill that keeps all in memory, and loses it when it is told to.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/event_spill.h"

namespace sluice::test {

class LossySpill final : public EventSpill {
 public:
  bool lost = false;

  std::unique_ptr<SpilledBytes> keep(std::string bytes) override {
    return std::make_unique<Kept>(std::move(bytes), lost);
  }

 private:
  class Kept final : public SpilledBytes {
   public:
    Kept(std::string bytes, const bool& lost)
        : bytes_(std::make_shared<const std::string>(std::move(bytes))), lost_(lost) {}
    std::shared_ptr<const std::string> read() const override { return lost_ ? nullptr : bytes_; }
    size_t memory_bytes() const override { return 0; }

   private:
    const std::shared_ptr<const std::string> bytes_;
    const bool& lost_;
  };
};

}  // namespace sluice::test
