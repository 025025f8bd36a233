// Handlers of the HyperLogLog family; the rows that name them are in hyperloglog_rows.cc.
#pragma once

namespace sluice {

struct Call;

void pfadd_command(Call& call);
void pfcount_command(Call& call);
void pfmerge_command(Call& call);
void pfdebug_command(Call& call);
void pfselftest_command(Call& call);

}  // namespace sluice
