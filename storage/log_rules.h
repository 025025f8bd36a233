// The rules that make the replicated log right. All hold; the model test switches off one at a time
// and must find a wrong history (tests/model/replicated_log_test.cc).
#pragma once

namespace sluice {

struct LogRules {
  bool in_order = true;       // acknowledge only what has no hole before it
  bool whole_commits = true;  // acknowledge at the ends of commits only
  bool whole_taken = true;    // apply, and continue behind, whole commits only
  bool tidy = true;           // remove what lies behind a hole when the epoch was taken
  bool ready = true;          // no appends before it is known that no removal can come any more
};

}  // namespace sluice
