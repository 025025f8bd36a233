// Handlers of the server family; the rows that name them are in server_rows.cc.
#pragma once

namespace sluice {

struct Call;

// server.cc
void time_command(Call& call);
void shutdown_command(Call& call);
void save_command(Call& call);
void bgsave_command(Call& call);
void bgrewriteaof_command(Call& call);
void lastsave_command(Call& call);
void monitor_command(Call& call);
void config_get_command(Call& call);
void config_set_command(Call& call);
void config_rewrite_command(Call& call);
void config_resetstat_command(Call& call);
void slowlog_get_command(Call& call);
void slowlog_len_command(Call& call);
void slowlog_reset_command(Call& call);

// debug.cc
void debug_command(Call& call);

// memory.cc
void memory_usage_command(Call& call);
void memory_stats_command(Call& call);
void memory_doctor_command(Call& call);
void memory_purge_command(Call& call);
void memory_malloc_stats_command(Call& call);

// roles.cc
void role_command(Call& call);
// NO ONE is the present state of a primary; a host is refused.
void replicaof_command(Call& call);
void failover_command(Call& call);

// wait.cc
void wait_command(Call& call);
void waitaof_command(Call& call);

// lolwut.cc
void lolwut_command(Call& call);

// info.cc
void info_command(Call& call);

// command_info.cc
void command_command(Call& call);
void command_count_command(Call& call);
void command_docs_command(Call& call);
void command_getkeys_command(Call& call);
void command_getkeysandflags_command(Call& call);
void command_info_command(Call& call);
void command_list_command(Call& call);

}  // namespace sluice
