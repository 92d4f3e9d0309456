/// Which SIMD targets are compiled; include it before <hwy/foreach_target.h>.
///
/// x86-64: SSE4, AVX2, AVX-512, and the baseline, which is SSE2 or, before Highway 1.1, one number at a time. AArch64: NEON.
/// Left out are vectors whose size is unknown to the compiler, since they cannot be array elements; SSSE3, which hardly
/// any CPU has without SSE4; and the two further kinds of AVX-512 that Highway 1.1 added, so that runs move between hosts.
#pragma once

#define STIEFEL_AVX3_SPR_AND_ZEN4 (1LL << 4 | 1LL << 6)
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | STIEFEL_AVX3_SPR_AND_ZEN4)

/// Vector registers of the target that is being compiled.
#define STIEFEL_VECTOR_REGISTERS (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_ARCH_ARM_A64 ? 32 : 16)
