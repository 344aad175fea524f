/* The checksum of a line: zlib's CRC-32. */

#include "core.h"
#include "wide.h"

static uint32_t crc_table[8][256];

void make_crc_table(void)
{
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t value = c;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc_table[0][c] = value;
    }
    for (int c = 0; c < 256; c++)
        for (int table = 1; table < 8; table++)
            crc_table[table][c] = crc_table[table - 1][c] >> 8 ^ crc_table[0][crc_table[table - 1][c] & 255];
}

/* As zlib's, eight bytes at a time. */
uint32_t crc32_of(const uint8_t *raw, size_t size, uint32_t crc)
{
    crc = ~crc;
    if (is_wide && size >= 64) {
        crc = crc32_folded(raw, size & ~(size_t)15, crc);
        raw += size & ~(size_t)15;
        size &= 15;
    }
    for (; size >= 8; size -= 8, raw += 8) {
        uint32_t one = crc ^ ((uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24);
        crc = crc_table[7][one & 255] ^ crc_table[6][one >> 8 & 255] ^ crc_table[5][one >> 16 & 255]
            ^ crc_table[4][one >> 24] ^ crc_table[3][raw[4]] ^ crc_table[2][raw[5]] ^ crc_table[1][raw[6]]
            ^ crc_table[0][raw[7]];
    }
    while (size--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *raw++) & 255];
    return ~crc;
}
