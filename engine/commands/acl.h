// Handlers of ACL; the rows that name them are in acl_rows.cc.
#pragma once

namespace sluice {

struct Call;

void acl_cat_command(Call& call);
void acl_deluser_command(Call& call);
void acl_dryrun_command(Call& call);
void acl_log_command(Call& call);
void acl_load_command(Call& call);
void acl_save_command(Call& call);
void acl_genpass_command(Call& call);
void acl_getuser_command(Call& call);
void acl_list_command(Call& call);
void acl_setuser_command(Call& call);
void acl_users_command(Call& call);
void acl_whoami_command(Call& call);

}  // namespace sluice
