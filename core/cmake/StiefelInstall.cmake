# `cmake --install`: program, library, headers, experiments, documentation, man pages, completion, and the package that find_package(stiefel)
# reads; stiefel_add_plugin() installs the plugins. The build tree holds the same package under lib/cmake/stiefel, so a plugin can be built
# against either.
include(CMakePackageConfigHelpers)
set(STIEFEL_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/stiefel)
set(STIEFEL_BUILD_PACKAGE ${CMAKE_BINARY_DIR}/lib/cmake/stiefel)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/stiefelConfig.cmake.in ${STIEFEL_BUILD_PACKAGE}/stiefelConfig.cmake
  INSTALL_DESTINATION ${STIEFEL_PACKAGE})
write_basic_package_version_file(${STIEFEL_BUILD_PACKAGE}/stiefelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
foreach(file StiefelOpenBLAS.cmake StiefelPlugin.cmake plugin_exports.map)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${file} ${STIEFEL_BUILD_PACKAGE}/${file} COPYONLY)
endforeach()

# The folder of the pthread OpenBLAS comes first: the soname is the same for all flavors, whichever is the system's choice.
set_target_properties(stiefel PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
file(RELATIVE_PATH STIEFEL_LIBRARIES_FROM_PROGRAM /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set_target_properties(stiefel_program PROPERTIES INSTALL_RPATH "$ORIGIN/${STIEFEL_LIBRARIES_FROM_PROGRAM}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS stiefel_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS stiefel EXPORT stiefelTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
export(EXPORT stiefelTargets NAMESPACE stiefel:: FILE ${STIEFEL_BUILD_PACKAGE}/stiefelTargets.cmake)
install(EXPORT stiefelTargets NAMESPACE stiefel:: DESTINATION ${STIEFEL_PACKAGE} COMPONENT dev)
install(DIRECTORY ${STIEFEL_BUILD_PACKAGE}/ DESTINATION ${STIEFEL_PACKAGE} COMPONENT dev FILES_MATCHING PATTERN "stiefelConfig*.cmake" PATTERN "Stiefel*.cmake" PATTERN "*.map")
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/stiefel ${STIEFEL_GENERATED}/stiefel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.hpp")
if(STIEFEL_WHEEL)
  install(DIRECTORY ${EIGEN3_INCLUDE_DIR}/Eigen DESTINATION include/eigen3 COMPONENT dev)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/stiefel COMPONENT runtime
  FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv")
# `stiefel reproduce` looks for measured results next to the experiments.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/results/measured DESTINATION ${CMAKE_INSTALL_DATADIR}/stiefel/results COMPONENT runtime
  FILES_MATCHING PATTERN "*.json" PATTERN figures EXCLUDE)
if(NOT STIEFEL_WHEEL)
  # The links between them are relative, so these keep their places.
  set(root ${PROJECT_SOURCE_DIR})
  install(FILES ${root}/README.md ${root}/CHANGELOG.md ${root}/CITATION.cff ${root}/SECURITY.md ${root}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime
    PATTERN build EXCLUDE PATTERN __pycache__ EXCLUDE)
  install(FILES ${PROJECT_SOURCE_DIR}/python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python COMPONENT runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/stiefel DESTINATION lib/python3/dist-packages COMPONENT runtime
    FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN __pycache__ EXCLUDE)
  install(FILES ${PROJECT_SOURCE_DIR}/results/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/results COMPONENT runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/results/measured DESTINATION ${CMAKE_INSTALL_DOCDIR}/results COMPONENT runtime
    PATTERN "*.json" EXCLUDE)
endif()
if(NOT STIEFEL_SANITIZE AND NOT STIEFEL_WHEEL)  # man pages and completion, which the program writes itself
  set(STIEFEL_PAGES ${CMAKE_CURRENT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${STIEFEL_PAGES}.stamp DEPENDS stiefel_program COMMENT "Writing man pages and completion"
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${STIEFEL_PAGES}
    COMMAND stiefel_program completion files ${STIEFEL_PAGES}
    COMMAND ${CMAKE_COMMAND} -E touch ${STIEFEL_PAGES}.stamp)
  add_custom_target(stiefel_pages ALL DEPENDS ${STIEFEL_PAGES}.stamp)
  install(DIRECTORY ${STIEFEL_PAGES}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT runtime)
endif()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/stiefel)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/experiments ${CMAKE_BINARY_DIR}/share/stiefel/experiments SYMBOLIC)
