// Package table defines the format of Varve's sorted tables: JSON files that any program can read, and that are
// searched in place, mapped into memory. memory_index.json and mapping.json are such tables; a Schema names the
// sections of each.
//
// # The file
//
// One JSON object. Every entry has its own line; a raw newline occurs only at the end of a line, because JSON escapes
// newlines in strings. ⏎ is the byte 0x0a. There is no white space other than shown.
//
//	{"memories": {⏎                          opens the first section
//	"a":{"filepath":"memories/a.json",…},⏎   an entry: key, colon, value, comma
//	"b":{"filepath":"memories/b.json",…}⏎    the last of a section has no comma
//	},"assemblies": {⏎                       closes one section, opens the next
//	},"by_session": {⏎                       (this one above is empty)
//	"s1\u0000a":1⏎
//	},"by_expiry": {⏎
//	}⏎                                       closes the last section
//	,"metadata": {"version":"1",             one line from here to its ⏎:
//	  "last_updated":"2026-01-02T03:04:05.000006Z",
//	  "memory_count":2,"assembly_count":0,   live entries, named by the Schema
//	  "store":"<uuid>","from":0,"lsn":4096,
//	  "extra":{…},                           only when there is any
//	  "sections":{"memories":[14,98,2,2],…}, first byte, end, lines, live entries
//	  "blocks":"<16 hex digits a block>"}⏎   xxhash64 of each 64 KiB before the
//	                                         metadata, the last one being shorter
//	,"end":"<16 hex digits> <16 hex digits>"}⏎
//
// The last line always has 44 bytes: the offset of the metadata (of its first comma) and the xxhash64 of the metadata
// line, both in lower-case hex of fixed width.
//
//	 0        7        8                  24  25                  41   44
//	┌──────────────────┬───────────────────┬──┬───────────────────┬────┐
//	│ ,"end":"         │ metadata's offset │␠ │ metadata's hash   │"}⏎ │
//	└──────────────────┴───────────────────┴──┴───────────────────┴────┘
//
// Keys are written as RFC 8785 writes strings (\" \\ \b \t \n \f \r, other control characters
// \u00xx in lower case, all else raw UTF-8) and sorted by the bytes between their quotes. Escaping
// works character by character, so keys with a common prefix are adjacent, whatever they contain.
//
// # Levels
//
// <name>.json is the base, <name>.delta.json the changes since, in the same form; a dead entry (the
// Schema defines its form) hides an entry of the base. A delta is valid only if
//
//	delta.from ≤ base.lsn < delta.lsn      and both name the same store.
//
// In "sections", lines is the number of lines in this file, live entries that in base and delta
// together; in a base they are equal.
//
// # Invariants
//
//   - Opening reads the last line and the metadata, nothing else, and checks both completely. So
//     every byte of the file is covered by a checksum.
//   - A block is compared with its hash before any byte of it is used, once for each open table,
//     and every time when it is copied into a new table, so that a rewrite never gives damaged
//     bytes a new, valid checksum.
//   - Heap: one bit for each 64 KiB. The hashes stay in the mapping.
//   - Damage is an *errs.CorruptionError, never an absent key. A transient read error is returned
//     unchanged.
//   - A Set never changes; its mappings are unmapped when the last user releases it.
//   - A file is written under another name, synced, then renamed, then the folder is synced; only
//     then is the delta removed. Nothing is ever written into a file that has its final name.
//
// # Search
//
// A search begins with interpolation. It reads three keys as numbers: the first and the last key of the
// present range, and the key that is searched for. Their common prefix, and other positions where all
// three agree, are left out; the base of the numbers is the size of the alphabet that the keys appear to
// use. Every second step aims about one standard deviation beyond the estimate, so that the range narrows
// from both sides. If two steps narrow the range by less than a factor of 8, the keys are not evenly
// distributed, and bisection follows until the range has a longer common prefix. TestProbes limits the
// number of lines that a search reads for each kind of id. Among 1,000,000 keys a search reads 6 lines for
// UUIDs of version 4 and 7, 9 for counters, 11 for mixed prefixes, and 22 for words; bisection alone would
// read 20. This command measures it: go test ./index/table -run xxx -bench Get -entries 1000000
//
// # Offsets
//
// A large table has a second file with the position of each line by the hash of its key (Schema.Offsets), so that a
// look-up reads one block of that file and one line of the table, and does not search. Integers are little-endian:
//
//	header, 4096 bytes
//	   0  VARVEOFF
//	   8  format, 1
//	  16  number of blocks, n
//	  24  number of lines
//	  32  the 44 bytes of the table's last line
//	  80  xxhash64 of the bytes above; then zeros
//	n blocks of 4096 bytes: 511 slots of 8 bytes, and the checksum of the block
//	   slot   0: unused; else the position of the line in the lower 40 bits, and the lower 24 bits of the hash
//	   checksum   xxhash64 of the slots, XOR (number of the block + 1) × 0x9e3779b97f4a7c15
//
// The hash of a key is the xxhash64 of its encoded form, XOR the number of the section × 0x9e3779b97f4a7c15. Hash × n
// ÷ 2⁶⁴ is the number of its block, bits 24 to 39 of the hash × 511 ÷ 2¹⁶ the first slot. A search continues with the
// next slots, and from the last slot with slot 0, up to an unused slot. A block has at least one unused slot. On
// average three quarters are in use: 10.7 bytes a line.
//
// The file is derived. The last line of the table has a hash of everything in the table, so offsets of another table
// are recognised. The writer puts the offsets in place before the table. A reader that finds no offsets, or those of
// another table, searches. A block is verified when it is first used; when one is damaged, all look-ups of this table
// search. The key of a line that was found is compared with the one that was asked for.
//
// # Assumptions
//
// A file that has its final name is never changed in place. If another program truncates it
// nevertheless, access to the mapping faults, and vfs.Guard turns the fault into an error.
package table
