/* See wide.h. */

#include "core.h"
#include "wide.h"

int is_wide;

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define WIDE __attribute__((target("ssse3,sse4.1,pclmul")))

void find_wide(void)
{
    /* Not __builtin_cpu_supports: the libraries of cross compilers lack what it needs. */
    const unsigned needed = bit_SSSE3 | bit_SSE4_1 | bit_PCLMUL;
    unsigned a, b, c, d;
    is_wide = __get_cpuid(1, &a, &b, &c, &d) && (c & needed) == needed;
}

WIDE static inline __m128i at_place(const void *place)
{
    return _mm_loadu_si128((const __m128i *)place);
}

/* Looks up the lower and the upper half of each byte, and keeps the bits that both have. */
WIDE static inline __m128i both_halves(__m128i low, __m128i high, __m128i bytes)
{
    const __m128i half = _mm_set1_epi8(15);
    __m128i upper = _mm_and_si128(_mm_srli_epi16(bytes, 4), half);
    return _mm_and_si128(_mm_shuffle_epi8(low, _mm_and_si128(bytes, half)), _mm_shuffle_epi8(high, upper));
}

/* A bit for each byte that is not 0. */
WIDE static inline uint64_t nonzero(__m128i bytes)
{
    return (uint16_t)~_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
}

WIDE size_t skip_pairs(const pair_tables tables, const uint8_t *raw, size_t at, size_t size, uint64_t *found)
{
    __m128i low = at_place(tables), high = at_place(tables + 16);
    __m128i next_low = at_place(tables + 32), next_high = at_place(tables + 48);
    *found = 0;
    for (; size - at >= 65; at += 64) {
        __m128i parts[4];
        for (int part = 0; part < 4; part++)
            parts[part] = _mm_and_si128(both_halves(low, high, at_place(raw + at + 16 * part)),
                                        both_halves(next_low, next_high, at_place(raw + at + 16 * part + 1)));
        __m128i any = _mm_or_si128(_mm_or_si128(parts[0], parts[1]), _mm_or_si128(parts[2], parts[3]));
        if (nonzero(any) == 0)
            continue;
        *found = nonzero(parts[0]) | nonzero(parts[1]) << 16 | nonzero(parts[2]) << 32 | nonzero(parts[3]) << 48;
        return at;
    }
    return at;
}

WIDE size_t skip_to_run(const uint8_t *raw, size_t at, size_t end, int *is_found)
{
    /* A bit for each upper half; in the entry of a lower half, those with which it is a character of a run:
       `-`: 1; digits: 2; A to O and a to o: 4; P to Z and `_`: 8; p to z: 16. */
    const __m128i high = _mm_setr_epi8(0, 0, 1, 2, 4, 8, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i low = _mm_setr_epi8(26, 30, 30, 30, 30, 30, 30, 30, 30, 30, 28, 4, 4, 5, 4, 12);
    *is_found = 0;
    while (end - at >= 64) {
        uint64_t is_run = 0;
        for (int part = 0; part < 4; part++)
            is_run |= nonzero(both_halves(low, high, at_place(raw + at + 16 * part))) << 16 * part;
        uint64_t starts = is_run & is_run >> 1;
        starts &= starts >> 2;
        starts &= starts >> 4;
        starts &= starts >> 8;
        if (starts) {
            *is_found = 1;
            return at + (size_t)__builtin_ctzll(starts);
        }
        at += 49; /* none of the first 49 bytes begins 16 in a row */
    }
    return at;
}

WIDE size_t copy_unescaped(char *to, const char *raw, size_t size)
{
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), blank = _mm_set1_epi8(31);
    size_t at = 0;
    for (; size - at >= 16; at += 16) {
        __m128i bytes = at_place(raw + at);
        /* Unsigned: a byte is at most 31 if it is the lower of both. */
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes);
        __m128i sign = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
        if (_mm_movemask_epi8(_mm_or_si128(control, sign)))
            break;
        _mm_storeu_si128((__m128i *)(to + at), bytes);
    }
    return at;
}

WIDE static inline __m128i folded(__m128i sum, __m128i keys, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(sum, keys, 0x00), high = _mm_clmulepi64_si128(sum, keys, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* By carry-less multiplication: Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
   Instruction" (Intel, 2009). The numbers are powers of x modulo zlib's polynomial. */
WIDE uint32_t crc32_folded(const uint8_t *raw, size_t size, uint32_t crc)
{
    const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i to_64 = _mm_set_epi64x(0, 0x0163cd6124), barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i lower = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i sums[4];
    for (int part = 0; part < 4; part++)
        sums[part] = at_place(raw + 16 * part);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128((int)crc));
    for (raw += 64, size -= 64; size >= 64; raw += 64, size -= 64)
        for (int part = 0; part < 4; part++)
            sums[part] = folded(sums[part], by_four, at_place(raw + 16 * part));
    __m128i sum = sums[0];
    for (int part = 1; part < 4; part++)
        sum = folded(sum, by_one, sums[part]);
    for (; size >= 16; raw += 16, size -= 16)
        sum = folded(sum, by_one, at_place(raw));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_one, 0x10));
    sum = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(sum, lower), to_64, 0x00), _mm_srli_si128(sum, 4));
    __m128i rest = _mm_clmulepi64_si128(_mm_and_si128(sum, lower), barrett, 0x10);
    rest = _mm_clmulepi64_si128(_mm_and_si128(rest, lower), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, rest), 1);
}

#else

void find_wide(void)
{
    is_wide = 0;
}

size_t skip_pairs(const pair_tables tables, const uint8_t *raw, size_t at, size_t size, uint64_t *found)
{
    *found = 0;
    return at;
}

size_t skip_to_run(const uint8_t *raw, size_t at, size_t end, int *is_found)
{
    *is_found = 0;
    return at;
}

size_t copy_unescaped(char *to, const char *raw, size_t size)
{
    return 0;
}

uint32_t crc32_folded(const uint8_t *raw, size_t size, uint32_t crc)
{
    return crc;
}

#endif
