/* Loops that look at many bytes at once. They find the same as the loops for single bytes, which are used where the
   processor has no such instructions. */

/* Whether the loops below may be called. */
extern int is_wide;
void find_wide(void);

/* Tables that say whether a pair of bytes may be one of a set: four of 16 entries, for the halves of both bytes. */
typedef uint8_t pair_tables[64];

/* Skips pairs that are not in the set. Returns where the next 64 positions begin of which some may be, with a bit for
   each in `found`; 0 in `found`: fewer than 65 bytes are left there. */
size_t skip_pairs(const pair_tables tables, const uint8_t *raw, size_t at, size_t size, uint64_t *found);
/* The start of the next 16 letters, digits, `-` or `_` in a row. If fewer than 64 bytes are left, returns the place up
   to which there are none. */
size_t skip_to_run(const uint8_t *raw, size_t at, size_t end, int *is_found);
/* Copies bytes that JSON holds as they are, 16 at a time, and returns their number: up to the first of 16 bytes of
   which one needs an escape, or until fewer than 16 are left. */
size_t copy_unescaped(char *to, const char *raw, size_t size);
/* The checksum (see crc.c) of a multiple of 16 bytes, at least 64; both it and `crc` are inverted. */
uint32_t crc32_folded(const uint8_t *raw, size_t size, uint32_t crc);
