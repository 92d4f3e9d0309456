# abi.hpp: the SDK id and the instruction set extensions that a plugin's tag names.

include(cmake/StiefelSdkId.cmake)
file(GLOB STIEFEL_SDK_HEADERS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/stiefel/*.hpp ${CMAKE_CURRENT_SOURCE_DIR}/include/stiefel/*.in)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${STIEFEL_SDK_HEADERS})
stiefel_sdk_id(${CMAKE_CURRENT_SOURCE_DIR}/include/stiefel STIEFEL_SDK_ID)

# Extensions of x86-64 that GCC may use unasked under -march, by their names in __builtin_cpu_supports. The macro of each is
# __NAME__ in capitals, '.' and '-' as '_'.
set(STIEFEL_ISA_NAMES
  sse3 ssse3 sse4.1 sse4.2 sse4a popcnt lzcnt movbe bmi bmi2 adx aes pclmul sha gfni vaes vpclmulqdq
  avx xop fma fma4 f16c avx2 avxvnni
  avx512f avx512cd avx512dq avx512bw avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq
  avx512bf16 avx512fp16 avx512vp2intersect)
set(STIEFEL_ISA_MACROS "")
set(STIEFEL_ISA_SUM "")
set(STIEFEL_ISA_LIST "")
foreach(name IN LISTS STIEFEL_ISA_NAMES)
  string(REGEX REPLACE "[.-]" "_" macro ${name})
  string(TOUPPER ${macro} macro)
  string(APPEND STIEFEL_ISA_MACROS "#if defined(__${macro}__)\n#define STIEFEL_ISA_${macro} \"+${name}\"\n#else\n#define STIEFEL_ISA_${macro} \"\"\n#endif\n")
  string(APPEND STIEFEL_ISA_SUM " STIEFEL_ISA_${macro}")
  string(APPEND STIEFEL_ISA_LIST " X(\"${name}\")")
endforeach()

set(STIEFEL_GENERATED ${CMAKE_BINARY_DIR}/include)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/include/stiefel/abi.hpp.in ${STIEFEL_GENERATED}/stiefel/abi.hpp @ONLY)
