# cmake -DPROGRAM=path -DNAME=name -DSUMMARY=words -DPAGE=file -P man_page.cmake: converts the
# output of the program's --help to a manual page.
execute_process(COMMAND "${PROGRAM}" --help OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
string(REPLACE "-" "\\-" shown "${NAME}")
string(TOUPPER "${NAME}" title)
file(WRITE "${PAGE}"
  ".TH ${title} 1 \"\" \"Sluice\" \"Sluice\"\n"
  ".SH NAME\n${shown} \\- ${SUMMARY}\n"
  ".SH DESCRIPTION\n.nf\n${text}.fi\n"
  ".SH SEE ALSO\n.BR sluice (1)\n")
