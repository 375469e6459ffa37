// Package pack writes and reads a packed copy: the files of a copy of a store in one stream of compressed blocks, with
// a list at the end by which one file can be read without the rest.
//
// The writer needs only an io.Writer and never goes back; the reader needs an io.ReaderAt and the size. So a packed
// copy can go to standard output, through an encryption, or to an object store, and be read by ranges.
//
// # Format
//
// All numbers are little endian. sum is the xxHash64 of the bytes before it, unless noted otherwise.
//
// The header, 64 bytes:
//
//	 0  8  "varvepk\n"
//	 8  4  version of the format, 1
//	12  4  zero
//	16 16  UUID of the store
//	32  8  position of the log that the files include (LSN)
//	40  8  chain hash of the log at that position
//	48  8  zero
//	56  8  sum
//
// The blocks: those of the bodies, then those of the list, then those of the table. Each has
//
//	 0  4  "body", "list" or "tabl"
//	 4  4  number of packed bytes, 1 to 2 MiB
//	 8  4  number of plain bytes, 1 to 1 MiB
//	12  4  zero
//	16  8  sum of the 16 bytes and of the packed bytes
//	24     the packed bytes: one frame of zstd, which names its size
//
// The trailer, 112 bytes:
//
//	 0  8  offset of the first block of the list
//	 8  8  offset of the first block of the table
//	16  8  number of blocks of bodies
//	24  8  number of files
//	32  8  number of bytes of all files, before compression
//	40  8  size of the packed copy, with this trailer
//	48  8  sum of the header
//	56  8  zero
//	64 32  sha256 of the blocks of the list and of the table
//	96  8  sum
//	104 8  "varveend"
//
// The bodies are the bytes of the files, one file after the other. A file that does not fit into the rest of a block
// begins the next one; a longer file fills each of its blocks except the last. Bytes of the bodies that belong to no
// file are those of a file whose writing was given up.
//
// The list has one entry a file, in the order of the bodies; no entry spans two blocks:
//
//	uvarint  length of the name
//	         the name, a path with slashes
//	 1       mark, a character that the user of the package chooses
//	uvarint  number of bytes
//	uvarint  number of the block of bodies in which the file begins
//	uvarint  offset in that block; an empty file has 0 for both
//	 8       time of modification in nanoseconds of Unix time, 0 for none
//	32       sha256 of the file
//
// The table has two uvarints for each block of bodies: the number of packed bytes, and of plain bytes.
//
// # Invariants
//
// A reader trusts no size: a block has at most 1 MiB, a list at most listRatio times its packed bytes, and no two files
// share a byte, so all files together have at most 1 MiB a block. While the list is read, its files are counted: it has
// at most the number in the trailer or, if that is damaged, filesRatio for each byte of the packed copy. The function
// that Open gets decides whether a name is valid. An invalid name, or a name that appears twice, is damage; the writer
// refuses to write either. Impossible values are damage even if their checksum is right. Damage is an
// *errs.CorruptionError.
//
// If a block of bodies is damaged, the files in it are lost; if a block of the list is damaged, the files that the
// block names are lost. If only the trailer is damaged, nothing is lost, because the blocks can be followed from the
// header (Reader.Damage).
//
// # Assumptions
//
// The checksums detect accidental damage. A program that may write the file can forge all of it. Only the sha256 of the
// file, kept elsewhere, or an encryption with a secret key that the program does not have, detects that.
package pack
