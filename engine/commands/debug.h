// Tools of DEBUG for all data (debug_data.cc). The others and the table of all tools are in
// debug.cc.
#pragma once

namespace sluice {

struct Call;

void debug_populate(Call& call);
void debug_digest(Call& call);
void debug_digest_values(Call& call);
void debug_reload(Call& call);

}  // namespace sluice
