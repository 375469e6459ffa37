package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
)

// Format is the version of the file format that this package writes. It is also the newest version that this package
// reads.
const Format = 1

const (
	magic       = "varvepk\n"
	endMagic    = "varveend"
	headerSize  = 64
	trailerSize = 112
	blockHead   = 24
	// BlockSize is the maximum number of bytes of a block before compression.
	BlockSize  = 1 << 20
	packedMost = 2 * BlockSize
	// NameMost is the maximum length in bytes of the name of a file.
	NameMost = 8 << 10
	// listRatio limits the decompressed size of a block of the list of files to a multiple of its packed size, so that
	// a small packed copy cannot require much memory. Ordinary lists are far below the limit, because each entry has a
	// sha256, which does not compress. A list of many files with the same content, such as empty files, may exceed the
	// limit; a Writer divides such a list into smaller blocks.
	listRatio = 64
	listFree  = 64 << 10 // a block of the list may have this many plain bytes whatever its packed size is

	// filesRatio is the maximum number of files of a packed copy for each byte of the copy. It is above 1 because the
	// entries of empty files with similar names compress to less than a byte each.
	filesRatio = 4

	entryTail = 8 + sha256.Size
)

// The kinds of blocks.
const (
	bodyBlock  = "body"
	listBlock  = "list"
	tableBlock = "tabl"
)

var le = binary.LittleEndian

// Header describes the state of the store of which the packed copy is a copy.
type Header struct {
	Store [16]byte // UUID of the store
	LSN   uint64   // position of the log that the files include
	Chain uint64   // chain hash of the log at that position
}

// File is an entry of the list of files. Mark is a character that the user of the package chooses. Sum is the sha256
// of the file's bytes.
type File struct {
	Name  string
	Mark  byte
	Size  int64
	Mtime time.Time // modification time; zero for none
	Sum   [sha256.Size]byte

	block  int // number of the block of bodies in which the file begins
	offset int // offset in that block
}

func (h *Header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	le.PutUint32(b[8:], Format)
	copy(b[16:], h.Store[:])
	le.PutUint64(b[32:], h.LSN)
	le.PutUint64(b[40:], h.Chain)
	le.PutUint64(b[56:], xxhash.Sum64(b[:56]))
	return b
}

func parseHeader(b []byte) (h Header, err error) {
	switch {
	case len(b) < headerSize || string(b[:8]) != magic:
		return h, damaged(0, errors.New("not the beginning of a packed copy"))
	case le.Uint64(b[56:]) != xxhash.Sum64(b[:56]):
		return h, damaged(0, errors.New("checksum mismatch in the header"))
	}
	switch v := le.Uint32(b[8:]); {
	case v > Format:
		return h, &errs.NewerError{Format: uint64(v), Reads: Format}
	case v == 0 || le.Uint32(b[12:]) != 0 || le.Uint64(b[48:]) != 0:
		return h, damaged(8, errors.New("the header has impossible values"))
	}
	copy(h.Store[:], b[16:])
	h.LSN, h.Chain = le.Uint64(b[32:]), le.Uint64(b[40:])
	return h, nil
}

// trailer is the decoded content of the last bytes of a packed copy, the trailer; see the package comment.
type trailer struct {
	list, table          int64 // offsets in the file
	blocks, files, bytes int64
	size                 int64
	header               uint64
	sum                  [sha256.Size]byte
}

func (t *trailer) encode() []byte {
	b := make([]byte, 0, trailerSize)
	for _, n := range []int64{t.list, t.table, t.blocks, t.files, t.bytes, t.size} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint64(b, t.header)
	b = append(le.AppendUint64(b, 0), t.sum[:]...)
	b = le.AppendUint64(b, xxhash.Sum64(b))
	return append(b, endMagic...)
}

func parseTrailer(b []byte, size int64) (t trailer, err error) {
	at := size - trailerSize
	switch {
	case len(b) < trailerSize || string(b[104:]) != endMagic:
		return t, damaged(max(at, 0),
			errors.New("the file does not end with a trailer: bytes at the end were lost or added"))
	case le.Uint64(b[96:]) != xxhash.Sum64(b[:96]):
		return t, damaged(at, errors.New("checksum mismatch in the trailer"))
	}
	for i, n := range []*int64{&t.list, &t.table, &t.blocks, &t.files, &t.bytes, &t.size} {
		if *n = int64(le.Uint64(b[8*i:])); *n < 0 {
			return t, damaged(at, errors.New("the trailer has impossible values"))
		}
	}
	t.header = le.Uint64(b[48:])
	copy(t.sum[:], b[64:])
	if t.size != size || t.list < headerSize || t.table < t.list || t.table > at || le.Uint64(b[56:]) != 0 ||
		t.blocks > size/blockHead || t.files > filesRatio*size || t.bytes > t.blocks*BlockSize {
		return t, damaged(at,
			fmt.Errorf("the trailer, which records a file of %d bytes, does not fit a file of %d bytes", t.size, size))
	}
	return t, nil
}

