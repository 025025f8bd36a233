# Shell completion for sluice: printed by the program itself after it has been built, and installed
# where each shell looks for it.
set(completion_dir "${PROJECT_BINARY_DIR}/completion")
file(MAKE_DIRECTORY "${completion_dir}")
foreach(shell IN ITEMS bash zsh fish)
  add_custom_command(TARGET sluice POST_BUILD
    COMMAND sluice completion ${shell} > "${completion_dir}/sluice.${shell}"
    VERBATIM)
endforeach()
install(FILES "${completion_dir}/sluice.bash" RENAME sluice
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT programs)
install(FILES "${completion_dir}/sluice.zsh" RENAME _sluice
  DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT programs)
install(FILES "${completion_dir}/sluice.fish"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT programs)
