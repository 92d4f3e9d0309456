/// Which SIMD targets are compiled; include it before <hwy/foreach_target.h>.
///
/// x86-64: one number at a time, SSE4, AVX2, AVX-512. AArch64: NEON. Left out are vectors whose size is unknown to the
/// compiler, since they cannot be array elements, and SSSE3, which hardly any CPU has without SSE4.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

/// Vector registers of the target that is being compiled.
#define STIEFEL_VECTOR_REGISTERS (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_ARCH_ARM_A64 ? 32 : 16)
