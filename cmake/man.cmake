# Manual pages, generated from the programs' own help after they have been built, so that there is
# only one text.
set(man_dir "${PROJECT_BINARY_DIR}/man")
file(MAKE_DIRECTORY "${man_dir}")
add_custom_command(TARGET sluice POST_BUILD
  COMMAND sluice help --man > "${man_dir}/sluice.1" VERBATIM)
set(summary_of_sluice-server "durable execution queue that speaks the Redis protocol")
set(summary_of_sluice-journal "inspects a Sluice data directory, or lets it lead a group")
set(summary_of_sluice-import "makes a Sluice data directory from Redis or a backup")
foreach(program IN ITEMS sluice-server sluice-journal sluice-import)
  if(NOT TARGET ${program})
    continue()
  endif()
  add_custom_command(TARGET ${program} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${program}>" "-DNAME=${program}"
      "-DSUMMARY=${summary_of_${program}}" "-DPAGE=${man_dir}/${program}.1"
      -P "${PROJECT_SOURCE_DIR}/cmake/man_page.cmake" VERBATIM)
endforeach()
install(DIRECTORY "${man_dir}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT programs)