// appendBlock compresses plain, and appends the result to dst as a block of the given kind. It verifies that the
// compressed bytes decompress to plain again.
func appendBlock(dst []byte, kind string, plain []byte, enc *zstd.Encoder, dec *zstd.Decoder) ([]byte, error) {
	at := len(dst)
	dst = append(dst, make([]byte, blockHead)...)
	dst = enc.EncodeAll(plain, dst)
	packed := dst[at+blockHead:]
	if again, err := dec.DecodeAll(packed, make([]byte, 0, len(plain))); err != nil || !bytes.Equal(again, plain) {
		return nil, fmt.Errorf("compressing a block: the result does not decompress to the original bytes: %w",
			errors.Join(err, errs.ErrCorrupt))
	}
	head := dst[at : at+blockHead]
	copy(head, kind)
	le.PutUint32(head[4:], uint32(len(packed)))
	le.PutUint32(head[8:], uint32(len(plain)))
	le.PutUint64(head[16:], blockSum(head, packed))
	return dst, nil
}

func blockSum(head, packed []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(head[:16]) // never fails
	_, _ = d.Write(packed)
	return d.Sum64()
}

// parseHead returns the sizes in the head of a block: of its packed bytes, and of its bytes when decompressed. It
// returns an error if the block is not of the given kind or a size is impossible. off is the offset of the block,
// for errors.
func parseHead(b []byte, kind string, off int64) (packed, plain int, err error) {
	if len(b) < blockHead || string(b[:4]) != kind || le.Uint32(b[12:]) != 0 {
		return 0, 0, damaged(off, fmt.Errorf("expected a block of type %s at this offset", kind))
	}
	packed, plain = int(le.Uint32(b[4:])), int(le.Uint32(b[8:]))
	if packed == 0 || packed > packedMost || plain == 0 || plain > BlockSize {
		return 0, 0, damaged(off, errors.New("a block has an impossible size"))
	}
	if kind != bodyBlock && plain > listRatio*packed+listFree {
		return 0, 0, damaged(off, errors.New("a block of the list of files is invalid: its decompressed size would "+
			"exceed the limit"))
	}
	return packed, plain, nil
}

// unpack decompresses the packed bytes of a block with the given head into dst, whose capacity is reused. off is
// the offset of the block, for errors.
func unpack(dec *zstd.Decoder, head, packed, dst []byte, off int64) ([]byte, error) {
	if le.Uint64(head[16:]) != blockSum(head, packed) {
		return nil, damaged(off, errors.New("checksum mismatch in a block"))
	}
	plain := int(le.Uint32(head[8:]))
	var h zstd.Header
	if err := h.Decode(packed); err != nil || !h.HasFCS || h.Skippable || h.FrameContentSize != uint64(plain) {
		return nil, damaged(off,
			errors.New("the size of a decompressed block differs from the size in the header of the block"))
	}
	if cap(dst) < plain {
		dst = make([]byte, 0, plain)
	}
	b, err := dec.DecodeAll(packed, dst[:0:plain]) // never writes beyond the capacity: see newDecoder
	if err == nil && len(b) != plain {
		err = errors.New("the size of a decompressed block differs from the size in the header of the block")
	}
	if err != nil {
		return nil, damaged(off, err)
	}
	return b, nil
}

// newEncoder returns an encoder whose frames always contain the size of the decompressed data.
func newEncoder(workers int) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(BlockSize), zstd.WithSingleSegment(true))
}

// newDecoder returns a decoder whose DecodeAll fails if the decompressed data do not fit into the capacity of the
// given buffer, instead of enlarging the buffer.
func newDecoder(workers int) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), zstd.IgnoreChecksum(true),
		zstd.WithDecoderMaxMemory(BlockSize), zstd.WithDecodeAllCapLimit(true))
}

func appendEntry(b []byte, f *File) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.Name)))
	b = append(append(b, f.Name...), f.Mark)
	b = binary.AppendUvarint(b, uint64(f.Size))
	b = binary.AppendUvarint(b, uint64(f.block))
	b = binary.AppendUvarint(b, uint64(f.offset))
	nanos := int64(0)
	if !f.Mtime.IsZero() {
		nanos = f.Mtime.UnixNano()
	}
	b = le.AppendUint64(b, uint64(nanos))
	return append(b, f.Sum[:]...)
}

// parseEntry parses the first entry of a block of the list, and returns its length; 0 if the block does not begin with
// an entry.
func parseEntry(b []byte, f *File) int {
	at := 0
	number := func(most uint64) uint64 { // behind the end, if no number follows
		if at > len(b) {
			return 0
		}
		n, k := binary.Uvarint(b[at:])
		if k <= 0 || n > most {
			at = len(b) + 1
			return 0
		}
		at += k
		return n
	}
	length := int(number(NameMost))
	if length == 0 || at+length+1 > len(b) {
		return 0
	}
	f.Name, f.Mark = string(b[at:at+length]), b[at+length]
	at += length + 1
	f.Size = int64(number(1 << 50))
	f.block = int(number(1 << 30))
	f.offset = int(number(BlockSize))
	if at+entryTail > len(b) {
		return 0
	}
	f.Mtime = time.Time{}
	if nanos := int64(le.Uint64(b[at:])); nanos != 0 {
		f.Mtime = time.Unix(0, nanos)
	}
	copy(f.Sum[:], b[at+8:])
	return at + entryTail
}

func damaged(off int64, err error) error { return &errs.CorruptionError{Offset: off, Err: err} }
